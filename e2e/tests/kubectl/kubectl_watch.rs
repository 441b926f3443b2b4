//! `kubectl get --watch`.

use std::time::Duration;

use muster_e2e::kubectl::Kubectl;
use muster_e2e::wait::{SOON, wait_for};

#[test]
fn watch_shows_what_is_there_and_then_every_change() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let mut watch = kubectl.start("get tasks -w --no-headers");
    watch.expect_line("a ");
    kubectl.create_task("b", "{kind: k}");
    watch.expect_line("b ");
    kubectl.ok(r#"patch task b --type=merge -p '{"spec":{"priority":77}}'"#);
    watch.expect_line("77");
}

#[test]
fn watch_events_tell_what_happened() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let mut watch = kubectl.start("get tasks -w --output-watch-events --no-headers");
    watch.expect_line("ADDED      a ");
    kubectl.ok("label task a x=y");
    watch.expect_line("MODIFIED   a ");
    kubectl.ok("delete task a");
    watch.expect_line("DELETED    a ");
}

#[test]
fn watch_only_shows_no_object_that_is_there_already() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let mut watch = kubectl.start("get tasks --watch-only --output-watch-events --no-headers");
    let mut seen = None;
    let mut number = 0;
    wait_for("the watch to begin and show a change", SOON, || {
        number += 1;
        kubectl.ok(&format!("label task a n={number} --overwrite"));
        seen = watch.line_within(Duration::from_millis(200));
        seen.is_some()
    });
    assert!(seen.unwrap().starts_with("MODIFIED   a "));
}

#[test]
fn watch_of_one_object_leaves_others_out() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    kubectl.create_task("b", "{kind: k}");
    let mut watch = kubectl.start("get task a -w -o name");
    watch.expect_line("task.muster.dev/a");
    kubectl.ok("label task b x=y");
    kubectl.ok("label task a x=y");
    assert_eq!(watch.expect_line("task"), "task.muster.dev/a");
}

#[test]
fn watch_with_a_selector_tells_when_an_object_leaves_it() {
    let kubectl = Kubectl::current();
    kubectl.create_labelled("a", "{x: z}");
    let mut watch = kubectl.start("get tasks -l x=z -w --output-watch-events --no-headers");
    watch.expect_line("ADDED      a ");
    kubectl.ok("label task a x-");
    watch.expect_line("DELETED    a ");
    kubectl.ok("label task a x=z");
    watch.expect_line("ADDED      a ");
}

#[test]
fn watch_as_json_shows_whole_objects() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let mut watch = kubectl.start("get tasks -w --output-watch-events -o json");
    watch.expect_line(r#"{"type":"ADDED","object":{"apiVersion":"muster.dev/v1alpha1","kind":"Task""#);
    kubectl.ok("label task a x=y");
    let line = watch.expect_line(r#"{"type":"MODIFIED""#);
    assert!(line.contains(r#""labels":{"x":"y"}"#), "{line}");
}

#[test]
fn watch_over_all_namespaces_shows_where_objects_are() {
    let kubectl = Kubectl::current();
    let mut watch = kubectl.start("get tasks -A -w --no-headers");
    kubectl.create_task("a", "{kind: k}");
    watch.expect_line(kubectl.namespace());
}

//! `--validate`: what happens to fields that a kind does not have.

use muster_e2e::kubectl::{Kubectl, task};

const UNKNOWN: &str = "{kind: k, nonsense: 1, policy: {strange: true}}";

#[test]
fn strict_validation_refuses_unknown_fields_and_names_them() {
    let kubectl = Kubectl::current();
    let said = kubectl.given(task("a", UNKNOWN)).fails("create --validate=strict -f -");
    for field in [r#"unknown field "spec.nonsense""#, r#"unknown field "spec.policy.strange""#] {
        assert!(said.contains(field), "{field} is missing in:\n{said}");
    }
    assert_eq!(kubectl.ok("get tasks -o name"), "");
}

#[test]
fn validation_is_strict_unless_told_otherwise() {
    let said = Kubectl::current().given(task("a", UNKNOWN)).fails("create -f -");
    assert!(said.contains("strict decoding error"), "{said}");
}

#[test]
fn warning_validation_stores_the_rest_and_warns() {
    let kubectl = Kubectl::current();
    let transcript = kubectl.given(task("a", UNKNOWN)).run("create --validate=warn -f -");
    assert_eq!(
        (transcript.code, &*transcript.stdout),
        (Some(0), "task.muster.dev/a created\n"),
        "{transcript}"
    );
    assert!(transcript.stderr.contains(r#"Warning: unknown field "spec.nonsense""#), "{transcript}");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k"}"#);
}

#[test]
fn ignoring_validation_stores_the_rest_in_silence() {
    let kubectl = Kubectl::current();
    let transcript = kubectl.given(task("a", UNKNOWN)).run("create --validate=ignore -f -");
    assert_eq!((transcript.code, &*transcript.stderr), (Some(0), ""), "{transcript}");
    assert_eq!(kubectl.field("task/a", ".spec"), r#"{"kind":"k"}"#);
}

#[test]
fn strict_validation_holds_for_apply_and_patch() {
    let kubectl = Kubectl::current();
    kubectl.given(task("a", "{kind: k}")).ok("apply -f -");
    let said = kubectl.given(task("a", UNKNOWN)).fails("apply -f -");
    assert!(said.contains("spec.nonsense"), "{said}");
}

//! Tasks that name something that does not exist: they wait for it, whatever the order of a list, and then fail.

use serde_json::Value;

use crate::world::{Served, World, eventually};

const APPLICATION: &str = "---
apiVersion: muster.dev/v1alpha1
kind: Application
metadata: {name: inventory}
spec: {tags: [{category: Language, tag: Java}]}
";
const KIND: &str = "---
apiVersion: muster.dev/v1alpha1
kind: TaskKind
metadata: {name: scan}
";
const ADDON: &str = "---
apiVersion: muster.dev/v1alpha1
kind: Addon
metadata: {name: scanner}
spec: {task: scan, selector: 'tag:Language=Java', container: {command: [echo, scanned]}}
";

fn task(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
    )
}

fn get(served: &Served, name: &str) -> Value {
    served.muster(&["get", "task", name, "-o", "json"]).json()
}

fn waits_for(served: &Served, name: &str, reason: &str) {
    eventually(reason, || get(served, name)["status"]["waitingFor"]["reason"] == reason);
    assert_eq!(get(served, name)["status"]["state"], "Postponed");
}

#[test]
fn a_list_can_be_applied_in_any_order() {
    let served = Served::running("1");
    served.apply(&task("scan-1", "kind: scan, subject: {kind: Application, name: inventory}"));
    waits_for(&served, "scan-1", "SubjectNotFound");
    served.apply(APPLICATION);
    eventually("explain", || {
        served.muster(&["explain", "scan-1"]).out.contains("task kind \"scan\" does not exist")
    });
    served.apply(KIND);
    eventually("explain", || served.muster(&["explain", "scan-1"]).out.contains("no addon serves task kind"));
    served.apply(ADDON);
    served.muster(&["wait", "scan-1"]).is("scan-1 Succeeded\n");
    served.muster(&["logs", "scan-1"]).is("scanned\n");
}

#[test]
fn a_task_that_names_something_unknown_fails_after_a_while_and_says_what() {
    let world = World::new();
    let flags = ["--listen", "127.0.0.1:0", "--roles", "api,engine", "--absent-wait", "1s"];
    let server = world.up(&flags);
    let running = Served { world, server };
    running.apply(KIND);
    let inline = "container: {command: [echo, hi]}";
    for (name, spec, reason, part) in [
        ("kind", format!("kind: gone, {inline}"), "KindNotFound", "task kind \"gone\" does not exist"),
        ("addon", "addon: gone".to_owned(), "AddonNotFound", "addon \"gone\" does not exist"),
        (
            "subject",
            format!("subject: {{kind: Application, name: gone}}, {inline}"),
            "SubjectNotFound",
            "subject Application \"gone\" does not exist",
        ),
        (
            "subject-kind",
            format!("subject: {{kind: Gone, name: a}}, {inline}"),
            "SubjectKindNotFound",
            "subject kind \"Gone\" does not exist",
        ),
        ("serves", "kind: scan".to_owned(), "AddonNotSelected", "no addon serves task kind \"scan\""),
    ] {
        running.apply(&task(name, &spec));
        let said = running.muster(&["wait", name]);
        assert!(said.out.starts_with(&format!("{name} Failed")), "{}{}", said.out, said.err);
        let status = &get(&running, name)["status"];
        let error = status["errors"][0]["description"].as_str().unwrap_or_default();
        assert!(
            error.starts_with(&format!("({reason}) {part}")) && error.contains("waited 1s"),
            "{status:#}"
        );
    }
}

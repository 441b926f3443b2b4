//! `muster submit` of one task.

use serde_json::json;

use crate::world::{Served, World};

#[test]
fn a_command_becomes_a_task_whose_name_is_printed() {
    let served = Served::new();
    let said = served.muster(&["submit", "--", "/bin/echo", "--loud", "hi"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let name = said.out.trim_end();
    assert!(name.starts_with("echo-"), "{name}");
    let task = served.muster(&["get", "task", name, "-o", "json"]).json();
    assert_eq!(task["spec"], json!({"container": {"command": ["/bin/echo", "--loud", "hi"]}}));
}

#[test]
fn every_flag_reaches_the_task() {
    let served = Served::new();
    served.world.file("data.yaml", "depth: 2\n");
    let mut flags = vec!["submit", "-o", "json", "--name", "Nightly build", "--priority", "7"];
    flags.extend(["--timeout", "90s", "--kill-timeout", "1s", "--retries", "2", "--env", "A=b=c"]);
    flags.extend(["--label", "app=shop", "--suspend", "--runtime", "process", "--cpu", "500m"]);
    flags.extend(["--memory", "64Mi", "--isolated", "--locator", "here", "--subject", "Application/shop"]);
    flags.extend(["--input", "@data.yaml", "make", "-j4"]);
    let task = served.muster(&flags).json();
    assert!(
        task["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("nightly-build-")),
        "{task}"
    );
    assert_eq!(task["metadata"]["labels"], json!({"app": "shop"}));
    let expected = json!({
        "container": {"command": ["make", "-j4"], "env": [{"name": "A", "value": "b=c"}]},
        "name": "Nightly build", "priority": 7, "timeout": "1m30s", "killTimeout": "1s",
        "retry": {"limit": 2, "on": ["NonZeroExit", "Killed", "StartFailed"]},
        "suspend": true, "runtime": "process", "resources": {"cpu": "500m", "memory": "64Mi"},
        "policy": {"isolated": true}, "locator": "here", "data": {"depth": 2},
        "subject": {"kind": "Application", "name": "shop"},
    });
    assert_eq!(task["spec"], expected);
}

#[test]
fn an_addon_with_extensions_can_be_asked_for() {
    let served = Served::new();
    served.apply(
        "{apiVersion: muster.dev/v1alpha1, kind: Addon, metadata: {name: scan}, spec: {container: {command: [a]}}}\n\
         ---\n{apiVersion: muster.dev/v1alpha1, kind: Extension, metadata: {name: rules}, spec: {addon: scan, container: \
         {command: [a]}}}\n",
    );
    let flags = ["submit", "--addon", "scan", "--extension", "rules", "--input", "{\"a\": 1}", "-o", "json"];
    let task = served.muster(&flags).json();
    assert_eq!(task["spec"], json!({"addon": "scan", "extensions": ["rules"], "data": {"a": 1}}));
}

#[test]
fn waiting_tells_how_it_ended_and_fails_if_it_did() {
    let served = Served::running("2");
    let said = served.muster(&["submit", "--wait", "--", "true"]);
    let name = said.out.trim_end();
    assert_eq!((said.code, said.err.as_str()), (0, format!("{name} Succeeded\n").as_str()));
    let said = served.muster(&["submit", "--wait", "--", "sh", "-c", "exit 3"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("Failed: ") && said.err.contains("exit code 3"), "{}", said.err);
}

#[test]
fn names_can_be_asked_for_as_other_verbs_print_them() {
    let served = Served::new();
    let said = served.muster(&["submit", "-o", "name", "--", "true"]);
    assert!(said.out.starts_with("task.muster.dev/true-"), "{}", said.out);
    assert_eq!(served.muster(&["cancel", said.out.trim_end()]).code, 0);
}

#[test]
fn a_task_that_was_held_back_is_submitted_later() {
    let served = Served::running("1");
    let name = served.muster(&["submit", "--suspend", "--", "true"]).out.trim_end().to_owned();
    assert!(served.muster(&["explain", &name]).out.contains("muster submit --task"));
    let said = served.muster(&["submit", "--task", &name, "--wait"]);
    assert_eq!((said.code, said.out, said.err), (0, format!("{name}\n"), format!("{name} Succeeded\n")));
    let said = served.muster(&["submit", "--task", "gone"]);
    assert!(said.code == 1 && said.err.contains("there is no task \"gone\""), "{}", said.err);
    served.muster(&["submit", "--task", &name, "--priority", "3"]).is_misuse("cannot be used with");
}

#[test]
fn a_line_that_makes_no_sense_is_refused() {
    let world = World::new();
    world.muster(&["submit"]).is_misuse("--addon <NAME>|--kind <NAME>");
    world.muster(&["submit", "--addon", "a", "--", "b"]).is_misuse("cannot be used with");
    world.muster(&["submit", "--follow", "--array", "1-2", "--", "b"]).is_misuse("cannot be used with");
    world.muster(&["submit", "--subject", "shop", "--", "b"]).is_misuse("Application/inventory");
    world.muster(&["submit", "--cpu", "lots", "--", "b"]).is_misuse("--cpu");
    let said = world.muster(&["submit", "--input", "{a", "--", "b"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--input is not JSON") && said.err.contains("@FILE"), "{}", said.err);
}

#[test]
fn what_the_server_refuses_is_repeated() {
    let served = Served::new();
    let said = served.muster(&["submit", "--label", "a=not a label", "--", "true"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("metadata.labels"), "{}", said.err);
}

//! `muster logs`.

use crate::world::{Running, Served, World};

fn submit(served: &Served, flags: &[&str], script: &str) -> String {
    let mut line = vec!["submit"];
    line.extend(flags);
    line.extend(["--", "sh", "-c", script]);
    let said = served.muster(&line);
    assert!(said.out.ends_with('\n'), "{}", said.err);
    said.out.trim_end().to_owned()
}

#[test]
fn what_a_task_wrote_is_shown_after_its_end() {
    let served = Served::running("1");
    let name = submit(&served, &["--wait"], "echo out; echo err >&2; printf end");
    served.muster(&["logs", &name]).is("out\nerr\nend");
    served.muster(&["logs", &name, "--tail", "2"]).is("err\nend");
    served.muster(&["logs", &format!("task/{name}"), "-c", "addon", "-f"]).is("out\nerr\nend");
}

#[test]
fn what_a_task_writes_is_shown_while_it_runs() {
    let served = Served::running("1");
    let name = submit(&served, &[], "echo one; until test -e ~/go; do sleep 0.01; done; echo two");
    let mut log = Running::start(&mut served.world.command(&["logs", "-f", &name]));
    assert_eq!(log.line(), "one");
    served.world.file("go", "");
    assert_eq!(log.line(), "two");
    assert_eq!(log.code(), 0);
}

#[test]
fn a_log_is_waited_for_until_the_task_starts() {
    let served = Served::running("1");
    let name = submit(&served, &["--suspend"], "echo at last");
    let mut log = Running::start(&mut served.world.command(&["logs", "-f", &name]));
    let patch = format!(
        "{{apiVersion: muster.dev/v1alpha1, kind: Task, metadata: {{name: {name}}}, spec: {{suspend: false}}}}"
    );
    let file = served.world.file("go.yaml", &patch);
    assert_eq!(served.muster(&["apply", "--force-conflicts", "-f", file]).code, 0);
    assert_eq!(log.line(), "at last");
    assert_eq!(log.code(), 0);
}

#[test]
fn a_log_that_is_followed_goes_on_after_the_server_was_restarted() {
    let mut served = Served::running("1");
    let name = submit(&served, &[], "echo begun; until test -e ~/go; do sleep 0.01; done; echo end");
    let mut log = Running::start(&mut served.world.command(&["logs", "-f", &name]));
    assert_eq!(log.line(), "begun");
    let address = served.address();
    served.restart_running(&address);
    assert_eq!(log.line(), "begun", "of the second attempt");
    served.world.file("go", "");
    assert_eq!(log.line(), "end");
    assert_eq!(log.code(), 0);
}

#[test]
fn each_attempt_has_its_own_log() {
    let served = Served::running("1");
    let script = "if test -e ~/again; then echo second; else touch ~/again; echo first; exit 3; fi";
    let name = submit(&served, &["--retries", "1", "--wait"], script);
    served.muster(&["logs", &name, "--attempt", "1"]).is("first\n");
    served.muster(&["logs", &name]).is("second\n");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let served = Served::running("1");
    let name = submit(&served, &["--wait"], "true");
    let said = served.muster(&["logs", &name, "-c", "sidecar"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("addon"), "{}", said.err);
    let said = served.muster(&["logs", &name[..name.len() - 2]]);
    assert!(said.err.contains(&format!("did you mean {name}?")), "{}", said.err);
    World::new().muster(&["logs", "a", "--attempt", "0"]).is_misuse("--attempt");
}

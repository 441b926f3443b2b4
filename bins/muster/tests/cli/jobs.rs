//! Jobs and groups on the command line: `apply`, `watch`, `wait`, `cancel`, `retry`.

use crate::world::Served;

const JOB: &str = r#"
apiVersion: muster.dev/v1alpha1
kind: Job
metadata: {name: build}
spec:
  taskGroups:
    - name: compile
      count: 3
      tasks: [{name: c, spec: {container: {command: [sh, -c, 'test $MUSTER_INDEX != 1']}}}]
    - name: ship
      dependsOn: [compile]
      tasks: [{name: s, spec: {container: {command: ["true"]}}}]
"#;

#[test]
fn a_job_is_watched_line_by_line_to_its_end() {
    let served = Served::running("2");
    served.apply(JOB);
    let said = served.muster(&["watch", "job/build"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let last: Vec<&str> = said.out.lines().rev().take(3).collect();
    assert_eq!(last[0], "build Failed 3/3 (1 failed)");
    assert!(last.contains(&"build/ship Skipped: group compile failed"), "{}", said.out);
}

#[test]
fn waiting_for_a_job_that_fails_fails_and_says_why() {
    let served = Served::running("2");
    served.apply(JOB);
    let said = served.muster(&["wait", "job/build"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert_eq!(said.out, "build Failed: 2 of 2 groups ended; failed: compile\n");
    served.muster(&["wait", "jobs.muster.dev/build", "--for", "condition=Failed"]).is("build Failed\n");
}

#[test]
fn a_retry_is_a_new_job_with_what_did_not_succeed() {
    let served = Served::running("2");
    served.apply(JOB);
    served.muster(&["wait", "job/build"]);
    let said = served.muster(&["retry", "job/build"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let new = served.muster(&["get", "job", said.out.trim_end(), "-o", "json"]).json();
    assert_eq!(new["metadata"]["annotations"]["muster.dev/retry-of"], "build");
    let groups = new["spec"]["taskGroups"].as_array().unwrap();
    assert_eq!((groups[0]["tasks"][0]["name"].as_str(), groups.len()), (Some("c-1"), 2));
    assert_eq!(groups[0]["tasks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_job_that_goes_on_is_not_retried_but_can_be_canceled() {
    let served = Served::running("2");
    let long = JOB.replace("test $MUSTER_INDEX != 1", "sleep 1000");
    served.apply(&long);
    let said = served.muster(&["retry", "job/build"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("has not ended"), "{}", said.err);
    served.muster(&["cancel", "job/build", "--wait"]).is("build ended as Canceled\n");
    served.muster(&["cancel", "job/build"]).is("build had ended as Canceled\n");
}

#[test]
fn what_is_not_there_or_makes_no_sense_is_refused_with_words() {
    let served = Served::running("1");
    for verb in ["watch", "wait", "retry", "cancel"] {
        served
            .muster(&[verb, "job/none"])
            .fails("there is no job \"none\" in namespace default; `muster get jobs` shows those there are");
    }
    served.muster(&["wait", "job/a", "b"]).is_misuse("tasks and jobs cannot be named together");
    let said = served.muster(&["retry", "taskgroup/a"]);
    assert!(said.err.contains("retry its job"), "{}", said.err);
}

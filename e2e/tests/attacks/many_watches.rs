//! A viewer who opens all the watches there are. Others still get theirs.

use muster_e2e::server::Server;
use muster_e2e::wait::SOON;
use serde_json::json;

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";

#[test]
fn one_viewer_does_not_get_all_watches() {
    let server = Server::start(&["--max-watches", "20"]);
    let greedy = server.http().with_token(Some(&server.new_token("greedy", "viewer")));
    let watch = format!("{TASKS}?watch=1");
    let mut open = Vec::new();
    let refused = loop {
        match greedy.request("GET", &watch).try_stream().expect("an answer") {
            (answer, lines) if answer.code == 200 => open.push(lines),
            (answer, _) => break answer,
        }
        assert!(open.len() < 20, "it got all of them");
    };
    assert_eq!((refused.code, open.len()), (429, 18));
    let other = server.http().with_token(Some(&server.new_token("other", "viewer")));
    let mut lines = other.request("GET", &watch).stream();
    let spec = json!({"container": {"command": ["true"]}, "suspend": true});
    let task =
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": "t"}, "spec": spec});
    assert_eq!(server.http().post(TASKS, &task.to_string()).code, 201);
    assert!(lines.find_within(SOON, |line| line.contains("ADDED")).is_some());
}

//! Expressions that would take all memory or all time. They are stopped, their object says so, and others go on.

use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::{Value, json};

const OWN: &str = "/apis/muster.dev/v1alpha1";
const MANAGED: &str = "/apis/resources.muster.dev/v1alpha1/namespaces/default";
/// What a server may take that has little to do.
const MOST_KIB: u64 = 300 * 1024;

fn declare(server: &Server, plural: &str, kind: &str, more: &Value, adapter: &Value) {
    let http = server.http();
    let mut spec = json!({"names": {"kind": kind, "plural": plural}, "adapters": [plural]});
    spec.as_object_mut().expect("a map").extend(more.as_object().cloned().unwrap_or_default());
    let object = |kind: &str, spec: &Value| json!({"apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": {"name": plural}, "spec": spec});
    let answer = http.post(&format!("{OWN}/resourcetypes"), &object("ResourceType", &spec).to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
    let mut spec = adapter.clone();
    spec["resourceType"] = json!(plural);
    let answer =
        http.post(&format!("{OWN}/namespaces/default/adapters"), &object("Adapter", &spec).to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn create(server: &Server, plural: &str, kind: &str, spec: &Value) {
    let object = json!({
        "apiVersion": "resources.muster.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec,
    });
    let answer = server.http().post(&format!("{MANAGED}/{plural}"), &object.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn condition(server: &Server, plural: &str, r#type: &str) -> Value {
    let object = server.http().get(&format!("{MANAGED}/{plural}/x")).json();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == r#type).unwrap_or_default()
}

fn memory_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn expressions_that_take_all_memory_or_time_are_stopped_and_harm_no_other_object_also_after_a_restart() {
    let mut server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let task = json!({"spec": {"container": {"command": ["true"]}}});
    let nested: Vec<_> = (0..6)
        .map(|depth| {
            let value = if depth == 0 {
                format!("{:?}", (0..100).collect::<Vec<_>>())
            } else {
                format!("params.p0.map(x, params.p{})", depth - 1)
            };
            json!({"name": format!("p{depth}"), "value": value})
        })
        .collect();
    let copies = json!([{"name": "a", "value": "resource.spec.l.map(x, resource.spec)"}]);
    let looks = json!({"conditions": [{"type": "Large", "status": "resource.spec.l.all(x, size(resource.spec.text) > 0)"}]});
    declare(&server, "nested", "Nested", &json!({}), &json!({"params": nested, "task": task}));
    declare(&server, "copies", "Copies", &json!({}), &json!({"params": copies, "task": task}));
    declare(&server, "looks", "Looks", &looks, &json!({"task": task}));
    declare(&server, "plain", "Plain", &json!({}), &json!({"task": task}));
    let long = json!({"l": vec![1; 20_000], "text": "x".repeat(500_000)});
    create(&server, "nested", "Nested", &json!({}));
    create(&server, "copies", "Copies", &long);
    create(&server, "looks", "Looks", &long);
    for round in 0..2 {
        for plural in ["nested", "copies", "looks"] {
            wait_for("what costs too much to be stopped", SOON, || {
                condition(&server, plural, "Evaluated")["reason"] == "TooCostly"
            });
        }
        create(&server, "plain", "Plain", &json!({}));
        wait_for("others to go on", SOON, || condition(&server, "plain", "Ready")["status"] == "True");
        assert!(memory_kib(&server) < MOST_KIB, "the server took {} KiB", memory_kib(&server));
        if round == 0 {
            let answer = server.http().delete(&format!("{MANAGED}/plain/x"));
            assert!(answer.code < 300, "{}", answer.text());
            wait_for("it to go", SOON, || server.http().get(&format!("{MANAGED}/plain/x")).code == 404);
            server.kill();
            server.restart();
        }
    }
}

//! Types and adapters that cannot be used are refused with the field and the place of the mistake.

use muster_resources::{AdapterRules, check_type};
use serde_json::{Value, json};

fn of_type(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut spec = json!({
        "names": {"kind": "Cluster", "plural": "clusters", "shortNames": ["cl"]},
        "adapters": ["dns"],
    });
    change(&mut spec);
    let spec = serde_json::from_value(spec).expect("a type");
    check_type("clusters", &spec).iter().map(ToString::to_string).collect()
}

fn of_adapter(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut spec =
        json!({"resourceType": "clusters", "task": {"spec": {"container": {"command": ["true"]}}}});
    change(&mut spec);
    let spec = serde_json::from_value(spec).expect("an adapter");
    let problems = AdapterRules::compile("dns", &spec).err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

#[track_caller]
fn says(problems: &[String], wanted: &str) {
    assert!(problems.len() == 1 && problems[0].contains(wanted), "{problems:#?}");
}

#[test]
fn a_good_type_and_a_good_adapter_are_taken() {
    assert_eq!(of_type(|_| {}), Vec::<String>::new());
    assert_eq!(of_adapter(|_| {}), Vec::<String>::new());
}

#[test]
fn names_of_types_are_checked() {
    says(
        &of_type(|it| it["names"]["kind"] = json!("cluster")),
        "spec.names.kind: \"cluster\": must be CamelCase",
    );
    says(
        &of_type(|it| it["names"]["plural"] = json!("others")),
        "must be the name of the ResourceType, \"clusters\"",
    );
    says(
        &of_type(|it| it["names"]["shortNames"] = json!(["cl", "cl"])),
        "spec.names.shortNames[1]: \"cl\": is given twice",
    );
    says(&of_type(|it| it["names"]["shortNames"] = json!(["C L"])), "spec.names.shortNames[0]");
    says(&of_type(|it| it["adapters"] = json!(["dns", "dns"])), "spec.adapters[1]: \"dns\": is given twice");
    says(&of_type(|it| it["adapters"] = json!(["D N S"])), "spec.adapters[0]");
}

#[test]
fn expressions_of_types_are_refused_with_their_place() {
    let condition = |rule: Value| of_type(|it| it["conditions"] = json!([rule]));
    says(
        &condition(json!({"type": "Available", "status": "true"})),
        "cannot be said by a rule; it always means the same",
    );
    says(&condition(json!({"type": "Ready", "status": "true"})), "spec.conditions[0].type: \"Ready\"");
    says(
        &condition(json!({"type": "A", "status": "1 +"})),
        "spec.conditions[0].status: \"1 +\": line 1, column 4",
    );
    says(&condition(json!({"type": "A", "status": "size(self.items)"})), "gives int, where bool is needed");
    says(
        &condition(json!({"type": "A", "status": "true", "reason": "1"})),
        "spec.conditions[0].reason: \"1\": line 1, column 1: gives int",
    );
    says(&condition(json!({"type": "A"})), "spec.conditions[0].status: \"\": is needed");
    says(&condition(json!({"type": "1", "status": "true"})), "must start with a letter");
    says(
        &of_type(|it| it["pulse"] = json!({"when": "ready + 1"})),
        "spec.pulse.when: \"ready + 1\": line 1, column 1: bool + int",
    );
    says(&of_type(|it| it["pulse"] = json!({"ready": "10ms"})), "must be at least 1s");
    let twice = json!([{"type": "A", "status": "true"}, {"type": "A", "status": "true"}]);
    says(&of_type(|it| it["conditions"] = twice), "spec.conditions[1].type: \"A\": is given twice");
}

#[test]
fn other_parts_of_types_are_checked() {
    says(&of_type(|it| it["schema"] = json!(7)), "must be a JSON Schema");
    says(
        &of_type(|it| it["parent"] = json!({"resourceType": "clusters", "field": "a"})),
        "a type cannot be its own parent",
    );
    says(&of_type(|it| it["parent"] = json!({"resourceType": "others"})), "spec.parent.field");
    says(&of_type(|it| it["columns"] = json!([{"name": "A", "path": "spec.a"}])), "must start with a dot");
}

#[test]
fn adapters_do_exactly_one_thing() {
    says(&of_adapter(|it| it["task"] = Value::Null), "give exactly one of task, manifest and http");
    says(
        &of_adapter(|it| it["http"] = json!({"url": "http://a"})),
        "give exactly one of task, manifest and http",
    );
    says(&of_adapter(|it| it["delete"] = json!({})), "spec.delete: \"\": give exactly one of task and http");
    says(&of_adapter(|it| it["task"] = json!({"spec": {}})), "has nothing to run");
}

#[test]
fn expressions_of_adapters_are_refused_with_their_place() {
    says(&of_adapter(|it| it["params"] = json!([{"name": "a b", "value": "1"}])), "spec.params[0].name");
    says(&of_adapter(|it| it["params"] = json!([{"name": "a"}])), "spec.params[0].value");
    says(
        &of_adapter(|it| it["params"] = json!([{"name": "a", "value": "nope"}])),
        "\"nope\" is not known here",
    );
    says(
        &of_adapter(|it| it["preconditions"] = json!([{"expression": "1"}])),
        "gives int, where bool is needed",
    );
    says(
        &of_adapter(|it| it["preconditions"] = json!([{}])),
        "spec.preconditions[0].expression: \"\": is needed",
    );
    says(
        &of_adapter(|it| it["report"] = json!([{"type": "A", "status": "response.status == 200"}])),
        "\"response\" is not known here",
    );
    says(&of_adapter(|it| it["reportData"] = json!("{")), "spec.reportData");
    says(
        &of_adapter(|it| it["task"]["spec"]["container"]["command"] = json!(["echo", "{{ nope }}"])),
        "spec.task.spec.container.command[1]: \"\": line 1, column 1: \"nope\" is not known here",
    );
    says(&of_adapter(|it| it["lifecycle"] = json!({"ttl": "0s"})), "must be longer than nothing");
}

#[test]
fn calls_and_manifests_are_checked() {
    let http = |http: Value| of_adapter(|it| *it = json!({"resourceType": "clusters", "http": http}));
    says(&http(json!({"url": "dns"})), "must start with http:// or https://");
    says(&http(json!({"url": "http://a", "failed": "1"})), "spec.http.failed");
    let manifest = |template: Value| {
        of_adapter(|it| *it = json!({"resourceType": "clusters", "manifest": {"template": template}}))
    };
    says(&manifest(json!({"kind": "A", "metadata": {"name": "a"}})), "spec.manifest.template.apiVersion");
    says(&manifest(json!({"apiVersion": "v1", "kind": "A"})), "so that applying twice does nothing twice");
}

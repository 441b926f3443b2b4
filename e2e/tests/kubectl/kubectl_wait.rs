//! `kubectl wait`.

use muster_e2e::kubectl::Kubectl;

fn with_task() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    kubectl
}

fn set_status(kubectl: &Kubectl, status: &str) {
    kubectl.ok(&format!(r#"patch task a --subresource=status --type=merge -p '{{"status":{status}}}'"#));
}

#[test]
fn wait_for_a_condition_ends_when_it_holds() {
    let kubectl = with_task();
    let waiting = kubectl.start("wait task/a --for=condition=Done --timeout=20s");
    set_status(
        &kubectl,
        r#"{"conditions":[{"type":"Done","status":"True","reason":"R","lastTransitionTime":"2026-01-01T00:00:00Z"}]}"#,
    );
    let transcript = waiting.finish();
    assert_eq!(
        (transcript.code, &*transcript.stdout),
        (Some(0), "task.muster.dev/a condition met"),
        "{transcript}"
    );
}

#[test]
fn wait_for_a_false_condition_ends_when_it_is_false() {
    let kubectl = with_task();
    set_status(
        &kubectl,
        r#"{"conditions":[{"type":"Done","status":"False","reason":"R","lastTransitionTime":"2026-01-01T00:00:00Z"}]}"#,
    );
    kubectl.ok("wait task/a --for=condition=Done=False --timeout=20s");
}

#[test]
fn wait_for_a_jsonpath_ends_when_it_has_the_value() {
    let kubectl = with_task();
    kubectl.create_task("held", "{kind: k, suspend: true}");
    kubectl.ok("wait task/held --for=jsonpath={.status.state}=Created --timeout=20s");
    let waiting = kubectl.start("wait task/held --for=jsonpath={.status.state}=Ready --timeout=20s");
    kubectl.ok(r#"patch task held --type=merge -p '{"spec":{"suspend":false}}'"#);
    let transcript = waiting.finish();
    assert_eq!(transcript.code, Some(0), "{transcript}");
}

#[test]
fn wait_for_deletion_ends_when_the_object_is_gone() {
    let kubectl = with_task();
    let waiting = kubectl.start("wait task/a --for=delete --timeout=20s");
    kubectl.ok("delete task a");
    let transcript = waiting.finish();
    assert_eq!(transcript.code, Some(0), "{transcript}");
}

#[test]
fn wait_for_creation_ends_when_the_object_is_there() {
    let kubectl = Kubectl::current();
    let waiting = kubectl.start("wait task/a --for=create --timeout=20s");
    kubectl.create_task("a", "{kind: k}");
    let transcript = waiting.finish();
    assert_eq!(transcript.code, Some(0), "{transcript}");
}

#[test]
fn wait_gives_up_after_its_timeout() {
    let said = with_task().fails("wait task/a --for=condition=Done --timeout=300ms");
    assert!(said.contains("timed out waiting for the condition on tasks/a"), "{said}");
}

#[test]
fn wait_for_all_ends_when_it_holds_for_each() {
    let kubectl = with_task();
    kubectl.create_task("b", "{kind: k}");
    let waiting = kubectl.start("wait tasks --all --for=jsonpath={.spec.priority}=3 --timeout=20s");
    for name in ["a", "b"] {
        kubectl.ok(&format!(r#"patch task {name} --type=merge -p '{{"spec":{{"priority":3}}}}'"#));
    }
    let transcript = waiting.finish();
    assert_eq!(transcript.code, Some(0), "{transcript}");
}

#[test]
fn wait_for_a_jsonpath_without_a_value_ends_when_it_is_there() {
    let kubectl = with_task();
    let waiting = kubectl.start("wait task/a --for=jsonpath={.status.conditions[0].message} --timeout=20s");
    set_status(
        &kubectl,
        r#"{"conditions":[{"type":"Done","status":"True","message":"hello","lastTransitionTime":"2026-01-01T00:00:00Z"}]}"#,
    );
    let transcript = waiting.finish();
    assert_eq!(transcript.code, Some(0), "{transcript}");
}

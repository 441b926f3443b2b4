//! Label and field selectors.

use muster_e2e::kubectl::Kubectl;

fn with_labelled_tasks() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_labelled("red", "{color: red, size: '1'}");
    kubectl.create_labelled("green", "{color: green, size: '5'}");
    kubectl.create_labelled("plain", "{}");
    kubectl
}

/// The names of the tasks that a selector chooses.
fn chosen(kubectl: &Kubectl, selector: &str) -> String {
    let shown = kubectl.ok(&format!("get tasks {selector} -o custom-columns=N:.metadata.name --no-headers"));
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn labels_are_selected_by_every_operator() {
    let kubectl = with_labelled_tasks();
    for (selector, expected) in [
        ("color=red", "red"),
        ("color==red", "red"),
        ("color!=red", "green plain"),
        ("color in (red,green)", "green red"),
        ("color notin (red,blue)", "green plain"),
        ("color", "green red"),
        ("!color", "plain"),
        ("size>1", "green"),
        ("size<5", "red"),
        ("color=red,size=1", "red"),
        ("color=red,size=2", ""),
    ] {
        assert_eq!(chosen(&kubectl, &format!("-l '{selector}'")), expected, "{selector}");
    }
}

#[test]
fn fields_are_selected_by_every_operator() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: analyzer, locator: here}");
    kubectl.create_task("b", "{addon: java, name: 'my task', suspend: true}");
    for (selector, expected) in [
        ("metadata.name=a", "a"),
        ("metadata.name!=a", "b"),
        ("spec.kind=analyzer", "a"),
        ("spec.kind==analyzer,spec.locator=here", "a"),
        ("spec.addon!=", "b"),
        ("spec.name=my task", "b"),
        ("status.state=Ready", "a"),
        ("status.state=Created", "b"),
        ("status.state!=Created", "a"),
    ] {
        assert_eq!(chosen(&kubectl, &format!("--field-selector '{selector}'")), expected, "{selector}");
    }
}

#[test]
fn field_selector_on_the_namespace_reaches_over_all_of_them() {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: k}");
    let selector = format!("-A --field-selector metadata.namespace={}", kubectl.namespace());
    assert_eq!(chosen(&kubectl, &selector), "a");
}

#[test]
fn unsupported_field_selector_names_the_field_and_those_there_are() {
    let said = Kubectl::current().fails("get tasks --field-selector spec.nonsense=a");
    assert!(said.contains("field label not supported: spec.nonsense"), "{said}");
    assert!(said.contains("status.state"), "{said}");
}

#[test]
fn labels_and_fields_select_together() {
    let kubectl = with_labelled_tasks();
    assert_eq!(chosen(&kubectl, "-l color --field-selector metadata.name!=red"), "green");
}

#[test]
fn selectors_hold_over_pages() {
    let kubectl = with_labelled_tasks();
    assert_eq!(chosen(&kubectl, "-l color --chunk-size=1"), "green red");
}

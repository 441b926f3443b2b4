//! What happens to dependents when their owner is deleted: in the background, in the foreground, or orphaned.

use muster_e2e::kubectl::{Kubectl, manifest};
use muster_e2e::wait::{SOON, wait_for};

/// A kubectl with an owner `o`.
fn with_owner() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_task("o", "{kind: k}");
    kubectl
}

/// Creates a task that belongs to `owner`; further metadata in YAML's flow style begins with a comma.
fn create_dependent(kubectl: &Kubectl, name: &str, owner: &str, block: bool, further: &str) {
    let uid = kubectl.field(&format!("task/{owner}"), ".metadata.uid");
    let reference = format!(
        "{{apiVersion: muster.dev/v1alpha1, kind: Task, name: {owner}, uid: {uid}, blockOwnerDeletion: {block}}}"
    );
    let metadata = format!("{{name: {name}, ownerReferences: [{reference}]{further}}}");
    kubectl.given(manifest("Task", &metadata, "{kind: k}")).ok("create -f -");
}

fn names(kubectl: &Kubectl) -> String {
    kubectl.ok("get tasks -o jsonpath={.items[*].metadata.name}")
}

const HELD: &str = ", finalizers: [example.com/hold]";
const RELEASE: &str = r#"{"metadata":{"finalizers":null}}"#;

#[test]
fn background_deletion_removes_dependents_afterwards() {
    let kubectl = with_owner();
    create_dependent(&kubectl, "d", "o", true, "");
    kubectl.ok("delete task o --cascade=background");
    wait_for("the dependent to go", SOON, || names(&kubectl).is_empty());
}

#[test]
fn background_deletion_reaches_the_dependents_of_dependents() {
    let kubectl = with_owner();
    create_dependent(&kubectl, "d", "o", true, "");
    create_dependent(&kubectl, "e", "d", true, "");
    kubectl.ok("delete task o");
    wait_for("all dependents to go", SOON, || names(&kubectl).is_empty());
}

#[test]
fn background_deletion_does_not_wait_for_a_dependent_that_is_held() {
    let kubectl = with_owner();
    create_dependent(&kubectl, "d", "o", true, HELD);
    kubectl.ok("delete task o --cascade=background --timeout=20s");
    wait_for("the dependent to be marked", SOON, || {
        !kubectl.field("task/d", ".metadata.deletionTimestamp").is_empty()
    });
    assert_eq!(names(&kubectl), "d");
}

#[test]
fn foreground_deletion_waits_for_dependents_that_block() {
    let kubectl = with_owner();
    create_dependent(&kubectl, "d", "o", true, HELD);
    kubectl.ok("delete task o --cascade=foreground --wait=false");
    wait_for("the dependent to be marked", SOON, || {
        !kubectl.field("task/d", ".metadata.deletionTimestamp").is_empty()
    });
    assert_eq!(kubectl.field("task/o", ".metadata.finalizers"), r#"["foregroundDeletion"]"#);
    kubectl.ok(&format!("patch task d --type=merge -p '{RELEASE}'"));
    wait_for("the owner to follow", SOON, || names(&kubectl).is_empty());
}

#[test]
fn foreground_deletion_does_not_wait_for_dependents_that_do_not_block() {
    let kubectl = with_owner();
    create_dependent(&kubectl, "d", "o", false, HELD);
    kubectl.ok("delete task o --cascade=foreground --timeout=20s");
    wait_for("the dependent to be marked", SOON, || {
        !kubectl.field("task/d", ".metadata.deletionTimestamp").is_empty()
    });
    assert_eq!(names(&kubectl), "d");
}

#[test]
fn foreground_deletion_removes_dependents_before_the_owner() {
    let kubectl = with_owner();
    create_dependent(&kubectl, "d", "o", true, "");
    let mut watch = kubectl.start("get tasks -w --output-watch-events --no-headers");
    watch.expect_line("o ");
    kubectl.ok("delete task o --cascade=foreground --timeout=20s");
    assert!(watch.expect_line("DELETED").starts_with("DELETED    d "));
    assert!(watch.expect_line("DELETED").starts_with("DELETED    o "));
}

#[test]
fn orphaning_deletion_keeps_dependents_without_their_owner() {
    let kubectl = with_owner();
    create_dependent(&kubectl, "d", "o", true, "");
    kubectl.ok("delete task o --cascade=orphan --timeout=20s");
    assert_eq!(names(&kubectl), "d");
    assert_eq!(kubectl.field("task/d", ".metadata.ownerReferences"), "");
}

#[test]
fn a_dependent_of_two_owners_goes_with_the_last() {
    let kubectl = with_owner();
    kubectl.create_task("p", "{kind: k}");
    let uids = ["o", "p"].map(|name| kubectl.field(&format!("task/{name}"), ".metadata.uid"));
    let reference = |name: &str, uid: &str| {
        format!("{{apiVersion: muster.dev/v1alpha1, kind: Task, name: {name}, uid: {uid}}}")
    };
    let owners = format!("{}, {}", reference("o", &uids[0]), reference("p", &uids[1]));
    kubectl
        .given(manifest("Task", &format!("{{name: d, ownerReferences: [{owners}]}}"), "{kind: k}"))
        .ok("create -f -");
    kubectl.ok("delete task o");
    wait_for("the dependent to forget one owner", SOON, || {
        kubectl.field("task/d", ".metadata.ownerReferences[*].name") == "p"
    });
    kubectl.ok("delete task p");
    wait_for("the dependent to go", SOON, || names(&kubectl).is_empty());
}

#[test]
fn a_dependent_of_an_owner_that_never_was_goes() {
    let kubectl = Kubectl::current();
    let owner = "{apiVersion: muster.dev/v1alpha1, kind: Task, name: ghost, uid: 00000000-0000-0000-0000-000000000000}";
    kubectl
        .given(manifest("Task", &format!("{{name: d, ownerReferences: [{owner}]}}"), "{kind: k}"))
        .ok("create -f -");
    wait_for("the dependent to go", SOON, || names(&kubectl).is_empty());
}

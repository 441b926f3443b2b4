//! `kubectl auth`, and what each role may do.

use muster_e2e::kubectl::{Kubectl, task};
use muster_e2e::server::Server;

/// A kubectl that holds a new token of a role.
fn as_role(name: &str, role: &str) -> Kubectl {
    Kubectl::current().with_token(&Server::shared().new_token(name, role))
}

#[test]
fn whoami_names_the_token_and_its_role() {
    let said = as_role("whoami-editor", "editor").ok("auth whoami -o json");
    let review: serde_json::Value = serde_json::from_str(&said).unwrap();
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "whoami-editor");
    assert!(user["groups"].as_array().unwrap().contains(&"editor".into()), "{said}");
}

#[test]
fn can_i_tells_an_admin_yes() {
    let kubectl = Kubectl::current();
    for ask in
        ["get tasks", "create tasks", "delete applications.muster.dev", "patch tasks/status", "'*' '*'"]
    {
        assert_eq!(kubectl.ok(&format!("auth can-i {ask}")), "yes\n", "{ask}");
    }
}

#[test]
fn can_i_tells_an_editor_what_it_may_change() {
    let kubectl = as_role("can-i-editor", "editor");
    for ask in ["get tasks", "create tasks", "deletecollection taskkinds", "get eventsinks", "watch robots"] {
        assert_eq!(kubectl.ok(&format!("auth can-i {ask}")), "yes\n", "{ask}");
    }
    for ask in ["create eventsinks", "update adapters", "patch resourcetypes", "delete robots", "'*' '*'"] {
        let said = kubectl.fails(&format!("auth can-i {ask}"));
        assert!(said.starts_with("no - ") && said.contains("it takes the role admin"), "{ask}: {said}");
    }
}

#[test]
fn can_i_tells_a_viewer_that_it_may_only_look() {
    let kubectl = as_role("can-i-viewer", "viewer");
    for ask in ["get tasks", "list tasks", "watch tasks"] {
        assert_eq!(kubectl.ok(&format!("auth can-i {ask}")), "yes\n", "{ask}");
    }
    for ask in ["create tasks", "delete tasks", "patch tasks", "'*' tasks"] {
        assert!(kubectl.fails(&format!("auth can-i {ask}")).starts_with("no"), "{ask}");
    }
}

#[test]
fn can_i_list_shows_the_rules_of_a_role() {
    let said = as_role("can-i-list", "viewer").ok("auth can-i --list");
    assert!(said.contains("[get list watch]"), "{said}");
}

#[test]
fn can_i_answers_for_paths_that_are_no_resources() {
    assert_eq!(as_role("can-i-paths", "viewer").ok("auth can-i get /metrics"), "yes\n");
}

#[test]
fn a_viewer_sees_but_cannot_change() {
    let admin = Kubectl::current();
    admin.create_task("a", "{kind: k}");
    let viewer = admin.with_token(&Server::shared().new_token("sees", "viewer"));
    assert_eq!(viewer.ok("get tasks -o name"), "task.muster.dev/a\n");
    let said = viewer.fails("delete task a");
    assert!(said.contains("(Forbidden)") && said.contains("cannot delete"), "{said}");
    assert_eq!(admin.ok("get tasks -o name"), "task.muster.dev/a\n");
}

#[test]
fn an_editor_creates_and_deletes() {
    let editor = as_role("creates", "editor");
    editor.given(task("a", "{kind: k}")).ok("create -f -");
    editor.ok("delete task a");
}

#[test]
fn a_wrong_token_is_refused() {
    let said = Kubectl::current().with_token("muster_wrong").fails("get tasks");
    assert!(said.contains("Unauthorized") || said.contains("provide credentials"), "{said}");
}

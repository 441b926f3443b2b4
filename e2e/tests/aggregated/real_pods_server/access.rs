//! Who may do what: the roles of the cluster decide.

use muster_e2e::client_tool::ClientTool;
use muster_e2e::installation::Installation;
use muster_e2e::wait::{SOON, holds_within};

use crate::real_pods_server::space::{Space, task};

#[test]
fn a_user_without_a_role_is_refused_in_the_words_of_the_cluster() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    let token = space.new_user("stranger");
    let said = space.fails(&format!("--token {token} get tasks"));
    let expected = format!(
        "User \"system:serviceaccount:{0}:stranger\" cannot list resource \"tasks\" in API group \"muster.dev\" in the \
         namespace \"{0}\"",
        space.name()
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn one_who_may_view_a_namespace_reads_its_tasks_and_changes_none() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    space.given(&task("shown", "echo shown"), "create -f -");
    space.wait("shown", "Succeeded");
    let token = space.new_user("viewer");
    let who = format!("{}:viewer", space.name());
    space.ok(&format!("create rolebinding viewers --clusterrole=view --serviceaccount={who}"));
    let may =
        || space.ok_as(&token, "get tasks -o name").is_some_and(|names| names == "task.muster.dev/shown\n");
    assert!(holds_within(SOON, may), "the role was given in vain");
    let said = space.fails(&format!("--token {token} delete task shown"));
    assert!(said.contains("cannot delete resource \"tasks\""), "{said}");
    let log = format!("get --raw /apis/muster.dev/v1alpha1/namespaces/{}/tasks/shown/log", space.name());
    assert_eq!(space.ok(&format!("--token {token} {log}")), "shown\n");
    let elsewhere = space.fails(&format!("--token {token} get tasks --all-namespaces"));
    assert!(elsewhere.contains("at the cluster scope"), "{elsewhere}");
}

#[test]
fn one_who_may_edit_a_namespace_makes_tasks_and_is_named_on_them() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    let token = space.new_user("editor");
    let who = format!("{}:editor", space.name());
    space.ok(&format!("create rolebinding editors --clusterrole=edit --serviceaccount={who}"));
    let make = || space.ok_as(&token, "create -f -").is_some();
    assert!(holds_within(SOON, make), "the role was given in vain");
    let by = space.ok("get task mine -o jsonpath={.status.createUser}");
    assert_eq!(by, format!("system:serviceaccount:{who}"));
}

#[test]
fn a_token_of_the_cluster_is_known_at_the_servers_own_address() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    let token = space.new_user("direct");
    let ip = installation.kubectl(
        "-n muster get pods -l app.kubernetes.io/name=muster --field-selector=status.phase=Running \
         -o jsonpath={.items[0].status.podIP}",
    );
    let direct = ClientTool::named_by("MUSTER_KUBECTL").env("KUBECONFIG", "/dev/null");
    let ask = |token: &str| {
        let path = format!("/apis/muster.dev/v1alpha1/namespaces/{}/tasks", space.name());
        direct.fails(&format!(
            "--server https://{ip}:7400 --insecure-skip-tls-verify --token {token} get --raw {path}"
        ))
    };
    let said = ask(&token);
    assert!(said.contains("system:serviceaccount") && said.contains("cannot list resource"), "{said}");
    let said = ask("nonsense");
    assert!(said.contains("Unauthorized") || said.contains("logged in"), "{said}");
}

#[test]
fn the_server_itself_may_do_no_more_than_it_needs() {
    let installation = Installation::shared();
    let may = |what: &str| {
        let asked = format!("auth can-i {what} --as=system:serviceaccount:muster:muster");
        installation.tool().run(&asked).stdout.trim().to_owned()
    };
    for what in
        ["create pods -n a", "delete pods -n a", "get pods --subresource=log -n a", "create secrets -n a"]
    {
        assert_eq!(may(what), "yes", "{what}");
    }
    for what in [
        "get secrets -n a",
        "list secrets -n muster",
        "create deployments.apps -n a",
        "patch pods -n a",
        "create pods --subresource=exec -n a",
        "patch apiservices.apiregistration.k8s.io/v1.apps",
        "create clusterrolebindings",
        "get nodes",
    ] {
        assert_eq!(may(what), "no", "{what}");
    }
}

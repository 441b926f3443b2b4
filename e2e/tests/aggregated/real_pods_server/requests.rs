//! What kubectl and muster do through the API server of the cluster.

use muster_e2e::installation::Installation;
use serde_json::json;

use crate::real_pods_server::space::{Space, task};

#[test]
fn a_task_is_made_runs_as_a_pod_and_its_log_is_read_through_the_cluster() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    assert_eq!(
        space.given(&task("hello", "echo hello from a pod"), "create -f -"),
        "task.muster.dev/hello created\n"
    );
    space.wait("hello", "Succeeded");
    assert_eq!(space.muster().ok("logs hello"), "hello from a pod\n");
    let table = space.ok("get tasks");
    assert!(table.starts_with("NAME    STATE") && table.contains("hello   Succeeded"), "{table}");
    let attempt = space.ok("get task hello -o jsonpath={.status.attempts[0].runtime}");
    assert_eq!(attempt, "pod");
}

#[test]
fn a_log_is_followed_through_the_cluster() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    space.given(&task("slow", "echo first; sleep 3; echo last"), "create -f -");
    assert_eq!(space.muster().ok("logs --follow slow"), "first\nlast\n");
}

#[test]
fn changes_are_watched_through_the_cluster() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    let mut watch =
        space.start("get tasks --watch --no-headers -o custom-columns=N:.metadata.name,S:.status.state");
    // One that ends at once may be seen as ended at once.
    space.given(&task("seen", "sleep 3"), "create -f -");
    for state in ["Pending", "Running", "Succeeded"] {
        assert!(watch.expect_line(state).starts_with("seen"));
    }
}

#[test]
fn what_is_served_is_discovered_and_explained_beside_what_the_cluster_serves() {
    let installation = Installation::shared();
    let kinds = installation.kubectl("api-resources --no-headers -o name");
    for name in ["tasks.muster.dev", "schedules.muster.dev", "deployments.apps", "jobs.batch"] {
        assert!(kinds.lines().any(|line| line == name), "{name}:\n{kinds}");
    }
    let said = installation.kubectl("explain task.spec.priority --api-version=muster.dev/v1alpha1");
    assert!(said.contains("priority <integer>") && said.contains("higher priority start first"), "{said}");
    assert!(installation.kubectl("explain deployment.spec.replicas").contains("replicas <integer>"));
}

#[test]
fn objects_are_applied_and_refused_as_by_the_cluster_itself() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    let mut kind = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "TaskKind", "metadata": {"name": "analyzer"}, "spec": {"priority": 5},
    });
    assert!(space.given(&kind, "apply --server-side -f -").contains("serverside-applied"));
    kind["spec"]["priority"] = json!(7);
    space.given(&kind, "apply --server-side -f -");
    assert_eq!(space.ok("get taskkind analyzer -o jsonpath={.spec.priority}"), "7");
    kind["spec"]["priority"] = json!("high");
    let said = space.fails("patch taskkind analyzer --type=merge -p '{\"spec\":{\"priority\":\"high\"}}'");
    assert!(said.contains("priority"), "{said}");
}

#[test]
fn an_attempt_reports_to_the_server_and_trusts_its_certificate() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    let mut reporter = task("reporter", "");
    reporter["spec"]["container"] = json!({
        "image": Installation::image(), "command": ["/muster", "report", "--activity", "halfway", "--total", "2"],
    });
    space.given(&reporter, "create -f -");
    space.wait("reporter", "Succeeded");
    assert_eq!(space.ok("get task reporter -o jsonpath={.status.activity[0]},{.status.total}"), "halfway,2");
}

#[test]
fn tasks_go_with_their_namespace() {
    let installation = Installation::shared();
    let space = Space::new(&installation);
    space.given(&task("doomed", "true"), "create -f -");
    space.wait("doomed", "Succeeded");
    installation.kubectl(&format!("delete namespace {} --timeout=55s", space.name()));
    let left = installation.kubectl(&format!("get tasks --namespace {} -o name", space.name()));
    assert_eq!(left, "");
}

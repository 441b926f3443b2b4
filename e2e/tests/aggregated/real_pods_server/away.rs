//! A server that is away: the cluster says so, and everything is there when it comes back.

use muster_e2e::installation::Installation;
use muster_e2e::wait::wait_for;

use crate::real_pods_server::space::{Space, task};

const MINUTE: std::time::Duration = std::time::Duration::from_mins(1);

fn condition(installation: &Installation, field: &str) -> String {
    let path = format!("jsonpath={{.status.conditions[0].{field}}}");
    installation.kubectl(&format!("get apiservice v1alpha1.muster.dev -o {path}"))
}

#[test]
fn a_server_that_is_away_is_said_to_be_and_loses_nothing() {
    let installation = Installation::alone();
    let space = Space::new(&installation);
    space.given(&task("kept", "echo kept"), "create -f -");
    space.wait("kept", "Succeeded");
    installation.kubectl("-n muster scale deployment/muster --replicas=0");
    wait_for("the cluster to notice", MINUTE, || condition(&installation, "status") == "False");
    assert_eq!(condition(&installation, "reason"), "MissingEndpoints");
    let said = space.fails("get --raw /apis/muster.dev/v1alpha1/tasks");
    assert!(said.contains("unable to handle the request") || said.contains("unavailable"), "{said}");
    // Nothing else of the cluster is harmed.
    space.ok("get pods");
    installation.kubectl("-n muster scale deployment/muster --replicas=1");
    installation.wait_available();
    assert_eq!(space.ok("get task kept -o jsonpath={.status.state}"), "Succeeded");
    assert_eq!(space.muster().ok("logs kept"), "kept\n");
}

#[test]
fn trust_that_is_lost_is_told_again() {
    let installation = Installation::alone();
    let bundle = || installation.kubectl("get apiservice v1alpha1.muster.dev -o jsonpath={.spec.caBundle}");
    let before = bundle();
    assert!(!before.is_empty());
    installation.kubectl(
        "patch apiservice v1alpha1.muster.dev --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/caBundle\"}]'",
    );
    wait_for("the server to write it again", MINUTE, || bundle() == before);
    installation.wait_available();
}

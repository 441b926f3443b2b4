//! What the cluster refuses: said on the task, and nothing else is harmed.

use muster_e2e::cluster::{Cluster, POD, Tasks, records};
use muster_e2e::wait::wait_for;
use serde_json::json;

#[test]
fn what_the_cluster_refuses_is_said_on_the_task_and_others_run() {
    let cluster = Cluster::new();
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("refused", "true", &json!({ "pod": { "priorityClassName": "no-such-class" } }));
    tasks.shell("unknown", "true", &json!({ "pod": { "containers": [] } }));
    tasks.shell("wrong", "true", &json!({ "pod": { "nodeSelector": 5 } }));
    tasks.make("Task", "tasks", "no-image", &json!({ "container": { "command": ["true"] } }));
    tasks.shell("fine", "true", &json!({}));
    let said = |name: &str| tasks.wait(name, "Failed")["status"]["message"].as_str().unwrap().to_owned();
    assert!(said("refused").contains("no-such-class"), "{}", said("refused"));
    assert!(said("unknown").contains("it may have affinity"), "{}", said("unknown"));
    assert!(said("wrong").contains("nodeSelector"), "{}", said("wrong"));
    assert!(said("no-image").contains("has no image"), "{}", said("no-image"));
    tasks.wait("fine", "Succeeded");
}

#[test]
fn a_namespace_that_is_missing_is_named() {
    let cluster = Cluster::new();
    let server = cluster.server(&["--pod-namespace", "no-such-namespace"]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("homeless", "true", &json!({}));
    let task = tasks.wait("homeless", "Failed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "NamespaceNotFound", "{task:#}");
}

#[test]
fn a_quota_of_no_pods_blocks_and_fails_nothing() {
    let cluster = Cluster::new();
    cluster.limit_pods(0);
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("waits", "true", &json!({}));
    let task = tasks.wait("waits", "QuotaBlocked");
    assert_eq!(task["status"]["waitingFor"]["reason"], "Quota", "{task:#}");
    assert!(records(&task).contains(&"QuotaBlocked".to_owned()));
    cluster.kubectl(&["delete", "quota", "pods"]);
    tasks.wait("waits", "Succeeded");
}

#[test]
fn what_a_policy_of_the_cluster_refuses_fails_with_its_words() {
    let cluster = Cluster::new();
    let name = format!("no-pods-{}", cluster.namespace);
    let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": cluster.namespace } });
    let rules = json!([{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }]);
    cluster.create(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "namespaceSelector": here, "resourceRules": rules },
            "validations": [{ "expression": "false", "message": "no pods on Sundays" }],
        },
    }));
    cluster.create(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"], "matchResources": { "namespaceSelector": here } },
    }));
    wait_for("the policy to hold", POD, || {
        let tried = cluster.run(&["run", "probe", "--image=x", "--dry-run=server"]);
        String::from_utf8_lossy(&tried.stderr).contains("no pods on Sundays")
    });
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("refused", "true", &json!({}));
    let task = tasks.wait("refused", "Failed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "PodRefused", "{task:#}");
    assert!(task["status"]["message"].as_str().unwrap().contains("no pods on Sundays"), "{task:#}");
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        cluster.kubectl(&["delete", kind, &name]);
    }
}

#[test]
fn while_a_webhook_of_the_cluster_does_not_answer_tasks_wait_and_say_so() {
    let cluster = Cluster::new();
    let name = format!("silent-{}", cluster.namespace);
    cluster.create(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": name },
        "webhooks": [{
            "name": "silent.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 1,
            "failurePolicy": "Fail", "clientConfig": { "url": "https://127.0.0.1:1/" },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": cluster.namespace } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
        }],
    }));
    wait_for("the webhook to be asked", POD, || {
        let tried = cluster.run(&["run", "probe", "--image=x", "--dry-run=server"]);
        String::from_utf8_lossy(&tried.stderr).contains("silent.example.org")
    });
    let server = cluster.server(&[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("waits", "true", &json!({}));
    wait_for("the task to say why it waits", POD, || {
        let said = tasks.get("waits")["status"]["message"].as_str().unwrap_or_default().to_owned();
        said.contains("silent.example.org")
    });
    assert_eq!(tasks.get("waits")["status"]["state"], "Pending");
    cluster.kubectl(&["delete", "validatingwebhookconfiguration", &name]);
    let task = tasks.wait("waits", "Succeeded");
    assert_eq!(task["status"]["attempt"], 1, "{task:#}");
}

#[test]
fn a_server_without_permission_says_which_verb_it_lacks_and_the_role_that_grants_it() {
    let cluster = Cluster::new();
    let kubeconfig = cluster.kubeconfig_of_new_user("weak");
    let server = cluster.server_through(kubeconfig.to_str().unwrap(), &[]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("refused", "true", &json!({}));
    let task = tasks.wait("refused", "Failed");
    assert_eq!(task["status"]["attempts"][0]["reason"], "NotPermitted", "{task:#}");
    let said = task["status"]["message"].as_str().unwrap();
    assert!(said.contains("cannot create resource \"pods\""), "{said}");
    let advice =
        format!("kubectl create role muster --namespace={} --verb=create --resource=pods", cluster.namespace);
    assert!(said.contains(&advice), "{said}");
}

#[test]
fn a_server_that_may_make_pods_and_not_see_them_says_so() {
    let cluster = Cluster::new();
    let kubeconfig = cluster.kubeconfig_of_new_user("blind");
    cluster.kubectl(&["create", "role", "blind", "--verb=create", "--resource=pods,secrets"]);
    let who = format!("--serviceaccount={}:blind", cluster.namespace);
    cluster.kubectl(&["create", "rolebinding", "blind", "--role=blind", &who]);
    let server =
        cluster.server_through(kubeconfig.to_str().unwrap(), &["--pod-namespace", &cluster.namespace]);
    let tasks = Tasks::of(&server, &cluster);
    tasks.shell("unseen", "true", &json!({}));
    wait_for("the task to say why it waits", POD, || {
        tasks.get("unseen")["status"]["waitingFor"]["reason"] == "NotPermitted"
    });
    let said = tasks.get("unseen")["status"]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("--verb=list --resource=pods"), "{said}");
    cluster.kubectl(&[
        "create",
        "role",
        "sees",
        "--verb=get,list,watch,delete",
        "--resource=pods,pods/log,events",
    ]);
    cluster.kubectl(&["create", "rolebinding", "sees", "--role=sees", &who]);
    tasks.wait("unseen", "Succeeded");
}

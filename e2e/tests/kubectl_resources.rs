//! Managed resources with real kubectl, old and new: kinds that are declared, resources that adapters bring to Ready by
//! real processes, and their end.

use std::path::Path;
use std::sync::OnceLock;

use muster_e2e::kubectl::Kubectl;
use muster_e2e::server::Server;
use serde_json::json;

const READY: &str = "-o \"jsonpath={.status.conditions[?(@.type=='Ready')].status}\"";

/// The server of these tests, which runs tasks and knows the kinds of the examples.
fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&["--roles", "api,engine", "--slots", "4"]))
}

fn example(name: &str) -> String {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e lies in the repository");
    repository.join("examples/clusters").join(name).display().to_string()
}

/// kubectl in a namespace of its own, on a server that knows clusters and node pools.
fn kubectl() -> Kubectl {
    declared("MUSTER_KUBECTL")
}

fn declared(variable: &str) -> Kubectl {
    static TYPES: OnceLock<()> = OnceLock::new();
    let kubectl = Kubectl::on(variable, server());
    TYPES.get_or_init(|| {
        Kubectl::on("MUSTER_KUBECTL", server()).ok(&format!("apply -f {}", example("types.yaml")));
    });
    kubectl
}

fn managed(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: resources.muster.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn cluster(name: &str) -> String {
    managed("Cluster", name, "{region: north, baseDomain: example.org}")
}

#[test]
fn a_declared_kind_is_listed_and_explained_at_once() {
    let kubectl = kubectl();
    let listed = kubectl.ok("api-resources --api-group=resources.muster.dev --no-headers");
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        ["clusters", "mcl", "resources.muster.dev/v1alpha1", "true", "Cluster"],
        ["nodepools", "mnp", "resources.muster.dev/v1alpha1", "true", "NodePool"],
    ] {
        assert!(rows.iter().any(|found| found[..] == row), "{listed}");
    }
    let told = kubectl.ok("explain mcl.spec");
    for part in ["KIND:       Cluster", "region\t<string> -required-", "size\t<integer>"] {
        assert!(told.contains(part), "{part} is missing in:\n{told}");
    }
    let told = kubectl.ok("explain nodepool.status.adapters");
    assert!(told.contains("observedGeneration"), "{told}");
}

#[test]
fn a_cluster_becomes_ready_is_edited_and_goes_with_its_node_pools() {
    let kubectl = kubectl();
    kubectl.ok(&format!("apply -f {}", example("adapters.yaml")));
    let shown = "NAME:.metadata.name,GENERATION:.metadata.generation,\
                 READY:.status.conditions[?(@.type==\"Ready\")].status";
    let mut watch = kubectl.start(&format!("get clusters --watch --no-headers -o 'custom-columns={shown}'"));
    let said = kubectl.ok(&format!("create -f {}", example("cluster.yaml")));
    assert!(said.contains("cluster.resources.muster.dev/blue created"), "{said}");
    watch.expect_line("blue   1     False");
    watch.expect_line("blue   1     True");
    kubectl.ok("wait --for=condition=Ready cluster/blue nodepool/blue-workers --timeout=120s");
    let table = kubectl.ok("get mcl");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "READY", "AVAILABLE", "REGION", "SIZE", "AGE"]);
    assert_eq!(rows[1][..5], ["blue", "True", "True", "north", "3"]);
    let pools = kubectl.ok("get nodepools --field-selector spec.cluster=blue -o name");
    assert_eq!(pools, "nodepool.resources.muster.dev/blue-workers\n");
    // An adapter is held back, so that nothing else moves while we look.
    kubectl.ok("patch adapter validation --type=merge -p '{\"spec\": {\"suspend\": true}}'");
    let said = kubectl.env("KUBE_EDITOR", "sed -i 's/size: 3/size: 4/'").ok("edit cluster blue");
    assert!(said.contains("edited"), "{said}");
    watch.expect_line("blue   2     False");
    assert_eq!(kubectl.ok(&format!("get cluster blue {READY}")), "False");
    assert_eq!(kubectl.field("cluster/blue", ".status.conditions[?(@.type=='Available')].status"), "True");
    kubectl.ok("patch adapter validation --type=merge -p '{\"spec\": {\"suspend\": false}}'");
    kubectl.ok("wait --for=condition=Ready cluster/blue --timeout=120s");
    let tasks =
        kubectl.ok("get tasks -l resources.muster.dev/adapter=dns,resources.muster.dev/generation=2 -o name");
    assert_eq!(tasks.lines().count(), 1, "{tasks}");
    kubectl.ok("delete cluster blue --timeout=120s");
    assert_eq!(kubectl.ok("get clusters,nodepools -o name"), "");
    watch.expect_line("blue");
}

#[test]
fn a_spec_that_its_schema_refuses_is_answered_with_the_paths() {
    let kubectl = kubectl();
    let wrong = managed("Cluster", "wrong", "{region: mars, baseDomain: x, size: 0}");
    let said = kubectl.given(wrong).fails("create -f -");
    for part in [
        "spec.region: Invalid value: \"mars\": must be one of \"north\", \"south\"",
        "spec.baseDomain: Invalid value: \"x\": must have at least 3 characters, has 1",
        "spec.size: Invalid value: \"0\": must be at least 1",
    ] {
        assert!(said.contains(part), "{part} is missing in:\n{said}");
    }
    let strange = managed("Cluster", "strange", "{region: north, baseDomain: example.org, zone: x}");
    let said = kubectl.given(strange).fails("create -f -");
    assert!(said.contains("unknown field \"spec.zone\""), "{said}");
    let alone = managed("NodePool", "alone", "{cluster: nobody, nodes: 1}");
    let said = kubectl.given(alone).fails("create -f -");
    assert!(said.contains("spec.cluster: Invalid value: \"nobody\""), "{said}");
    assert_eq!(kubectl.ok("get clusters,nodepools -o name"), "");
}

#[test]
fn a_program_of_ones_own_reports_with_a_token_for_nothing_else() {
    let kubectl = kubectl();
    kubectl.given(cluster("own")).ok("create -f -");
    let path = format!(
        "/apis/resources.muster.dev/v1alpha1/namespaces/{}/clusters/own/statuses",
        kubectl.namespace()
    );
    let conditions = ["Applied", "Available", "Health"].map(|name| json!({"type": name, "status": "True"}));
    let report = json!({
        "observedGeneration": 1, "conditions": conditions, "data": {"zone": "own.example.org"},
    });
    for adapter in ["validation", "dns", "pull-secret"] {
        let wanted = json!({"name": format!("own-{adapter}"), "role": "reporter", "adapter": adapter});
        let reporter = kubectl.with_token(&server().new_token_of(&wanted));
        let said = reporter.given(report.to_string()).ok(&format!("replace --raw {path} -f -"));
        assert!(said.contains("\"outcome\":\"Accepted\""), "{said}");
        reporter.ok("get cluster own");
        let said = reporter.fails("delete cluster own");
        assert!(said.contains("role reporter cannot delete"), "{said}");
        assert!(reporter.run("auth can-i create tasks").stdout.starts_with("no"));
    }
    kubectl.ok("wait --for=condition=Ready cluster/own --timeout=60s");
    let wanted = json!({"name": "own-other", "role": "reporter", "adapter": "other"});
    let other = kubectl.with_token(&server().new_token_of(&wanted));
    let said = other.given(report.to_string()).fails(&format!("replace --raw {path} -f -"));
    assert!(said.contains("no adapter of this type"), "{said}");
}

#[test]
fn a_type_goes_when_nothing_is_of_it_and_comes_back_without_a_restart() {
    let kubectl = kubectl();
    let declared = "apiVersion: muster.dev/v1alpha1\nkind: ResourceType\nmetadata: {name: gadgets}\n\
                    spec: {names: {kind: Gadget, plural: gadgets}}\n";
    for _ in 0..2 {
        kubectl.given(declared).ok("apply -f -");
        kubectl.given(managed("Gadget", "g", "{any: {thing: [1]}}")).ok("create -f -");
        let said = kubectl.fails("delete resourcetype gadgets");
        assert!(said.contains("gadgets of this type are left: 1; delete them first"), "{said}");
        kubectl.ok("delete gadget g --timeout=60s");
        kubectl.ok("delete resourcetype gadgets");
        let said = kubectl.fails("get gadgets");
        assert!(
            said.contains("the server doesn't have a resource type") || said.contains("NotFound"),
            "{said}"
        );
    }
}

#[test]
fn an_old_kubectl_works_on_declared_kinds_too() {
    let kubectl = declared("MUSTER_KUBECTL_OLD");
    kubectl.given(cluster("old")).ok("apply -f -");
    let changed = managed("Cluster", "old", "{region: south, baseDomain: example.org}");
    kubectl.given(changed).ok("apply -f -");
    assert_eq!(kubectl.field("mcl/old", ".spec.region"), "south");
    assert_eq!(kubectl.field("mcl/old", ".metadata.generation"), "2");
    let table = kubectl.ok("get clusters --no-headers");
    assert!(table.starts_with("old") && table.contains("south"), "{table}");
    let told = kubectl.ok("describe cluster old");
    assert!(told.contains("AdaptersMissingReports"), "{told}");
    kubectl.ok("delete cluster old --wait=false");
}

//! `muster adapter dry-run`.

use crate::world::Served;

const TYPE: &str = "---\napiVersion: muster.dev/v1alpha1\nkind: ResourceType\nmetadata: {name: clusters}\n\
    spec: {names: {kind: Cluster, plural: clusters}, adapters: [dns]}\n";
const CLUSTER: &str = "---\napiVersion: resources.muster.dev/v1alpha1\nkind: Cluster\nmetadata: {name: blue}\n\
    spec: {zone: example.org}\n";

fn adapter(precondition: &str) -> String {
    format!(
        "apiVersion: muster.dev/v1alpha1\nkind: Adapter\nmetadata: {{name: dns}}\nspec:\n  resourceType: clusters\n  \
         params: [{{name: zone, value: \"resource.metadata.name + '.' + resource.spec.zone\"}}]\n  \
         preconditions: [{{expression: \"{precondition}\"}}]\n  \
         task: {{spec: {{container: {{command: [\"echo\", \"{{{{ params.zone }}}}\"]}}}}}}\n"
    )
}

#[test]
fn a_dry_run_shows_every_step_and_the_task_and_makes_nothing() {
    let served = Served::new();
    served.apply(TYPE);
    served.apply(CLUSTER);
    let file = served.world.home.path().join("dns.yaml");
    std::fs::write(&file, adapter("resource.spec.zone != ''")).unwrap();
    let file = file.to_str().unwrap();
    let said = served.muster(&["adapter", "dry-run", "-f", file, "--resource", "cluster/blue"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let start = "Resource: Cluster blue, generation 1\nParam zone: \"blue.example.org\"\n\
        Precondition holds: resource.spec.zone != ''\nTask:\napiVersion: muster.dev/v1alpha1\nkind: Task\n";
    assert!(said.out.starts_with(start), "{}", said.out);
    assert!(said.out.contains("name: blue-dns-1") && said.out.contains("- blue.example.org"), "{}", said.out);
    assert_eq!(served.muster(&["get", "tasks", "-o", "name"]).out, "");
    std::fs::write(file, adapter("resource.spec.zone == ''")).unwrap();
    let said = served.muster(&["adapter", "dry-run", "-f", file, "--resource", "cluster/blue"]);
    assert!(
        said.out.contains("Precondition does not hold: resource.spec.zone == ''\nReport: Applied False"),
        "{}",
        said.out
    );
    assert!(!said.out.contains("Task:"), "{}", said.out);
}

#[test]
fn what_cannot_be_played_is_told_with_the_reason() {
    let served = Served::new();
    served.apply(TYPE);
    served.apply(CLUSTER);
    let file = served.world.home.path().join("dns.yaml");
    std::fs::write(&file, adapter("nope")).unwrap();
    let file = file.to_str().unwrap();
    let said = served.muster(&["adapter", "dry-run", "-f", file, "--resource", "cluster/blue"]);
    assert_ne!(said.code, 0);
    assert!(
        said.err.contains("spec.preconditions[0].expression: \"nope\": line 1, column 1"),
        "{}",
        said.err
    );
    std::fs::write(file, adapter("true")).unwrap();
    let said = served.muster(&["adapter", "dry-run", "-f", file, "--resource", "blue"]);
    said.fails("--resource blue is not KIND/NAME, such as cluster/blue");
    let said = served.muster(&["adapter", "dry-run", "-f", file, "--resource", "task/blue"]);
    said.fails("task/blue is not of the type \"clusters\" that the adapter is for");
    let said =
        served.muster(&["adapter", "dry-run", "-f", file, "--name", "other", "--resource", "cluster/blue"]);
    assert!(said.err.contains("has no Adapter of the name \"other\""), "{}", said.err);
}

//! What is served and what its fields mean: `api-resources`, `api-versions`, `explain`, `version`.

use muster_e2e::kubectl::Kubectl;

#[test]
fn api_resources_lists_every_kind_with_its_short_name() {
    let listed = Kubectl::current().ok("api-resources --api-group=muster.dev --no-headers");
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [
        ["adapters", "madapter", "muster.dev/v1alpha1", "true", "Adapter"],
        ["addons", "maddon", "muster.dev/v1alpha1", "true", "Addon"],
        ["applications", "mapp", "muster.dev/v1alpha1", "true", "Application"],
        ["eventsinks", "msink", "muster.dev/v1alpha1", "true", "EventSink"],
        ["extensions", "mext", "muster.dev/v1alpha1", "true", "Extension"],
        ["jobs", "mjob", "muster.dev/v1alpha1", "true", "Job"],
        ["kubejobs", "mkj", "muster.dev/v1alpha1", "true", "KubeJob"],
        ["resourcetypes", "mrt", "muster.dev/v1alpha1", "false", "ResourceType"],
        ["robots", "mrobot", "muster.dev/v1alpha1", "true", "Robot"],
        ["schedules", "msched", "muster.dev/v1alpha1", "true", "Schedule"],
        ["taskgroups", "mtg", "muster.dev/v1alpha1", "true", "TaskGroup"],
        ["taskkinds", "mtk", "muster.dev/v1alpha1", "true", "TaskKind"],
        ["tasks", "mtask", "muster.dev/v1alpha1", "true", "Task"],
        ["tasktemplates", "mtt", "muster.dev/v1alpha1", "true", "TaskTemplate"],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn api_resources_wide_shows_verbs_and_category() {
    let listed = Kubectl::current().ok("api-resources --api-group=muster.dev -o wide --no-headers");
    let tasks = listed.lines().find(|line| line.starts_with("tasks ")).unwrap();
    let ending = "create,delete,deletecollection,get,list,patch,update,watch   muster";
    assert!(tasks.trim_end().ends_with(ending), "{tasks}");
}

#[test]
fn api_resources_can_be_chosen_by_category() {
    let listed = Kubectl::current().ok("api-resources --categories=muster -o name");
    let names: Vec<_> = listed.lines().collect();
    assert_eq!(names.len(), 14, "{names:?}");
    assert!(names.iter().all(|name| name.ends_with(".muster.dev")), "{names:?}");
}

#[test]
fn api_resources_can_be_chosen_by_verb() {
    let listed = Kubectl::current().ok("api-resources --verbs=list,watch -o name");
    assert!(listed.contains("tasks.muster.dev"), "{listed}");
    assert!(!listed.contains("selfsubjectreviews"), "{listed}");
}

#[test]
fn api_versions_lists_the_group() {
    let listed = Kubectl::current().ok("api-versions");
    assert!(listed.lines().any(|line| line == "muster.dev/v1alpha1"), "{listed}");
}

#[test]
fn version_names_the_server() {
    let said = Kubectl::current().ok("version");
    assert!(said.contains("Server Version: v1.36.0+muster-"), "{said}");
}

#[test]
fn explain_tells_what_a_kind_is_for() {
    let told = Kubectl::current().ok("explain tasks");
    for part in ["GROUP:      muster.dev", "KIND:       Task", "unit of work", "spec\t<Object>"] {
        assert!(told.contains(part), "{part} is missing in:\n{told}");
    }
}

#[test]
fn explain_takes_short_names() {
    let told = Kubectl::current().ok("explain mtask.spec.priority");
    assert!(told.contains("FIELD: priority <integer>"), "{told}");
}

#[test]
fn explain_recursive_shows_the_whole_tree() {
    let told = Kubectl::current().ok("explain task --recursive");
    for part in [
        "    priority\t<integer>",
        "      image\t<string>",
        "    waitingFor\t<Object>",
        "      uid\t<string> -required-",
    ] {
        assert!(told.contains(part), "{part} is missing in:\n{told}");
    }
}

#[test]
fn explain_tells_about_a_nested_field() {
    let told = Kubectl::current().ok("explain task.spec.retry.backoff");
    assert!(told.contains("FIELD: backoff <Object>"), "{told}");
    assert!(told.contains("factor"), "{told}");
}

#[test]
fn explain_lists_the_words_of_an_enumeration() {
    let told = Kubectl::current().ok("explain task.spec.runtime");
    assert!(told.contains("ENUM:"), "{told}");
    assert!(told.contains("process"), "{told}");
}

#[test]
fn explain_refuses_a_field_that_does_not_exist() {
    let said = Kubectl::current().fails("explain task.spec.nonsense");
    assert!(said.contains(r#"field "nonsense" does not exist"#), "{said}");
}

#[test]
fn explain_refuses_a_kind_that_does_not_exist() {
    let said = Kubectl::current().fails("explain nonsense");
    assert!(said.contains(r#"the server doesn't have a resource type "nonsense""#), "{said}");
}

#[test]
fn explain_knows_every_kind() {
    let kubectl = Kubectl::current();
    for kind in ["Addon", "Application", "Extension", "Task", "TaskKind", "TaskTemplate"] {
        let told = kubectl.ok(&format!("explain {}", kind.to_lowercase()));
        assert!(told.contains(&format!("KIND:       {kind}\n")), "{told}");
        assert!(told.contains(&format!("    {kind} ")), "no description of {kind} in:\n{told}");
    }
}

#[test]
fn discovery_is_kept_between_commands() {
    let kubectl = Kubectl::current();
    kubectl.ok("get tasks");
    let transcript = kubectl.run("get tasks -v=6");
    let asked: Vec<_> = transcript.stderr.lines().filter(|line| line.contains("verb=\"GET\"")).collect();
    assert_eq!(asked.len(), 1, "only the tasks are asked for:\n{transcript}");
}

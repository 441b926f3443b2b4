//! `kubectl get` in every output form, and `describe`.

use muster_e2e::kubectl::{Kubectl, manifest, task};
use serde_json::Value;

/// A kubectl with the tasks `a` (priority 2) and `b` (priority 1).
fn with_two_tasks() -> Kubectl {
    let kubectl = Kubectl::current();
    kubectl.create_task("a", "{kind: analyzer, priority: 2}");
    kubectl.create_task("b", "{addon: java, priority: 1, subject: {kind: Application, name: shop}}");
    kubectl
}

fn columns(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn get_shows_a_table() {
    let shown = with_two_tasks().ok("get tasks");
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(columns(lines[0]), ["NAME", "STATE", "KIND", "PRIORITY", "ATTEMPT", "PROGRESS", "AGE"]);
    assert_eq!(columns(lines[1])[..5], ["a", "Ready", "analyzer", "2", "0"]);
    assert_eq!(lines.len(), 3, "{shown}");
}

#[test]
fn get_wide_shows_more_columns() {
    let shown = with_two_tasks().ok("get tasks -o wide");
    let lines: Vec<_> = shown.lines().collect();
    assert!(
        lines[0].ends_with("AGE   WAITING   ADDON    SUBJECT            RUNTIME   ROBOT   MESSAGE"),
        "{shown}"
    );
    assert!(lines[2].contains("java") && lines[2].contains("Application/shop"), "{shown}");
}

#[test]
fn get_json_shows_the_object() {
    let shown = with_two_tasks().ok("get task a -o json");
    let object: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&object["kind"], &object["spec"]["priority"]), (&"Task".into(), &2.into()), "{shown}");
}

#[test]
fn get_json_of_a_collection_shows_a_list() {
    let shown = with_two_tasks().ok("get tasks -o json");
    let list: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&"List".into(), 2), "{shown}");
}

#[test]
fn get_yaml_shows_the_object() {
    let shown = with_two_tasks().ok("get task a -o yaml");
    assert!(shown.starts_with("apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata:\n"), "{shown}");
    assert!(shown.contains("\nspec:\n  kind: analyzer\n  priority: 2\n"), "{shown}");
}

#[test]
fn get_name_shows_kind_and_name() {
    assert_eq!(with_two_tasks().ok("get tasks -o name"), "task.muster.dev/a\ntask.muster.dev/b\n");
}

#[test]
fn get_jsonpath_shows_what_is_asked_for() {
    let shown = with_two_tasks()
        .ok("get tasks -o jsonpath='{range .items[*]}{.metadata.name}={.spec.priority};{end}'");
    assert_eq!(shown, "a=2;b=1;");
}

#[test]
fn get_jsonpath_as_json_shows_json() {
    let shown = with_two_tasks().ok("get tasks -o jsonpath-as-json='{.items[*].spec.priority}'");
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), serde_json::json!([2, 1]));
}

#[test]
fn get_go_template_shows_what_is_asked_for() {
    let shown = with_two_tasks().ok("get tasks -o go-template='{{range .items}}{{.metadata.name}} {{end}}'");
    assert_eq!(shown, "a b ");
}

#[test]
fn get_custom_columns_shows_those() {
    let shown =
        with_two_tasks().ok("get tasks -o custom-columns=N:.metadata.name,P:.spec.priority,T:.spec.timeout");
    let rows: Vec<_> = shown.lines().map(columns).collect();
    assert_eq!(rows, [["N", "P", "T"], ["a", "2", "<none>"], ["b", "1", "<none>"]]);
}

#[test]
fn get_show_labels_adds_a_column() {
    let kubectl = Kubectl::current();
    kubectl.create_labelled("a", "{app: x, tier: t}");
    let shown = kubectl.ok("get tasks --show-labels");
    assert!(shown.lines().nth(1).unwrap().ends_with("app=x,tier=t"), "{shown}");
}

#[test]
fn get_label_columns_shows_their_values() {
    let kubectl = Kubectl::current();
    kubectl.create_labelled("a", "{app: x}");
    let shown = kubectl.ok("get tasks -L app,tier");
    assert!(shown.lines().next().unwrap().ends_with("APP   TIER"), "{shown}");
}

#[test]
fn get_sorts_by_a_field() {
    let shown = with_two_tasks().ok("get tasks --sort-by=.spec.priority");
    let names: Vec<_> = shown.lines().skip(1).map(|line| columns(line)[0]).collect();
    assert_eq!(names, ["b", "a"]);
}

#[test]
fn get_no_headers_leaves_the_heading_out() {
    assert_eq!(with_two_tasks().ok("get tasks --no-headers").lines().count(), 2);
}

#[test]
fn get_all_namespaces_shows_where_objects_are() {
    let (one, other) = (with_two_tasks(), with_two_tasks());
    let shown = one.ok("get tasks -A");
    assert!(shown.starts_with("NAMESPACE "), "{shown}");
    for kubectl in [&one, &other] {
        let rows = shown.lines().filter(|line| columns(line)[0] == kubectl.namespace()).count();
        assert_eq!(rows, 2, "{shown}");
    }
}

#[test]
fn get_several_names_shows_those() {
    let kubectl = with_two_tasks();
    kubectl.create_task("c", "{kind: k}");
    assert_eq!(kubectl.ok("get tasks a c -o name"), "task.muster.dev/a\ntask.muster.dev/c\n");
}

#[test]
fn get_several_kinds_shows_each_with_its_kind() {
    let kubectl = with_two_tasks();
    kubectl
        .given(manifest("Application", "{name: shop}", "{tags: [{category: c, tag: t}]}"))
        .ok("create -f -");
    let shown = kubectl.ok("get tasks,applications");
    for part in ["task.muster.dev/a", "application.muster.dev/shop", "c=t"] {
        assert!(shown.contains(part), "{part} is missing in:\n{shown}");
    }
}

#[test]
fn get_by_category_shows_every_kind() {
    let kubectl = with_two_tasks();
    kubectl.given(manifest("TaskKind", "{name: analyzer}", "{priority: 1}")).ok("create -f -");
    let shown = kubectl.ok("get muster -o name");
    assert_eq!(shown, "taskkind.muster.dev/analyzer\ntask.muster.dev/a\ntask.muster.dev/b\n");
}

#[test]
fn get_takes_short_and_qualified_names() {
    let kubectl = with_two_tasks();
    for name in ["mtask", "task", "tasks", "tasks.muster.dev", "tasks.v1alpha1.muster.dev"] {
        assert_eq!(kubectl.ok(&format!("get {name} a -o name")), "task.muster.dev/a\n", "{name}");
    }
}

#[test]
fn get_in_small_chunks_shows_everything() {
    let kubectl = Kubectl::current();
    let many: Vec<_> = (0..7).map(|number| task(&format!("t{number}"), "{kind: k}")).collect();
    kubectl.given(many.join("---\n")).ok("create -f -");
    assert_eq!(kubectl.ok("get tasks --chunk-size=2 --no-headers").lines().count(), 7);
    assert_eq!(kubectl.ok("get tasks --chunk-size=2 -o name").lines().count(), 7);
}

#[test]
fn get_of_nothing_says_so() {
    let kubectl = Kubectl::current();
    let transcript = kubectl.run("get tasks");
    let expected = format!("No resources found in {} namespace.\n", kubectl.namespace());
    assert_eq!((transcript.code, &*transcript.stderr), (Some(0), &*expected), "{transcript}");
}

#[test]
fn get_of_a_missing_object_is_not_found() {
    let said = Kubectl::current().fails("get task a");
    assert!(said.contains(r#"Error from server (NotFound): tasks.muster.dev "a" not found"#), "{said}");
}

#[test]
fn get_ignore_not_found_says_nothing() {
    assert_eq!(Kubectl::current().ok("get task a --ignore-not-found"), "");
}

#[test]
fn get_of_an_unknown_kind_says_so() {
    let said = Kubectl::current().fails("get nonsense");
    assert!(said.contains(r#"the server doesn't have a resource type "nonsense""#), "{said}");
}

#[test]
fn get_from_a_file_shows_its_objects() {
    let kubectl = with_two_tasks();
    assert_eq!(kubectl.given(task("b", "{}")).ok("get -f - -o name"), "task.muster.dev/b\n");
}

#[test]
fn get_of_a_kind_that_a_cluster_would_have_is_refused_in_words() {
    let said = Kubectl::current().fails("get pods");
    assert!(said.contains(r#"the server doesn't have a resource type "pods""#), "{said}");
}

#[test]
fn get_subresource_status_shows_the_object() {
    let kubectl = with_two_tasks();
    let shown = kubectl.ok("get task a --subresource=status -o name");
    assert_eq!(shown, "task.muster.dev/a\n");
}

#[test]
fn describe_tells_about_an_object() {
    let told = with_two_tasks().ok("describe task b");
    for part in
        ["Name:         b", "API Version:  muster.dev/v1alpha1", "Addon:     java", "Name:  shop", "Events:"]
    {
        assert!(told.contains(part), "{part} is missing in:\n{told}");
    }
}

#[test]
fn describe_of_a_prefix_tells_about_all_that_match() {
    let kubectl = Kubectl::current();
    kubectl.create_task("run-1", "{kind: k}");
    kubectl.create_task("run-2", "{kind: k}");
    let told = kubectl.ok("describe task run-");
    assert_eq!(told.matches("Name:         run-").count(), 2, "{told}");
}

#[test]
fn get_of_every_kind_shows_its_own_columns() {
    let kubectl = Kubectl::current();
    let container = "{name: main, image: registry/java:1}";
    for (kind, spec) in [
        ("Addon", format!("{{task: analyzer, container: {container}}}")),
        ("Extension", format!("{{addon: java, container: {container}}}")),
        ("TaskTemplate", "{template: {spec: {kind: analyzer}}}".to_owned()),
        ("TaskGroup", "{tasks: [{spec: {kind: analyzer}}]}".to_owned()),
        ("Job", "{taskGroups: [{name: a, tasks: [{spec: {kind: analyzer}}]}]}".to_owned()),
        ("EventSink", "{file: {path: a}}".to_owned()),
        ("Robot", "{labels: {zone: a}}".to_owned()),
        ("KubeJob", "{jobName: a, jobUid: u, outcome: success}".to_owned()),
        ("Schedule", "{schedulePolicy: {timeSpec: R/PT1H}, template: {spec: {kind: analyzer}}}".to_owned()),
    ] {
        kubectl.given(manifest(kind, "{name: x}", &spec)).ok("create -f -");
    }
    let heading =
        |kind: &str| kubectl.ok(&format!("get {kind}")).lines().next().unwrap_or_default().to_owned();
    assert_eq!(columns(&heading("addons")), ["NAME", "TASK", "SELECTOR", "AGE"]);
    assert_eq!(columns(&heading("extensions")), ["NAME", "ADDON", "SELECTOR", "AGE"]);
    assert_eq!(columns(&heading("tasktemplates")), ["NAME", "KIND", "ADDON", "AGE"]);
    let group = ["NAME", "STATE", "MODE", "PROGRESS", "RUNNING", "FAILED", "AGE"];
    assert_eq!(columns(&heading("taskgroups")), group);
    assert_eq!(
        columns(&heading("jobs.muster.dev")),
        ["NAME", "STATE", "GROUPS", "PROGRESS", "FAILED", "AGE"]
    );
    let sink = ["NAME", "SORT", "PROFILE", "CONNECTED", "CONFIRMED", "BACKLOG", "LAG", "AGE"];
    assert_eq!(columns(&heading("eventsinks")), sink);
    let robot = ["NAME", "PHASE", "CONNECTED", "RUNNING", "SLOTS", "TAKES", "HEARTBEAT", "AGE"];
    assert_eq!(columns(&heading("robots")), robot);
    assert_eq!(columns(&heading("kubejobs")), ["NAME", "JOB", "OUTCOME", "SAVED", "LOGS", "AGE"]);
    let schedule = ["NAME", "TIMES", "ZONE", "SUSPENDED", "ACTIVE", "LAST", "RESULT", "NEXT", "AGE"];
    assert_eq!(columns(&heading("schedules")), schedule);
}

#[test]
fn get_kyaml_shows_the_object() {
    let shown = with_two_tasks().ok("get task a -o kyaml");
    assert!(shown.contains("kind: \"Task\",") && shown.contains("priority: 2,"), "{shown}");
}

#[test]
fn get_without_server_printing_shows_names_and_ages() {
    let shown = with_two_tasks().ok("get tasks --server-print=false");
    assert_eq!(columns(shown.lines().next().unwrap_or_default()), ["NAME", "AGE"]);
}

#[test]
fn get_of_some_that_are_missing_shows_the_others() {
    let transcript = with_two_tasks().run("get tasks a missing b -o name");
    assert_eq!((transcript.code, &*transcript.stdout), (Some(1), "task.muster.dev/a\ntask.muster.dev/b\n"));
    assert!(transcript.stderr.contains(r#"tasks.muster.dev "missing" not found"#), "{transcript}");
}

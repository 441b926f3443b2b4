//! `muster get`.

use std::process::Stdio;

use crate::world::{Served, World, task, task_kind};

#[test]
fn nothing_there_is_said_beside_the_output() {
    let served = Served::new();
    let said = served.muster(&["get", "tasks"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert_eq!(said.err, "No resources found in default namespace.\n");
    assert_eq!(served.muster(&["get", "tasks", "-A"]).err, "No resources found.\n");
    let list = served.muster(&["get", "tasks", "-o", "json"]).json();
    assert_eq!(list["items"], serde_json::json!([]));
}

#[test]
fn tables_have_columns_for_what_is_asked() {
    let served = Served::new();
    served.apply(&(task("a", "") + &task("longer-name", "")));
    let said = served.muster(&["get", "tasks"]);
    let lines: Vec<_> = said.out.lines().collect();
    assert!(lines[0].starts_with("NAME          STATE"), "{}", said.out);
    assert!(lines[1].starts_with("a             "), "{}", said.out);
    assert!(lines[2].starts_with("longer-name   "), "{}", said.out);
    let wide = served.muster(&["get", "tasks", "-o", "wide"]);
    assert!(wide.rows()[0].len() > said.rows()[0].len(), "{}", wide.out);
    let all = served.muster(&["get", "tasks", "-A"]);
    assert_eq!((all.rows()[0][0], all.rows()[1][0]), ("NAMESPACE", "default"));
    let bare = served.muster(&["get", "tasks", "--no-headers"]);
    assert_eq!(bare.first_words(), ["a", "longer-name"]);
}

#[test]
fn every_name_of_a_resource_finds_it() {
    let served = Served::new();
    served.apply(&task("a", ""));
    for word in ["tasks", "task", "Task", "mtask", "tasks.muster.dev", "tasks.v1alpha1.muster.dev"] {
        served.muster(&["get", word, "-o", "name"]).is("task.muster.dev/a\n");
        served.muster(&["get", word, "a", "-o", "name"]).is("task.muster.dev/a\n");
    }
    served.muster(&["get", "task/a", "-o", "name"]).is("task.muster.dev/a\n");
}

#[test]
fn several_resources_and_categories_are_shown_one_after_another() {
    let served = Served::new();
    served.apply(&(task("a", "") + &task_kind("k", 1)));
    served.muster(&["get", "taskkinds,tasks", "-o", "name"]).is("taskkind.muster.dev/k\ntask.muster.dev/a\n");
    let said = served.muster(&["get", "tasks,taskkinds"]);
    assert_eq!(said.first_words(), ["NAME", "task.muster.dev/a", "NAME", "taskkind.muster.dev/k"]);
    assert!(said.out.contains("\n\nNAME"), "tables are set apart: {}", said.out);
    let mut all: Vec<_> =
        served.muster(&["get", "muster", "-o", "name"]).out.lines().map(str::to_owned).collect();
    all.sort();
    assert_eq!(all, ["task.muster.dev/a", "taskkind.muster.dev/k"]);
    let list = served.muster(&["get", "muster", "-o", "json"]).json();
    assert_eq!((list["kind"].as_str(), list["items"].as_array().map(Vec::len)), (Some("List"), Some(2)));
}

#[test]
fn one_object_is_printed_by_itself_and_several_as_a_list() {
    let served = Served::new();
    served.apply(&(task("a", "labels: {app: shop}") + &task("b", "")));
    let one = served.muster(&["get", "task", "a", "-o", "json"]).json();
    assert_eq!(
        (one["kind"].as_str(), one["metadata"]["labels"]["app"].as_str()),
        (Some("Task"), Some("shop"))
    );
    assert!(one["metadata"]["managedFields"].is_null());
    let two = served.muster(&["get", "task", "a", "b", "-o", "json"]).json();
    assert_eq!(
        (two["kind"].as_str(), two["items"][1]["metadata"]["name"].as_str()),
        (Some("List"), Some("b"))
    );
    let yaml = served.muster(&["get", "task", "a", "-o", "yaml"]).out;
    assert!(yaml.starts_with("apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata:\n"), "{yaml}");
    let yaml = served.muster(&["get", "tasks", "-o", "yaml"]).out;
    assert!(yaml.starts_with("apiVersion: v1\nkind: List\nmetadata: {}\nitems:\n- apiVersion: "), "{yaml}");
}

#[test]
fn what_is_not_there_is_named_and_the_rest_is_shown() {
    let served = Served::new();
    served.apply(&task("a", ""));
    let said = served.muster(&["get", "task", "b", "a", "-o", "name"]);
    assert_eq!((said.code, said.out.as_str()), (1, "task.muster.dev/a\n"));
    assert_eq!(said.err, "error: tasks.muster.dev \"b\" not found\n");
    served.muster(&["get", "task", "b", "--ignore-not-found"]).is("");
    let said = served.muster(&["get", "tsks"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.starts_with("error: the server has no resource \"tsks\"; it has adapters, "),
        "{}",
        said.err
    );
}

#[test]
fn selectors_choose_and_wrong_ones_are_explained() {
    let served = Served::new();
    served.apply(&(task("a", "labels: {app: shop}") + &task("b", "labels: {app: bank}") + &task("c", "")));
    let names = |selector: &str| served.muster(&["get", "tasks", "-o", "name", "-l", selector]).out;
    assert_eq!(names("app=shop"), "task.muster.dev/a\n");
    assert_eq!(names("app in (shop,bank)"), "task.muster.dev/a\ntask.muster.dev/b\n");
    assert_eq!(names("!app"), "task.muster.dev/c\n");
    let said = served.muster(&["get", "tasks", "-o", "name", "--field-selector", "metadata.name=b"]);
    said.is("task.muster.dev/b\n");
    let said = served.muster(&["get", "tasks", "-l", "app in"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("labelSelector"), "{}", said.err);
    let said = served.muster(&["get", "tasks", "--field-selector", "spec.nothing=1"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("spec.nothing") && said.err.contains("metadata.name"), "{}", said.err);
}

#[test]
fn long_lists_are_whole_and_a_limit_says_that_there_is_more() {
    let served = Served::new();
    let names: Vec<_> = (0..1_100).map(|number| format!("k{number:04}")).collect();
    served.apply(&names.iter().map(|name| task_kind(name, 1)).collect::<String>());
    let said = served.muster(&["get", "taskkinds", "--no-headers"]);
    assert_eq!((said.code, said.first_words()), (0, names.iter().map(String::as_str).collect()));
    let list = served.muster(&["get", "taskkinds", "-o", "json"]).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1_100));
    for limit in ["1", "500", "700"] {
        let said = served.muster(&["get", "taskkinds", "-o", "name", "--limit", limit]);
        assert_eq!((said.code, said.out.lines().count().to_string().as_str()), (0, limit));
        assert_eq!(said.err, format!("there are more taskkinds than the {limit} shown\n"));
    }
    assert_eq!(served.muster(&["get", "taskkinds", "-o", "name", "--limit", "1100"]).err, "");
}

#[test]
fn a_reader_that_stops_reading_ends_the_program_in_silence() {
    let served = Served::new();
    served.apply(&task("a", ""));
    for arguments in
        [&["get", "tasks"][..], &["get", "tasks", "-o", "yaml"], &["completion", "zsh"], &["version"]]
    {
        let mut command = served.world.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("muster starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("muster ends");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn wrong_uses_are_explained() {
    let world = World::new();
    for (arguments, part) in [
        (&["get"][..], "<RESOURCE[/NAME]>..."),
        (&["get", "tasks", "a/b"], "\"tasks\" is not RESOURCE/NAME"),
        (&["get", "task", "a", "-l", "x=y"], "either by name or by selector"),
        (&["get", "task", "a", "-A"], "give --namespace instead of --all-namespaces"),
        (&["get", "tasks", "-o", "jsn"], "a similar value exists: 'json'"),
        (&["get", "tasks", "--outptu", "json"], "a similar argument exists: '--output'"),
        (&["get", "tasks", "--limit", "0"], "0 is not in"),
        (&["get", "tasks", "-w", "--limit", "1"], "cannot be used with"),
        (&["aply"], "a similar subcommand exists: 'apply'"),
    ] {
        world.muster(arguments).is_misuse(part);
    }
}

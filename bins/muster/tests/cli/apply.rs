//! `muster apply`.

use crate::world::{Served, World, task, task_kind};

#[test]
fn what_happened_to_each_object_is_said() {
    let served = Served::new();
    let file = served.world.file("a.yaml", &(task("a", "") + &task_kind("k", 1)));
    served.muster(&["apply", "-f", file]).is("task.muster.dev/a created\ntaskkind.muster.dev/k created\n");
    served
        .muster(&["apply", "-f", file])
        .is("task.muster.dev/a unchanged\ntaskkind.muster.dev/k unchanged\n");
    let file = served.world.file("a.yaml", &(task("a", "") + &task_kind("k", 2)));
    served
        .muster(&["apply", "-f", file])
        .is("task.muster.dev/a unchanged\ntaskkind.muster.dev/k configured\n");
}

#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    let served = Served::new();
    served.apply(&task_kind("k", 1));
    let file = served.world.file("a.yaml", &(task("a", "") + &task_kind("k", 2)));
    let said = served.muster(&["apply", "-f", file, "--dry-run"]);
    said.is("task.muster.dev/a created (dry run)\ntaskkind.muster.dev/k configured (dry run)\n");
    served.muster(&["get", "task", "a"]).fails("tasks.muster.dev \"a\" not found");
    assert_eq!(served.muster(&["get", "taskkind", "k", "-o", "json"]).json()["spec"]["priority"], 1);
}

#[test]
fn an_error_names_its_place_and_the_other_objects_are_applied() {
    let served = Served::new();
    let text = [
        &task("a", ""),
        "---\nkind: Task\n",
        "---\na: [1,\n",
        "---\napiVersion: muster.dev/v1alpha1\nkind: Tsk\nmetadata: {name: b}\n",
        "---\napiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {name: c}\nspec: {kind: k, prio: 1}\n",
        &task("d", ""),
    ]
    .concat();
    let file = served.world.file("many.yaml", &text);
    let said = served.muster(&["apply", "-f", file]);
    assert_eq!(said.code, 1);
    assert_eq!(said.out, "task.muster.dev/a created\ntask.muster.dev/d created\n");
    let errors: Vec<_> = said.err.lines().collect();
    let starts = [
        "error: many.yaml, document 2: apiVersion is missing",
        "error: many.yaml, document 3: not valid YAML: ",
        "error: many.yaml, document 4: the server has no kind Tsk in muster.dev/v1alpha1; it has Adapter, ",
        "error: many.yaml, document 5: task.muster.dev/c: ",
        "error: 4 of 6 objects failed",
    ];
    assert_eq!(errors.len(), starts.len(), "{}", said.err);
    for (error, start) in errors.iter().zip(starts) {
        assert!(error.starts_with(start), "{error}\nis not\n{start}");
    }
    assert!(errors[3].contains("unknown field \"spec.prio\""), "{}", errors[3]);
}

#[test]
fn directories_standard_input_and_lists_are_read() {
    let served = Served::new();
    served.world.file("dir/b.yml", &task("b", ""));
    served.world.file("dir/a.json", r#"{"apiVersion": "v1", "kind": "List", "items": []}"#);
    served.world.file("dir/readme.txt", "not an object");
    served.world.file("dir/below/c.yaml", &task("c", ""));
    served.muster(&["apply", "-f", "dir"]).is("task.muster.dev/b created\n");
    let said = served.muster(&["apply", "-f", "dir", "-R"]);
    said.is("task.muster.dev/b unchanged\ntask.muster.dev/c created\n");
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "muster.dev/v1alpha1", "kind": "TaskKind", "metadata": {"name": "x"}},
        {"apiVersion": "muster.dev/v1alpha1", "kind": "TaskKind", "metadata": {"name": "y"}}
    ]}"#;
    let said = served.world.muster_with(list, &["apply", "-f", "-"]);
    said.is("taskkind.muster.dev/x created\ntaskkind.muster.dev/y created\n");
}

#[test]
fn what_get_prints_can_be_applied_again() {
    let served = Served::new();
    served.apply(&(task("a", "labels: {app: shop}") + &task_kind("k", 1)));
    for output in ["yaml", "json"] {
        let all = served.muster(&["get", "muster", "-o", output]);
        let said = served.world.muster_with(&all.out, &["apply", "-f", "-"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert_eq!(said.out.lines().count(), 2);
    }
}

#[test]
fn objects_with_a_generated_name_are_made_anew() {
    let served = Served::new();
    let text =
        "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {generateName: run-}\nspec: {kind: k}\n";
    let file = served.world.file("run.yaml", text);
    for _ in 0..2 {
        let said = served.muster(&["apply", "-f", file]);
        let name =
            said.out.strip_prefix("task.muster.dev/run-").and_then(|rest| rest.strip_suffix(" created\n"));
        assert!(name.is_some_and(|name| !name.is_empty()), "{}{}", said.out, said.err);
    }
    assert_eq!(served.muster(&["get", "tasks", "-o", "name"]).out.lines().count(), 2);
}

#[test]
fn a_conflict_names_the_fields_and_can_be_forced() {
    let served = Served::new();
    let file = served.world.file("k.yaml", &task_kind("k", 1));
    served.muster(&["apply", "-f", file]).is("taskkind.muster.dev/k created\n");
    let file = served.world.file("k.yaml", &task_kind("k", 2));
    let said = served.muster(&["apply", "-f", file, "--field-manager", "other"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    for part in
        ["k.yaml, document 1", "\"muster\"", ".spec.priority", "; --force-conflicts takes the fields over"]
    {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    let said = served.muster(&["apply", "-f", file, "--field-manager", "other", "--force-conflicts"]);
    said.is("taskkind.muster.dev/k configured\n");
    let object = served.muster(&["get", "taskkind", "k", "-o", "json", "--show-managed-fields"]).json();
    let managers: Vec<_> = object["metadata"]["managedFields"]
        .as_array()
        .expect("the owners are shown")
        .iter()
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    assert!(managers.contains(&"other"), "{managers:?}");
}

#[test]
fn a_namespace_is_that_of_the_flag_or_of_the_object_but_not_both() {
    let served = Served::new();
    let file = served.world.file("a.yaml", &(task("a", "namespace: blue") + &task("b", "")));
    let said = served.muster(&["apply", "-f", file, "-n", "green"]);
    assert_eq!((said.code, said.out.as_str()), (1, "task.muster.dev/b created\n"));
    assert!(said.err.contains("it is in namespace \"blue\", not in \"green\""), "{}", said.err);
    served.muster(&["apply", "-f", file]).is("task.muster.dev/a created\ntask.muster.dev/b created\n");
    let said = served.muster(&["get", "tasks", "-A", "--no-headers"]);
    let places: Vec<_> = said.rows().iter().map(|row| row[..2].join("/")).collect();
    assert_eq!(places, ["blue/a", "default/b", "green/b"]);
}

#[test]
fn input_that_is_not_there_is_an_error_before_anything_is_applied() {
    let served = Served::new();
    let file = served.world.file("a.yaml", &task("a", ""));
    let said = served.muster(&["apply", "-f", file, "-f", "gone.yaml"]);
    said.fails("cannot read gone.yaml: No such file or directory (os error 2)");
    served.muster(&["get", "task", "a"]).fails("tasks.muster.dev \"a\" not found");
    served
        .world
        .muster_with("# nothing\n", &["apply", "-f", "-"])
        .fails("there are no objects in standard input");
    World::new().muster(&["apply"]).is_misuse("--filename <FILE>");
}

#[test]
fn a_viewer_is_told_why_it_cannot_apply() {
    let served = Served::new();
    let kubeconfig = served.muster(&["token", "create", "eve", "--role", "viewer", "--as-kubeconfig"]).out;
    let kubeconfig =
        (served.world.file("eve.yaml", &kubeconfig), served.world.file("a.yaml", &task("a", "")));
    let said = served.muster(&["--kubeconfig", kubeconfig.0, "apply", "-f", kubeconfig.1]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("user \"eve\" with role viewer cannot"), "{}", said.err);
}

#[test]
fn the_work_is_done_even_if_nobody_reads_about_it() {
    let served = Served::new();
    let text: String = (0..60).map(|number| task_kind(&format!("k{number}"), 1)).collect();
    let file = served.world.file("many.yaml", &text);
    let mut command = served.world.command(&["apply", "-f", file]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("muster starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("muster ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    assert_eq!(served.muster(&["get", "taskkinds", "-o", "name"]).out.lines().count(), 60);
}

#[test]
fn a_kind_and_an_object_of_it_can_stand_in_one_file() {
    let served = Served::new();
    let text = "apiVersion: muster.dev/v1alpha1\nkind: ResourceType\nmetadata: {name: gadgets}\n\
                spec: {names: {kind: Gadget, plural: gadgets}}\n---\n\
                apiVersion: resources.muster.dev/v1alpha1\nkind: Gadget\nmetadata: {name: g}\nspec: {any: 1}\n";
    let file = served.world.file("gadgets.yaml", text);
    served
        .muster(&["apply", "-f", file])
        .is("resourcetype.muster.dev/gadgets created\ngadget.resources.muster.dev/g created\n");
    served.muster(&["get", "gadgets", "-o", "name"]).is("gadget.resources.muster.dev/g\n");
}

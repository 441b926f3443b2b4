//! Finding a server and being let in.

use crate::world::{Served, World, task};

#[test]
fn without_a_kubeconfig_the_error_says_how_to_get_one() {
    let world = World::new();
    let said = world.muster(&["get", "tasks"]);
    said.fails(&format!(
        "no kubeconfig found (looked for {} and ~/.kube/config); start a server with `muster up`, or name a kubeconfig \
         with --kubeconfig FILE",
        world.data().join("kubeconfig").display()
    ));
    let said = world.muster(&["--kubeconfig", "gone", "get", "tasks"]);
    said.fails("cannot use the kubeconfig gone: No such file or directory (os error 2)");
}

#[test]
fn without_a_server_the_error_says_how_to_start_one() {
    let mut served = Served::new();
    let url = served.url();
    served.server.kill();
    let world = &served.world;
    let error = format!(
        "no server answers at {url} (Connection refused (os error 111)); start one with `muster up`, or name another \
         one with --server or --kubeconfig"
    );
    let file = world.file("a.yaml", &task("a", ""));
    for arguments in [
        &["get", "tasks"][..],
        &["describe", "task", "a"],
        &["delete", "task", "a"],
        &["apply", "-f", file],
        &["token", "list"],
    ] {
        world.muster(arguments).fails(&error);
    }
    let said = world.muster(&["version"]);
    assert_eq!((said.code, said.err), (1, format!("error: {error}\n")));
    assert!(said.out.starts_with("Client: "), "{}", said.out);
    assert_eq!(world.muster(&["version", "--client"]).code, 0);
}

#[test]
fn a_wrong_token_is_refused_and_not_repeated() {
    let served = Served::new();
    let kubeconfig = served.kubeconfig().replace(&served.admin_token(), "muster_wrong");
    let file = served.world.file("wrong", &kubeconfig);
    let said = served.muster(&["--kubeconfig", file, "get", "tasks"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let start = format!("error: {} does not accept the kubeconfig wrong: Unauthorized", served.url());
    assert!(said.err.starts_with(&start) && said.err.contains("--as-kubeconfig"), "{}", said.err);
    assert!(!said.err.contains("muster_wrong"));
}

#[test]
fn a_server_that_cannot_prove_itself_gets_no_token() {
    let (one, other) = (Served::new(), Served::new());
    let said = one.muster(&["--server", &other.url(), "get", "tasks"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("is not trusted"), "{}", said.err);
}

#[test]
fn a_broken_kubeconfig_is_not_quoted() {
    let world = World::new();
    let file = world.file("broken", "users:\n- user: {token: muster_secret\nclusters: [");
    let said = world.muster(&["--kubeconfig", file, "get", "tasks"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("not a valid kubeconfig, see line"), "{}", said.err);
    assert!(!said.err.contains("muster_secret"), "{}", said.err);
}

#[test]
fn the_server_is_chosen_by_flag_then_data_directory_then_standard_file() {
    let served = Served::new();
    served.apply(&task("a", ""));
    let elsewhere = World::new();
    let data = served.world.data().display().to_string();
    elsewhere.muster(&["--data", &data, "get", "tasks", "-o", "name"]).is("task.muster.dev/a\n");
    let run = |name: &str, value: &str, arguments: &[&str]| {
        let output = elsewhere.command(arguments).env(name, value).output().expect("muster starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let kubeconfig = format!("{data}/kubeconfig");
    for (name, value) in
        [("MUSTER_DATA", &data), ("MUSTER_KUBECONFIG", &kubeconfig), ("KUBECONFIG", &kubeconfig)]
    {
        assert_eq!(run(name, value, &["get", "tasks", "-o", "name"]), "task.muster.dev/a\n", "{name}");
    }
    elsewhere.file(".kube/config", &served.kubeconfig());
    elsewhere.muster(&["get", "tasks", "-o", "name"]).is("task.muster.dev/a\n");
    // What was meant for a local server must not reach another one.
    let said = elsewhere.muster(&["--data", "empty", "get", "tasks"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("empty/kubeconfig does not exist"), "{}", said.err);
}

#[test]
fn the_url_can_be_given_and_must_be_one() {
    let served = Served::new();
    let plain = format!("http://{}", served.address());
    assert_eq!(served.muster(&["--server", &plain, "get", "tasks"]).code, 0);
    let said = served.muster(&["--server", &served.address(), "get", "tasks"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("write one such as https://127.0.0.1:7400"), "{}", said.err);
    let said = World::new().muster(&["--server", &plain, "get", "tasks"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("does not accept a request without a token"), "{}", said.err);
}

#[test]
fn versions_of_both_sides_are_shown() {
    let served = Served::new();
    let said = served.muster(&["version"]);
    assert_eq!((said.code, said.first_words()), (0, vec!["Client:", "Server:"]));
    let json = served.muster(&["version", "-o", "json"]).json();
    assert_eq!(json["client"]["muster"], json["server"]["muster"]);
}

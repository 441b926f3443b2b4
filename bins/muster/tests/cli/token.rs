//! `muster token` and `muster kubeconfig`.

use crate::world::{Served, World, eventually, task};

#[test]
fn a_secret_is_alone_on_the_output_and_works() {
    let served = Served::new();
    let said = served.muster(&["token", "create", "ci", "--role", "viewer", "--ttl", "1h"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let secret = said.out.trim();
    assert!(secret.starts_with("muster_") && said.out == format!("{secret}\n"), "{}", said.out);
    assert!(said.err.contains("\"ci\" with role viewer, valid for 1h"), "{}", said.err);
    assert!(!said.err.contains(secret));
    let kubeconfig = served.kubeconfig().replace(&served.admin_token(), secret);
    let file = served.world.file("ci.yaml", &kubeconfig);
    assert_eq!(served.muster(&["--kubeconfig", file, "get", "tasks"]).code, 0);
    let said = served.muster(&["--kubeconfig", file, "token", "list"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("user \"ci\" with role viewer cannot list"), "{}", said.err);
}

#[test]
fn tokens_are_listed_without_secrets_and_can_be_revoked() {
    let served = Served::new();
    let secret = served.muster(&["token", "create", "ci", "--role", "editor"]).out;
    let listed = served.muster(&["token", "list"]);
    let rows = listed.rows();
    assert_eq!(rows[0], ["NAME", "ROLE", "AGE", "EXPIRES"]);
    assert_eq!(
        (rows[1][..2].to_vec(), rows[2][..2].to_vec()),
        (vec!["admin", "admin"], vec!["ci", "editor"])
    );
    let json = served.muster(&["token", "list", "-o", "json"]);
    assert_eq!(json.json()["items"][1]["role"], "editor");
    assert!(![listed.out.as_str(), json.out.as_str()].iter().any(|text| text.contains(secret.trim())));
    let said = served.muster(&["token", "create", "ci", "--role", "viewer"]);
    said.fails("there is a token \"ci\" already; revoke it first or choose another name");
    let file =
        served.world.file("ci.yaml", &served.kubeconfig().replace(&served.admin_token(), secret.trim()));
    assert_eq!(served.muster(&["--kubeconfig", file, "get", "tasks"]).code, 0);
    served.muster(&["token", "revoke", "ci"]).is("token/ci revoked\n");
    let said = served.muster(&["--kubeconfig", file, "get", "tasks"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("does not accept the kubeconfig ci.yaml: "), "{}", said.err);
    let said = served.muster(&["token", "revoke", "ci"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("there is no token \"ci\""), "{}", said.err);
}

#[test]
fn a_token_is_worthless_after_its_time() {
    let served = Served::new();
    let said =
        served.muster(&["token", "create", "short", "--role", "viewer", "--ttl", "1s", "--as-kubeconfig"]);
    let file = served.world.file("short.yaml", &said.out);
    eventually("the token to end", || served.muster(&["--kubeconfig", file, "get", "tasks"]).code == 1);
}

#[test]
fn a_whole_kubeconfig_can_be_handed_out() {
    let served = Served::new();
    let said = served.muster(&["token", "create", "ann", "--role", "editor", "--as-kubeconfig"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("keep it private"), "{}", said.err);
    // In another home, where there is nothing else.
    let elsewhere = World::new();
    let file = elsewhere.file("ann.yaml", &said.out);
    let said = elsewhere.muster_with(&task("a", ""), &["--kubeconfig", file, "apply", "-f", "-"]);
    said.is("task.muster.dev/a created\n");
    served.muster(&["get", "tasks", "-o", "name"]).is("task.muster.dev/a\n");
}

#[test]
fn wrong_tokens_are_refused_with_a_reason() {
    let served = Served::new();
    served
        .muster(&["token", "create", "a", "--role", "king"])
        .is_misuse("[possible values: admin, editor, viewer, robot, reporter]");
    served.muster(&["token", "create", "a", "--role", "reporter"]).is_misuse("--adapter");
    served
        .muster(&["token", "create", "a", "--role", "viewer", "--adapter", "dns"])
        .is_misuse("--adapter goes with --role reporter");
    served.muster(&["token", "create", "a", "--role", "viewer", "--ttl", "soon"]).is_misuse("not a duration");
    served
        .muster(&["token", "create", "a", "--role", "viewer", "--ttl", "0"])
        .is_misuse("at least one second");
    let said = served.muster(&["token", "create", "Not A Name", "--role", "viewer"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("\"Not A Name\" is not valid"), "{}", said.err);
}

#[test]
fn a_reporter_is_made_for_one_adapter_and_opens_little() {
    let served = Served::new();
    let said = served.muster(&[
        "token",
        "create",
        "dns",
        "--role",
        "reporter",
        "--adapter",
        "dns",
        "--as-kubeconfig",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let file = served.world.file("dns.yaml", &said.out);
    let listed = served.muster(&["token", "list"]);
    let rows = listed.rows();
    assert_eq!(rows[2][..2], ["dns", "reporter/dns"]);
    let said = served.muster(&["--kubeconfig", file, "get", "tasks"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("with role reporter cannot list"), "{}", said.err);
}

#[test]
fn secrets_are_in_no_log() {
    let served = Served::new();
    let said = served.muster(&["--log", "trace", "token", "create", "ci", "--role", "viewer"]);
    let secret = said.out.trim();
    assert!(said.err.contains("TRACE"), "something was logged: {}", said.err);
    assert!(secret.starts_with("muster_") && !said.err.contains(secret));
    assert!(!said.err.contains(&served.admin_token()));
}

#[test]
fn the_kubeconfig_is_printed_or_named() {
    let served = Served::new();
    let text = served.kubeconfig();
    served.muster(&["kubeconfig"]).is(&text);
    served.muster(&["kubeconfig", "--raw"]).is(&text);
    let path = served.world.data().join("kubeconfig");
    served.muster(&["kubeconfig", "--path"]).is(&format!("{}\n", path.display()));
    served.muster(&["kubeconfig", "--raw", "--path"]).is_misuse("cannot be used with");
    let said = World::new().muster(&["kubeconfig"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("`muster up` writes it"), "{}", said.err);
}

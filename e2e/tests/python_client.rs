//! The Python `kubernetes` client. Each test runs one scenario of `e2e/python/scenarios.py`, which checks by itself.

use muster_e2e::client_tool::ClientTool;
use muster_e2e::server::Server;

/// Runs a scenario in a namespace of its own.
#[track_caller]
fn run(server: &Server, scenario: &str) {
    let namespace = server.new_namespace();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/scenarios.py");
    ClientTool::named_by("MUSTER_PYTHON")
        .env("KUBECONFIG", server.kubeconfig_for(&namespace, &server.admin_token()))
        .env("HOME", server.client_home())
        .env("MUSTER_TEST_NAMESPACE", namespace)
        .ok(&format!("'{script}' {scenario}"));
}

/// Declares a test per scenario.
macro_rules! scenarios {
    ($($test:ident: $scenario:ident,)*) => {$(
        #[test]
        fn $test() {
            run(Server::shared(), stringify!($scenario));
        }
    )*};
}

scenarios! {
    python_creates_and_gets: creates_and_gets,
    python_is_refused_what_is_invalid: is_refused_what_is_invalid,
    python_is_refused_what_exists: is_refused_what_exists,
    python_lists_with_selectors: lists_with_selectors,
    python_pages_through_a_list_at_one_revision: pages_through_a_list,
    python_lists_over_all_namespaces: lists_over_all_namespaces,
    python_patches: patches,
    python_replaces_unless_somebody_was_faster: replaces_unless_somebody_was_faster,
    python_patches_the_status_without_a_new_generation: patches_the_status_without_a_new_generation,
    python_deletes: deletes,
    python_deletes_collections: deletes_collections,
    python_deletes_dependents_first_in_the_foreground: deletes_dependents_first_in_the_foreground,
    python_watches_and_resumes_where_it_was: watches_and_resumes_where_it_was,
    python_watches_one_label: watches_one_label,
    python_is_refused_without_a_valid_token: is_refused_without_a_valid_token,
    python_knows_the_version: knows_the_version,
    python_asks_what_it_may_do: asks_what_it_may_do,
    python_dynamic_finds_every_kind: dynamic_finds_every_kind,
    python_dynamic_creates_gets_and_lists: dynamic_creates_gets_and_lists,
    python_dynamic_patches_in_every_language: dynamic_patches_in_every_language,
    python_dynamic_applies_server_side: dynamic_applies_server_side,
    python_dynamic_replaces_unless_somebody_was_faster: dynamic_replaces_unless_somebody_was_faster,
    python_dynamic_writes_the_status: dynamic_writes_the_status,
    python_dynamic_watches: dynamic_watches,
    python_dynamic_deletes: dynamic_deletes,
}

#[test]
fn python_is_told_that_a_revision_is_forgotten() {
    let server = Server::start(&["--history-changes", "10"]);
    run(&server, "is_told_that_a_revision_is_forgotten");
}

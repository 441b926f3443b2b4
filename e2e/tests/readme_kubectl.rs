//! The README does what it says: its tour is run as it stands, in an empty home directory, against a real server.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use muster_e2e::server::Server;

/// The lines of every `sh tour` block, in order.
fn tour(readme: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```sh tour" => inside = true,
            "```" => inside = false,
            line if inside => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e lies in the repository")
}

#[test]
fn every_command_of_the_tour_works_as_written() {
    let server = Server::start(&["--roles", "api,engine"]);
    let home = tempfile::tempdir().unwrap();
    let programs = home.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, variable) in [("muster", "MUSTER_BIN"), ("kubectl", "MUSTER_KUBECTL")] {
        let program = std::env::var(variable).expect("run the tests with `cargo xtask test`");
        symlink(program, programs.join(name)).unwrap();
    }
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let lines = tour(&readme);
    assert!(lines.len() > 10, "the tour is missing: {lines:?}");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-x", "-c", &lines.join("\n")])
        .current_dir(repository())
        .env("PATH", path)
        .env("HOME", home.path())
        .env("MUSTER_DATA", server.data())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for line in lines.iter().filter(|line| !line.starts_with("export")) {
        let first_words: Vec<_> = line.split_whitespace().take(2).collect();
        assert!(err.contains(&first_words.join(" ")), "{line} was not run:\n{err}");
    }
}

#[test]
fn every_example_is_accepted_by_a_kubectl_dry_run() {
    let kubectl = muster_e2e::kubectl::Kubectl::current();
    let mut examples = 0;
    for entry in std::fs::read_dir(repository().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        // A document of a kind that `muster apply` alone understands, and kinds that must be declared first.
        if path.ends_with("job-controller.json") || path.is_dir() {
            continue;
        }
        kubectl.ok(&format!("create --dry-run=server --validate=strict -f {}", path.display()));
        examples += 1;
    }
    assert!(examples >= 2, "the examples are missing");
}

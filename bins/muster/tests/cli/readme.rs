//! The part of the README that needs nothing but this program is run as it stands.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::world::Served;

const HEADING: &str = "## From nothing to an addon";

/// The lines of the `sh tour` blocks below the heading.
fn tour(readme: &str) -> Vec<&str> {
    let (_, part) = readme.split_once(HEADING).expect("the README has the tour");
    let part = part.split("\n## ").next().unwrap_or(part);
    let blocks = part.split("```sh tour\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).flat_map(str::lines).collect()
}

#[test]
fn the_way_from_nothing_to_an_addon_works_as_written() {
    let served = Served::running("2");
    let repository =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the program lies in it");
    let readme = std::fs::read_to_string(repository.join("README.md")).expect("there is a README");
    let lines = tour(&readme);
    assert!(lines.len() > 15, "the tour is missing: {lines:?}");
    let home = served.world.home.path();
    symlink(env!("CARGO_BIN_EXE_muster"), home.join("muster")).expect("links can be made");
    let path = format!("{}:/usr/bin:/bin", home.display());
    let mut bash = std::process::Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &lines.join("\n")]).current_dir(repository);
    let output = bash.env_clear().env("HOME", home).env("PATH", path).output().expect("bash runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for part in ["hello\n", "20 of 20 tasks succeeded", "pages are there\n", "\"words\": 11"] {
        assert!(out.contains(part) || err.contains(part), "{part}:\n{out}\n{err}");
    }
}

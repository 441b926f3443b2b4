//! The first command of the README starts a server. It is read from there and run in the workspace, in the profile of the tests, so
//! that nothing is built a second time.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use muster_e2e::lines::Lines;

/// The time for cargo to look through the workspace, or to build what a partial run of the tests did not.
const BUILT: Duration = Duration::from_mins(20);

/// Variables that cargo sets for the program of a test alone. Build scripts that watch them would run again.
const OF_THIS_PACKAGE: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The words of the first command, without the comment behind it and without the profile.
fn first_command(readme: &str) -> Vec<&str> {
    let block = readme.split("```").nth(1).expect("the README begins with a block of commands");
    let line = block.lines().find(|line| line.starts_with("cargo ")).expect("the block runs cargo");
    let command = line.split(" #").next().unwrap_or(line);
    command.split_whitespace().filter(|&word| word != "--release").collect()
}

#[test]
fn the_first_command_of_the_readme_starts_a_server() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e lies in the repository");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let words = first_command(&readme);
    assert!(words.starts_with(&["cargo", "run"]), "{words:?}");
    let home = tempfile::tempdir().unwrap();
    let said = home.path().join("said");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(&words[1..]).args(["--listen", "127.0.0.1:0", "--data"]).arg(home.path().join("data"));
    cargo.current_dir(root).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&said).unwrap());
    for (name, _) in std::env::vars_os() {
        let is_own = |name: &str| OF_THIS_PACKAGE.iter().any(|prefix| name.starts_with(prefix));
        if name.to_str().is_some_and(|name| is_own(name) || name.starts_with("MUSTER_")) {
            cargo.env_remove(name);
        }
    }
    // The port of robots is one for the whole machine.
    cargo.env("MUSTER_MQTT_LISTEN", "off");
    let mut server = Running(cargo.spawn().expect("cargo runs"));
    let mut lines = Lines::of(server.0.stdout.take().expect("standard output is piped"));
    let ready = lines.find_within(BUILT, |line| line == "Stop with Ctrl-C.");
    assert!(
        ready.is_some(),
        "{} did not start a server:\n{}",
        words.join(" "),
        fs::read_to_string(said).unwrap_or_default()
    );
}

//! The guide is true: its commands are run as they stand there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use muster_e2e::brokers::free_port;
use muster_e2e::wait::wait_for;

use crate::world::SOON;

/// A shell in which the commands of the guide mean the programs under test, with ports of their own.
struct Shell {
    home: tempfile::TempDir,
    path: String,
    mqtt: u16,
    started: Vec<Child>,
}

impl Shell {
    fn new() -> Self {
        let program = PathBuf::from(std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the program"));
        let place = program.parent().expect("a program is in a directory").display().to_string();
        let path = format!("{place}:{}", std::env::var("PATH").unwrap_or_default());
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        std::os::unix::fs::symlink(examples, home.path().join("examples")).expect("a link can be made");
        Self { home, path, mqtt: free_port(), started: Vec::new() }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec {line}")])
            .current_dir(self.home.path())
            .env("PATH", &self.path)
            .env("HOME", self.home.path())
            .env("MUSTER_LISTEN", "127.0.0.1:0")
            .env("MUSTER_MQTT_LISTEN", format!("127.0.0.1:{}", self.mqtt))
            .env("MUSTER_BROKER", format!("mqtt://127.0.0.1:{}", self.mqtt))
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null());
        command
    }

    fn start(&mut self, line: &str) -> PathBuf {
        let log = self.home.path().join(format!("log-{}", self.started.len()));
        let file = File::create(&log).expect("a file can be made");
        let errors = file.try_clone().expect("a file can be shared");
        let child = self.command(line).stdout(file).stderr(errors).spawn().expect("a shell can be started");
        self.started.push(child);
        log
    }

    fn run(&self, line: &str) -> String {
        let output = self.command(line).output().expect("a shell can be started");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for child in self.started.iter_mut().rev() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[test]
fn a_robot_is_connected_with_the_three_commands_of_the_guide() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/robots.md");
    let guide = fs::read_to_string(guide).expect("there is a guide");
    let mut blocks =
        guide.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default().trim());
    let mut shell = Shell::new();
    let said = shell.start(blocks.next().expect("a server is started"));
    wait_for("the server", SOON, || fs::read_to_string(&said).is_ok_and(|said| said.contains("is ready")));
    // `exec` binds closer than a redirection, which is as well.
    shell.run(blocks.next().expect("a token is made"));
    shell.start(blocks.next().expect("an agent is started"));
    let work: Vec<&str> = blocks.next().expect("it is given work").lines().collect();
    let [list, run, apply, wait] = work[..] else { panic!("{work:?}") };
    wait_for("the robot is Online", SOON, || shell.run(list).contains("Online"));
    assert!(shell.run(run).contains("hello from"));
    shell.run(apply);
    shell.run(wait);
    let explain = blocks.next().expect("a task is explained");
    assert!(shell.run(&explain.replace("TASK", "inspection-report-tell")).contains("Succeeded"));
}

//! `muster run`: with no server, with one, and with signals.

use std::fs;

use crate::world::{Running, Served, World, eventually};

#[test]
fn a_command_runs_without_any_server_and_its_exit_code_is_passed_on() {
    let world = World::new();
    world.muster(&["run", "--", "echo", "hello"]).is("hello\n");
    let said = world.muster(&["run", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (7, "out\nerr\n", ""));
}

#[test]
fn a_signal_that_ends_the_command_is_passed_on_as_shells_do() {
    let world = World::new();
    assert_eq!(world.muster(&["run", "--retries", "0", "--", "sh", "-c", "kill -9 $$"]).code, 137);
    assert_eq!(world.muster(&["run", "--", "sh", "-c", "kill -TERM $$"]).code, 143);
}

#[test]
fn a_timeout_is_exit_code_124() {
    let said = World::new().muster(&["run", "--timeout", "100ms", "--", "sleep", "300"]);
    assert_eq!((said.code, said.err.as_str()), (124, "error: the task ran longer than 100ms\n"));
}

#[test]
fn a_command_that_is_not_there_is_exit_code_127() {
    let said = World::new().muster(&["run", "--", "no-such-program"]);
    assert_eq!(said.code, 127);
    assert!(said.out.contains("no-such-program"), "{}", said.out);
    let said = World::new().muster(&["run", "--in-work-dir", "--", "no-such-program"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("no-such-program"), "{}", said.err);
}

#[test]
fn the_command_has_the_directory_and_the_environment_of_the_caller_unless_told_otherwise() {
    let world = World::new();
    world.file("sub dir/file", "");
    let place = world.home.path().join("sub dir");
    let run = |flags: &[&str]| {
        let mut command = world.command(&["run"]);
        command.args(flags).args(["--", "sh", "-c", "echo $PWD $COLOUR"]);
        let output = command.current_dir(&place).env("COLOUR", "blue").output().expect("muster starts");
        String::from_utf8(output.stdout).expect("the output is UTF-8")
    };
    let shown = fs::canonicalize(&place).expect("the directory is there").display().to_string();
    assert_eq!(run(&[]), format!("{shown} blue\n"));
    assert_eq!(run(&["--clean-env"]), format!("{shown}\n"));
    assert_eq!(run(&["--clean-env", "--env", "COLOUR=red"]), format!("{shown} red\n"));
    assert_eq!(run(&["--clean-env", "--env", "COLOUR"]), format!("{shown} blue\n"));
    let elsewhere = run(&["--in-work-dir"]);
    assert!(!elsewhere.contains("sub dir") && elsewhere.ends_with(" blue\n"), "{elsewhere}");
}

#[test]
fn the_environment_of_the_caller_is_not_stored() {
    let world = World::new();
    let mut command = world.command(&["run", "--", "true"]);
    assert!(command.env("PASSWORD", "hunter2-hunter2").status().expect("muster starts").success());
    let server = world.up(&["--listen", "127.0.0.1:0"]);
    let tasks = world.muster(&["get", "tasks", "-o", "json"]).json();
    assert_eq!(tasks["items"].as_array().map(Vec::len), Some(1));
    assert!(!tasks.to_string().contains("hunter2"), "{tasks}");
    drop(server);
}

#[test]
fn a_server_that_holds_the_directory_is_given_the_task() {
    let served = Served::running("1");
    let said =
        served.muster(&["run", "--name", "there", "--", "sh", "-c", "echo by; echo the server; exit 4"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (4, "by\nthe server\n", ""));
    let tasks = served.muster(&["get", "tasks", "-o", "name"]);
    assert!(tasks.out.starts_with("task.muster.dev/there-"), "{}", tasks.out);
}

#[test]
fn a_server_that_is_named_is_used_and_no_other() {
    let served = Served::running("1");
    let elsewhere = World::new();
    let kubeconfig = served.world.data().join("kubeconfig").display().to_string();
    elsewhere.muster(&["--kubeconfig", &kubeconfig, "run", "--", "echo", "far"]).is("far\n");
    assert!(!elsewhere.data().exists(), "no server was started");
    let said = elsewhere.muster(&["--server", "http://127.0.0.1:1", "run", "--", "true"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("no server answers at http://127.0.0.1:1"), "{}", said.err);
}

#[test]
fn two_at_once_share_a_server_and_the_first_waits_for_the_second() {
    let world = World::new();
    let script =
        |name: &str| format!("echo {name}; until test -e ~/{name}; do sleep 0.01; done; echo end of {name}");
    let mut first = Running::start(&mut world.command(&["run", "--", "sh", "-c", &script("one")]));
    assert_eq!(first.line(), "one");
    let mut second = Running::start(&mut world.command(&["run", "--", "sh", "-c", &script("two")]));
    assert_eq!(second.line(), "two");
    world.file("one", "");
    assert_eq!(first.line(), "end of one");
    assert!(first.note().starts_with("1 other runs here too"));
    world.file("two", "");
    assert_eq!(second.line(), "end of two");
    assert_eq!((first.code(), second.code()), (0, 0));
}

#[test]
fn a_task_goes_on_when_the_server_it_was_given_to_is_killed() {
    let mut served = Served::running("1");
    let script = "echo here; until test -e ~/go; do sleep 0.01; done; echo end";
    let mut run = Running::start(&mut served.world.command(&["run", "--", "sh", "-c", script]));
    assert_eq!(run.line(), "here");
    served.server.kill();
    assert_eq!(run.line(), "here", "the next attempt begins");
    served.world.file("go", "");
    assert_eq!(run.line(), "end");
    assert_eq!(run.code(), 0);
}

#[test]
fn an_interrupt_cancels_the_task_and_its_processes_end() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let world = World::new();
        let script =
            "trap 'echo ending; touch ~/ended; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let mut run = Running::start(&mut world.command(&["run", "--", "sh", "-c", script]));
        assert_eq!(run.line(), "ready");
        run.signal(signal);
        assert_eq!(run.note(), "canceling the task; once more leaves at once");
        run.wait_for("ending");
        assert_eq!(run.code(), code, "{signal}");
        assert!(world.home.path().join("ended").exists());
    }
}

#[test]
fn a_second_interrupt_leaves_at_once_and_nothing_stays_behind() {
    let world = World::new();
    let script = "trap '' TERM INT; echo $$; while :; do sleep 0.01; done";
    let mut run = Running::start(&mut world.command(&["run", "--", "sh", "-c", script]));
    let id = run.line();
    run.signal("INT");
    assert_eq!(run.note(), "canceling the task; once more leaves at once");
    run.signal("INT");
    assert_eq!(run.code(), 130);
    eventually("the end of the command", || !std::path::Path::new("/proc").join(&id).exists());
}

#[test]
fn a_command_whose_output_nobody_reads_is_ended_and_stays_so() {
    let world = World::new();
    let mut command = world.command(&["run", "--", "yes"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("muster starts");
    let mut out = child.stdout.take().expect("standard output is piped");
    std::io::Read::read_exact(&mut out, &mut [0; 100]).expect("something is written");
    drop(out);
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
    let server = world.up(&["--listen", "127.0.0.1:0"]);
    assert!(world.muster(&["get", "tasks"]).out.contains(" Canceled "));
    drop(server);
}

#[test]
fn a_command_of_a_run_that_was_killed_is_not_run_again() {
    let world = World::new();
    let script = "echo once >> ~/runs; echo begun; exec sleep 300";
    let mut run = Running::start(&mut world.command(&["run", "--", "sh", "-c", script]));
    assert_eq!(run.line(), "begun");
    run.kill();
    let server = world.up(&["--listen", "127.0.0.1:0", "--roles", "api,engine"]);
    let said = world.muster(&["wait", "--all"]);
    assert!(said.code == 1 && said.out.contains(" Failed: "), "{}", said.out);
    assert_eq!(fs::read_to_string(world.home.path().join("runs")).expect("it ran"), "once\n");
    drop(server);
}

#[test]
fn a_task_of_an_earlier_run_is_still_there_for_the_next_server() {
    let world = World::new();
    world.muster(&["run", "--name", "kept", "--", "echo", "kept"]).is("kept\n");
    let server = world.up(&["--listen", "127.0.0.1:0", "--roles", "api,engine"]);
    let name = world.muster(&["get", "tasks", "-o", "name"]).out;
    world.muster(&["logs", name.trim_end()]).is("kept\n");
    drop(server);
}

#[test]
fn a_run_starts_no_tasks_that_wait_for_a_server() {
    let world = World::new();
    let server = world.up(&["--listen", "127.0.0.1:0", "--roles", "api"]);
    let waiting = world.muster(&["submit", "--", "touch", "never"]).out;
    drop(server);
    world.muster(&["run", "--", "echo", "mine"]).is("mine\n");
    let server = world.up(&["--listen", "127.0.0.1:0", "--roles", "api"]);
    let told = world.muster(&["explain", waiting.trim_end(), "-o", "json"]).out;
    assert!(told.contains("\"Ready\""), "{told}");
    drop(server);
}

#[test]
fn a_command_that_has_to_wait_says_what_for() {
    let served = Served::running("1");
    let first = served.muster(&["submit", "--", "sleep", "300"]).out.trim_end().to_owned();
    assert_eq!(served.muster(&["wait", &first, "--for", "state=Running"]).code, 0);
    let mut run = Running::start(&mut served.world.command(&["run", "--isolated", "--", "echo", "at last"]));
    let note = run.note();
    assert!(note.starts_with("echo-") && note.contains(" waits: Isolated: "), "{note}");
    assert_eq!(served.muster(&["cancel", &first]).code, 0);
    assert_eq!(run.line(), "at last");
    assert_eq!(run.code(), 0);
}

#[test]
fn a_command_has_to_be_given() {
    World::new().muster(&["run"]).is_misuse("<COMMAND>");
    World::new().muster(&["run", "--no-such-flag", "true"]).is_misuse("--no-such-flag");
}

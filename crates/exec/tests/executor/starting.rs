use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use muster_types::attempt::{Observation, TaskData};
use muster_types::robot_launch::RobotLaunch;
use rustix::fs::OFlags;

use crate::yard::{Yard, codes, command, handle, launch, write_program};

#[test]
fn the_environment_is_what_was_given_and_the_name_of_the_attempt() {
    let mut yard = Yard::new();
    let mut launch = command("t", &["/usr/bin/env"]);
    launch.containers[0].env = vec![("B".into(), "two words".into()), ("A".into(), "x=y\nz".into())];
    yard.executor.start(launch);
    yard.ending("t");
    assert_eq!(yard.log("t"), "A=x=y\nz\nB=two words\nMUSTER_ATTEMPT=t-1\n");
}

#[test]
fn programs_are_found_without_a_path_in_the_environment() {
    let mut yard = Yard::new();
    let mut launch = command("t", &["sh", "-c", "echo $0"]);
    launch.containers[0].env.clear();
    yard.executor.start(launch);
    yard.ending("t");
    assert_eq!(yard.log("t"), "sh\n");
}

#[test]
fn the_input_is_at_its_end() {
    let mut yard = Yard::new();
    let ending = yard.run("t", "cat; readlink /proc/self/fd/0");
    assert_eq!((codes(&ending), yard.log("t")), (vec![0], "/dev/null\n".to_string()));
}

#[test]
fn programs_run_in_an_empty_directory_of_their_own() {
    let mut yard = Yard::new();
    yard.run("t", "pwd; ls -A; echo kept > file");
    assert_eq!(yard.log("t"), format!("{}\n", yard.work("t").display()));
    assert_eq!(fs::read_to_string(yard.work("t").join("file")).expect("a test needs it"), "kept\n");
}

#[test]
fn every_program_finds_the_data_of_the_task_in_a_file_that_is_named_to_it() {
    let mut yard = Yard::new();
    let script = "cat $MUSTER_TASK_DATA_FILE; stat -c ' %a' $MUSTER_TASK_DATA_FILE; cd /; test -f $MUSTER_TASK_DATA_FILE";
    let mut launch = launch("t", &[("main", script), ("side", "cat $MUSTER_TASK_DATA_FILE")]);
    launch.data = Some(TaskData::new(r#"{"depth":9}"#.into()));
    yard.executor.start(launch);
    assert_eq!(codes(&yard.ending("t"))[0], 0);
    assert_eq!(yard.log("t"), "{\"depth\":9} 600\n");
}

/// What whoever runs the tests handed down to every process.
fn handed_down() -> BTreeSet<u32> {
    let descriptors = fs::read_dir("/proc/self/fdinfo").expect("a test needs it");
    let handed_down = descriptors.filter_map(|entry| {
        let entry = entry.expect("a test needs it");
        let info = fs::read_to_string(entry.path()).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let closes =
            u32::from_str_radix(flags.trim(), 8).expect("a test needs it") & OFlags::CLOEXEC.bits() != 0;
        (!closes)
            .then(|| entry.file_name().to_str().expect("a test needs it").parse().expect("a test needs it"))
    });
    handed_down.collect()
}

#[test]
fn programs_inherit_no_descriptors_of_the_executor() {
    let mut yard = Yard::new();
    yard.executor.start(launch("other", &[("main", "exec sleep 3600")]));
    yard.executor.start(command("t", &["ls", "/proc/self/fd"]));
    yard.ending("t");
    let seen: BTreeSet<u32> =
        yard.log("t").lines().map(|line| line.parse().expect("a test needs it")).collect();
    let mut expected = handed_down();
    // The last is the directory being listed.
    expected.extend([0, 1, 2, (3..1024).find(|free| !expected.contains(free)).expect("a test needs it")]);
    assert_eq!(seen, expected);
}

#[test]
fn starting_twice_starts_once() {
    let mut yard = Yard::new();
    let launch = launch("t", &[("main", "echo run >> runs; mkfifo fifo; echo ready; read line < fifo")]);
    yard.executor.start(launch.clone());
    yard.executor.start(launch.clone());
    yard.line_of("t", "main", "ready");
    yard.executor.start(launch.clone());
    fs::write(yard.work("t").join("fifo"), "go\n").expect("a test needs it");
    let ending = yard.ending("t");
    assert_eq!(yard.observations("t"), [Observation::Started, Observation::Ended(ending)]);
    yard.executor.start(launch);
    yard.until_idle();
    assert!(matches!(yard.observations("t").last(), Some(Observation::Lost { .. })));
    assert_eq!(fs::read_to_string(yard.work("t").join("runs")).expect("a test needs it"), "run\n");
}

#[test]
fn what_was_started_by_an_executor_that_is_gone_is_lost() {
    let mut yard = Yard::new();
    fs::create_dir_all(yard.work("t")).expect("a test needs it");
    yard.executor.start(launch("t", &[("main", "exit 0")]));
    yard.until_idle();
    assert!(matches!(&yard.observations("t")[..], [Observation::Lost { .. }]));
}

#[test]
fn a_missing_command_is_permanent_and_named() {
    let mut yard = Yard::new();
    yard.executor.start(command("name", &["no-such-program", "x"]));
    let (reason, message, transient) = yard.start_failure("name");
    assert_eq!((reason.as_str(), transient), ("CommandNotFound", false));
    assert_eq!(message, "command not found: no-such-program (searched in /usr/bin:/bin)");
    yard.executor.start(command("path", &["/no/such/program"]));
    let (reason, message, transient) = yard.start_failure("path");
    assert_eq!((reason.as_str(), transient), ("CommandNotFound", false));
    assert_eq!(message, "command not found: /no/such/program");
}

#[test]
fn a_script_whose_interpreter_is_missing_is_told_from_a_missing_script() {
    let mut yard = Yard::new();
    let script = yard.temp.path().join("script");
    write_program(&script, "#!/no/such/interpreter\n");
    yard.executor.start(command("t", &[script.to_str().expect("a test needs it")]));
    let (reason, message, _) = yard.start_failure("t");
    assert_eq!(reason, "CommandNotFound");
    assert!(message.contains("the interpreter or loader it names was not found"), "{message}");
}

#[test]
fn a_file_that_may_not_be_run_is_not_permitted() {
    let mut yard = Yard::new();
    let file = yard.temp.path().join("file");
    fs::write(&file, "#!/bin/sh\n").expect("a test needs it");
    yard.executor.start(command("t", &[file.to_str().expect("a test needs it")]));
    let (reason, message, transient) = yard.start_failure("t");
    assert_eq!((reason.as_str(), transient), ("NotPermitted", false));
    assert_eq!(message, format!("not permitted to run {}", file.display()));
}

#[test]
fn a_file_that_is_no_program_is_a_bad_executable() {
    let mut yard = Yard::new();
    let file = yard.temp.path().join("file");
    write_program(&file, "neither\n");
    yard.executor.start(command("t", &[file.to_str().expect("a test needs it")]));
    let (reason, _, transient) = yard.start_failure("t");
    assert_eq!((reason.as_str(), transient), ("BadExecutable", false));
}

#[test]
fn arguments_that_are_too_large_are_refused() {
    let mut yard = Yard::new();
    yard.executor.start(command("t", &["true", &"x".repeat(3 << 20)]));
    let (reason, _, transient) = yard.start_failure("t");
    assert_eq!((reason.as_str(), transient), ("TooLarge", false));
}

#[test]
fn a_work_root_that_cannot_be_written_is_permanent_and_named() {
    let mut yard = Yard::with(|settings| settings.work_root = "/proc/no/such/root".into());
    yard.executor.start(command("t", &["true"]));
    let (reason, message, transient) = yard.start_failure("t");
    assert_eq!((reason.as_str(), transient), ("WorkDirectory", false));
    assert!(message.contains("/proc/no/such/root/t-1"), "{message}");
}

#[test]
fn names_that_leave_the_work_root_are_refused() {
    let mut yard = Yard::new();
    yard.executor.start(command("../escaped", &["true"]));
    assert_eq!(yard.start_failure("../escaped").0, "BadName");
    assert!(!yard.temp.path().join("escaped-1").exists());
}

#[test]
fn what_failed_to_start_leaves_nothing_and_can_be_started_again() {
    let mut yard = Yard::new();
    let mut both = launch("t", &[("main", "echo early; exec sleep 3600"), ("side", "")]);
    both.containers[1].command = vec!["no-such-program".into()];
    yard.executor.start(both);
    yard.start_failure("t");
    assert_eq!(yard.dirs.stored().expect("a test needs it"), []);
    yard.facts.clear();
    assert_eq!(codes(&yard.run("t", "exit 6")), [6]);
    assert_eq!(yard.dirs.stored().expect("a test needs it"), [handle("t")]);
}

#[test]
fn a_program_runs_as_the_user_it_is_for_where_that_is_possible() {
    let mut yard = Yard::new();
    fs::set_permissions(yard.temp.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut launch = launch("a", &[("main", "id -un; id -Gn; echo mine > file; cat file")]);
    launch.robot = Some(Box::new(RobotLaunch {
        robot: "r1".to_owned(),
        task: "default/a".to_owned(),
        user: "nobody".to_owned(),
        artifacts: vec![],
        stop_after_silence: None,
    }));
    yard.executor.start(launch);
    if rustix::process::geteuid().is_root() {
        assert_eq!(yard.ending("a").containers[0].exit_code, 0);
        assert_eq!(yard.log("a"), "nobody\nnogroup\nmine\n");
    } else {
        assert_eq!(yard.start_failure("a").0, "NotPermitted");
    }
}

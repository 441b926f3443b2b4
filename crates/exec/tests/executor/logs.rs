use std::fs;

use muster_types::attempt::{Cause, Observation};

use crate::yard::{Yard, codes, command, handle, launch};

#[test]
fn both_outputs_are_kept_in_the_order_they_were_written() {
    let mut yard = Yard::new();
    let ending = yard.run("t", "for i in 1 2 3; do echo out$i; echo err$i >&2; done");
    assert_eq!(yard.log("t"), "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
    assert_eq!(ending.containers[0].log_bytes, 30);
    let file = yard.dirs.log_path(&handle("t"), "main");
    assert_eq!(fs::read_to_string(file).expect("a test needs it"), yard.log("t"));
}

#[test]
fn a_log_is_complete_when_the_end_is_reported() {
    let mut yard = Yard::new();
    for index in 0..20 {
        let task = format!("t{index}");
        let ending = yard.run(&task, "seq 1 20000");
        let log = yard.log(&task);
        assert_eq!(log.lines().last(), Some("20000"));
        assert_eq!(log.len() as u64, ending.containers[0].log_bytes);
    }
}

#[test]
fn a_log_can_be_read_while_the_program_runs() {
    let mut yard = Yard::new();
    yard.executor.start(launch("t", &[("main", "mkfifo fifo; echo first; read line < fifo; echo second")]));
    yard.line_of("t", "main", "first");
    assert_eq!(yard.observations("t"), [Observation::Started]);
    assert_eq!(yard.log("t"), "first\n");
    fs::write(yard.work("t").join("fifo"), "go\n").expect("a test needs it");
    yard.ending("t");
    assert_eq!(yard.log("t"), "first\nsecond\n");
}

#[test]
fn each_container_has_its_own_log() {
    let mut yard = Yard::new();
    yard.executor
        .start(launch("t", &[("main", "echo from main"), ("side", "echo from side; exec sleep 3600")]));
    yard.ending("t");
    assert_eq!(yard.log_of("t", "main"), "from main\n");
    assert!(["", "from side\n"].contains(&yard.log_of("t", "side").as_str()));
}

#[test]
fn output_that_is_not_text_is_kept_as_it_is() {
    let mut yard = Yard::new();
    yard.run("t", r"printf '\000\377\n\200'");
    let part = yard.dirs.read_log(&handle("t"), "main", 0, 100).expect("a test needs it");
    assert_eq!(part.bytes, [0, 255, b'\n', 128]);
}

#[test]
fn a_hundred_megabytes_pass_without_a_stall_and_only_the_newest_part_is_kept() {
    let mut yard = Yard::with(|settings| settings.log_max_bytes = 1 << 20);
    let ending = yard.run("t", "yes 0123456789abcde | head -c 104857600; echo the end");
    let container = &ending.containers[0];
    assert_eq!((container.exit_code, container.log_bytes), (0, (100 << 20) + 8));
    let part = yard.dirs.read_log(&handle("t"), "main", 0, usize::MAX).expect("a test needs it");
    assert_eq!(part.end, container.log_bytes);
    assert_eq!(part.offset + part.bytes.len() as u64, part.end);
    assert!((512 << 10..=1 << 20).contains(&part.bytes.len()), "kept {}", part.bytes.len());
    assert!(part.bytes.ends_with(b"the end\n"));
    let logs = yard.dirs.log_path(&handle("t"), "main").parent().expect("a test needs it").to_path_buf();
    let on_disk: u64 = fs::read_dir(logs)
        .expect("a test needs it")
        .map(|entry| entry.expect("a test needs it").metadata().expect("a test needs it").len())
        .sum();
    assert!(on_disk <= (1 << 20) + 200, "{on_disk} bytes on the disk");
}

#[test]
fn a_program_that_closes_its_output_early_is_still_followed() {
    let mut yard = Yard::new();
    let ending = yard.run("t", "echo before; exec >&- 2>&-; exit 9");
    assert_eq!((codes(&ending), yard.log("t")), (vec![9], "before\n".to_string()));
}

#[test]
fn a_log_that_cannot_be_written_ends_the_attempt_with_words_and_nothing_else() {
    let mut yard = Yard::new();
    yard.executor
        .start(launch("other", &[("main", "mkfifo fifo; echo ready; read line < fifo; echo alive")]));
    yard.executor.start(launch("t", &[("main", "echo in the way > ../logs; echo lost; exec sleep 3600")]));
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![143], Cause::LogFailed));
    let message = ending.message.expect("a test needs it");
    assert!(message.starts_with("cannot write the log of container `main`:"), "{message}");
    yard.line_of("other", "main", "ready");
    fs::write(yard.work("other").join("fifo"), "go\n").expect("a test needs it");
    assert_eq!(yard.ending("other").cause, Cause::Itself);
    assert_eq!(yard.log("other"), "ready\nalive\n");
}

#[test]
fn a_program_with_a_broken_log_that_ends_at_once_is_not_called_a_success() {
    let mut yard = Yard::new();
    let ending = yard.run("t", "echo in the way > ../logs; echo lost");
    assert_eq!(ending.cause, Cause::LogFailed);
}

#[test]
fn logs_are_forced_to_the_disk_if_the_settings_say_so() {
    let mut yard = Yard::with(|settings| settings.sync_logs = true);
    yard.executor.start(command("t", &["echo", "kept"]));
    assert_eq!(yard.ending("t").cause, Cause::Itself);
    assert_eq!(yard.log("t"), "kept\n");
}

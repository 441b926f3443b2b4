use std::time::Duration;

use muster_ports::runtime::{Limits, Observation};
use tempfile::tempdir;

use crate::yard::{Yard, codes, launch};

/// Either the machine enforces memory limits and an attempt that uses more is killed and told why, or it says that it does
/// not; attempts run in both cases.
#[tokio::test]
async fn memory_limits_are_enforced_or_said_not_to_be() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let mut launch = launch("t", &[("main", "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c")]);
    launch.limits = Limits { cpu_millis: Some(2000), memory: Some(32 << 20) };
    yard.runtime.start(launch);
    let ending = yard.ending("t").await;
    let unenforced =
        yard.runtime.notices().iter().any(|notice| notice.starts_with("memory limits are not enforced"));
    if unenforced {
        assert_eq!((codes(&ending), yard.log("t").trim()), (vec![0], "150000000"));
    } else {
        assert_ne!(yard.log("t").trim(), "150000000");
        assert_eq!(ending.message.as_deref(), Some("memory ran out: the limit is 33554432 bytes"));
    }
}

#[tokio::test]
async fn an_attempt_with_limits_can_be_stopped_like_any_other() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let mut launch = launch("t", &[("main", "exec sleep 3600"), ("side", "exec sleep 3600")]);
    launch.limits = Limits { cpu_millis: Some(500), memory: Some(64 << 20) };
    yard.runtime.start(launch);
    yard.until("t", |what| matches!(what, Observation::Started)).await;
    yard.runtime.stop(&crate::yard::handle("t"), Duration::from_hours(1));
    assert_eq!(codes(&yard.ending("t").await), [143, 143]);
}

/// What an attempt may use is too little for any program: it ends, and nobody else notices.
#[tokio::test]
async fn an_attempt_with_too_little_memory_ends_alone() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    yard.start("neighbor", "exec sleep 3600");
    yard.started("neighbor").await;
    let limited = |task: &str, memory| {
        let mut launch = launch(task, &[("main", "echo ran")]);
        launch.limits.memory = Some(memory);
        launch
    };
    for memory in [1, 4 << 10, 128 << 10] {
        let task = format!("m{memory}");
        yard.runtime.start(limited(&task, memory));
        yard.until(&task, |what| !matches!(what, Observation::Started)).await;
    }
    yard.runtime.start(limited("enough", 64 << 20));
    assert_eq!(codes(&yard.ending("enough").await), [0]);
    assert!(yard.log("enough").ends_with("ran\n"), "{}", yard.log("enough"));
    yard.runtime.stop(&crate::yard::handle("neighbor"), Duration::ZERO);
    assert_eq!(codes(&yard.ending("neighbor").await), [137], "it ran until it was stopped");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_so_also_under_limits() {
    let temp = tempdir().expect("a test needs it");
    let mut yard = Yard::new(temp.path());
    let script = temp.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").expect("a file can be written");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("it is ours");
    let mut launch = launch("t", &[("main", "")]);
    launch.containers[0].command = vec![script.display().to_string()];
    launch.limits.memory = Some(64 << 20);
    yard.runtime.start(launch);
    let seen = yard.until("t", |what| !matches!(what, Observation::Started)).await;
    let Observation::StartFailed { reason, transient, .. } = &seen else { unreachable!("{seen:?}") };
    assert_eq!((reason.as_str(), *transient), ("CommandNotFound", false));
}

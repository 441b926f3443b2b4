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

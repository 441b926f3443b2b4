//! How a robot joins: it shows a join token, is written down as it described itself, and gets a credential of its own.
//!
//! Whether it may work is not decided here: it is written down without a phase, and the engine looks at it.

use std::sync::atomic::{AtomicU32, Ordering};

use muster_ports::clock::Millis;
use muster_ports::store::{Batch, CommitError, Draft, Key, Precondition, ResourceName, Store, Write};
use muster_types::robot::RobotSpec;
use muster_types::{JsonText, Robot, name_rules};

use crate::credentials::{Claim, Credentials};
use crate::messages::{Register, Response, VERSION};

/// Labels a robot may bring, and the longest text.
const MAX_LABELS: usize = 64;
const MAX_TEXT: usize = 253;
const MAX_TASKS: u32 = 1000;
/// What a robot is told that may not join.
const NOT_ADMITTED: &str = "the token is not valid, or as many robots as it has uses have joined with it, or another robot works \
                            under this id; make a token with `muster robot token create --uses N`, or delete the old robot first";

/// Answers a robot that wants to join.
pub(crate) async fn join(
    store: &Store,
    robots: &ResourceName,
    namespace: &str,
    credentials: &Credentials,
    asked: &Register,
    now: Millis,
) -> Response {
    let answer = |success, message: String, credential| Response {
        version: VERSION,
        success,
        message,
        robot_id: asked.robot_id.clone(),
        credential,
    };
    if let Some(why) = describe_bad(asked) {
        return answer(false, why, None);
    }
    match credentials.check(&asked.robot_id, &asked.token) {
        Claim::Refused => return answer(false, NOT_ADMITTED.to_owned(), None),
        Claim::Robot => return answer(true, "it has joined already".to_owned(), None),
        Claim::Joining => {}
    }
    // Before anything else is written: a token never lets more robots join than it has uses.
    match credentials.take_use(&asked.robot_id, &asked.token).await {
        Ok(true) => {}
        Ok(false) => return answer(false, NOT_ADMITTED.to_owned(), None),
        Err(why) => return answer(false, format!("the token cannot be used now: {why}; try again"), None),
    }
    if let Err(error) = write_down(store, robots, namespace, asked, now).await {
        return answer(false, format!("it cannot be written down: {error}; try again"), None);
    }
    match credentials.issue(&asked.robot_id).await {
        Ok(secret) => answer(true, "it has joined".to_owned(), Some(secret)),
        Err(why) => answer(false, why, None),
    }
}

fn describe_bad(asked: &Register) -> Option<String> {
    if let Err(why) = name_rules::dns1123_label(&asked.robot_id) {
        return Some(format!("the robot id is not valid: {why}"));
    }
    let long = |text: &String| text.len() > MAX_TEXT;
    let labels = &asked.labels;
    if labels.len() > MAX_LABELS || labels.iter().any(|(name, value)| long(name) || long(value)) {
        return Some(format!("there may be {MAX_LABELS} labels of {MAX_TEXT} bytes"));
    }
    let device = &asked.device_info;
    let texts = [&device.hostname, &device.platform, &device.arch, &device.kernel, &device.agent_version];
    if texts.into_iter().any(long) {
        return Some(format!("texts of deviceInfo may have {MAX_TEXT} bytes"));
    }
    let tasks = asked.max_tasks.filter(|tasks| *tasks > MAX_TASKS);
    tasks.map(|_| format!("maxTasks may be {MAX_TASKS} at most"))
}

/// Makes the Robot, or says of one that is described already what it is.
async fn write_down(
    store: &Store,
    robots: &ResourceName,
    namespace: &str,
    asked: &Register,
    now: Millis,
) -> Result<(), CommitError> {
    let key = Key::new(robots, namespace, &asked.robot_id);
    let stored = store.get(&key);
    let known = stored.as_ref().and_then(|stored| Robot::from_json(stored.json()).ok());
    let mut robot = known.unwrap_or_else(|| new_robot(namespace, asked, now));
    for (name, value) in &asked.labels {
        // What was changed by hand stays.
        robot.spec.labels.entry(name.clone()).or_insert_with(|| value.clone());
    }
    robot.spec.max_tasks = robot.spec.max_tasks.or(asked.max_tasks);
    // No sign of life: that takes the credential, which it does not have yet.
    robot.status.device_info = asked.device_info.clone();
    robot.metadata.resource_version.clear();
    let draft = robot.to_json().ok().and_then(Draft::of_object);
    let Some(draft) = draft else { return Ok(()) };
    let expect = stored.map_or(Precondition::Absent, |stored| Precondition::At(stored.revision));
    store.commit(Batch::of(Write::Put { key, expect, draft })).await.map(drop)
}

fn new_robot(namespace: &str, asked: &Register, now: Millis) -> Robot {
    let spec = RobotSpec { robot_id: asked.robot_id.clone(), ..RobotSpec::default() };
    let mut robot = Robot::new(namespace, &asked.robot_id, spec);
    robot.metadata.uid = uid(now);
    robot.metadata.generation = 1;
    robot.metadata.creation_timestamp = Some(now.to_timestamp());
    robot
}

/// A time-ordered (version 7) uuid.
fn uid(now: Millis) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut random = [0_u8; 8];
    // Without randomness the counter alone must do.
    getrandom::fill(&mut random).ok();
    let random = u64::from_be_bytes(random) ^ u64::from(COUNT.fetch_add(1, Ordering::Relaxed));
    let millis = u64::try_from(now.0).unwrap_or(0);
    format!(
        "{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}",
        millis >> 16 & 0xffff_ffff,
        millis & 0xffff,
        random >> 52,
        random >> 36 & 0x3fff | 0x8000,
        random & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_robot_says_of_itself_has_limits() {
        let good = Register {
            version: 1,
            robot_id: "r1".to_owned(),
            token: String::new(),
            device_info: muster_types::robot_status::DeviceInfo::default(),
            labels: muster_types::metadata::StringMap::default(),
            max_tasks: Some(4),
        };
        assert_eq!(describe_bad(&good), None);
        for id in ["", "R1", "a/b", "a+", "#", "r1.status", &"x".repeat(64)] {
            assert!(describe_bad(&Register { robot_id: id.to_owned(), ..good.clone() }).is_some(), "{id}");
        }
        assert!(describe_bad(&Register { max_tasks: Some(5000), ..good.clone() }).is_some());
        let labels = (0..65).map(|number| (number.to_string(), String::new())).collect();
        assert!(describe_bad(&Register { labels, ..good }).is_some());
    }

    #[test]
    fn a_uid_is_a_version_7_uuid() {
        let uid = uid(Millis(1_800_000_000_000));
        assert_eq!((uid.len(), uid.as_bytes()[14]), (36, b'7'), "{uid}");
        assert!(matches!(uid.as_bytes()[19], b'8'..=b'b'), "{uid}");
    }
}

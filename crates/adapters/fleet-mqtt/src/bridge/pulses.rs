//! Signs of life, folded in memory: what is written down is bounded, however many robots there are and however often they speak.
//!
//! What says something new (a connection came or went, another device, another number of tasks) is written at the next chance;
//! what only says that a robot lives is written when what is stored has become old. Never writes a phase: that is the engine's.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::store::{Batch, CommitError, Draft, Key, Precondition, ResourceName, Store, Write};
use muster_types::Robot;
use muster_types::condition::{Condition, ConditionStatus, set_condition};
use muster_types::robot_status::{CONNECTED, DeviceInfo};

/// Tries to write one robot down, while others write it too.
const TRIES: usize = 3;
/// The mark of a device of which nothing is known.
const UNKNOWN: u64 = 0;

/// What was heard of each robot and not written down yet.
#[derive(Debug, Default)]
pub(crate) struct Pulses {
    by_robot: HashMap<Box<str>, Pulse>,
}

/// What was heard of a robot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pulse {
    /// When it last spoke.
    pub heard: Option<Millis>,
    /// What it is, until that is written down.
    pub device: Option<Box<DeviceInfo>>,
    /// Tells one description of a device from another.
    device_mark: u64,
    pub running: u32,
    pub connected: Option<bool>,
    written: Option<Millis>,
    /// It says something that is not written down.
    news: bool,
}

/// What is written down first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// A robot is cut off: it is to be given nothing.
    Cut,
    /// Something else is new.
    News,
    /// What is stored has become old.
    Old,
}

impl Pulse {
    /// Counts as written down from now on.
    fn take(&mut self, now: Millis) -> Self {
        self.news = false;
        self.written = Some(now);
        let device = self.device.take();
        Self { device, ..self.clone() }
    }

    fn urgency(&self) -> Urgency {
        match (self.news, self.connected) {
            (true, Some(false)) => Urgency::Cut,
            (true, _) => Urgency::News,
            (false, _) => Urgency::Old,
        }
    }
}

impl Pulses {
    fn of(&mut self, robot: &str) -> &mut Pulse {
        self.by_robot.entry(robot.into()).or_default()
    }

    /// A robot lives.
    pub(crate) fn hear(&mut self, robot: &str, device: &DeviceInfo, running: u32, now: Millis) {
        let mark = mark_of(device);
        let pulse = self.of(robot);
        if pulse.device_mark != mark {
            pulse.device = Some(Box::new(device.clone()));
            pulse.device_mark = mark;
            pulse.news = true;
        }
        pulse.news |= pulse.running != running;
        pulse.news |= pulse.connected != Some(true) || pulse.heard.is_none();
        pulse.heard = Some(now);
        pulse.running = running;
        pulse.connected = Some(true);
    }

    /// The connection of a robot came or went.
    pub(crate) fn hear_connection(&mut self, robot: &str, connected: bool) {
        let pulse = self.of(robot);
        pulse.news |= pulse.connected != Some(connected);
        pulse.connected = Some(connected);
    }

    /// Whether a robot is connected, as far as is known.
    pub(crate) fn is_connected(&self, robot: &str) -> bool {
        self.by_robot.get(robot).is_some_and(|pulse| pulse.connected == Some(true))
    }

    /// What is to be written down now: what is new first, and no more than `most`.
    pub(crate) fn take_due(&mut self, every: Duration, most: usize, now: Millis) -> Vec<(String, Pulse)> {
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        let is_old = |pulse: &Pulse| {
            let since = pulse.written.map_or(i64::MAX, |written| now.0 - written.0);
            pulse.heard > pulse.written && since >= every
        };
        let mut due: Vec<(Urgency, Option<Millis>, Box<str>)> = self
            .by_robot
            .iter()
            .filter(|(_, pulse)| pulse.news || is_old(pulse))
            .map(|(robot, pulse)| (pulse.urgency(), pulse.written, robot.clone()))
            .collect();
        due.sort_unstable();
        due.truncate(most);
        let mut taken = Vec::with_capacity(due.len());
        for (.., robot) in due {
            if let Some(pulse) = self.by_robot.get_mut(&robot) {
                taken.push((robot.into_string(), pulse.take(now)));
            }
        }
        taken
    }

    /// What is new of one robot, to be written down now.
    pub(crate) fn take_news(&mut self, robot: &str, now: Millis) -> Option<Pulse> {
        self.by_robot.get_mut(robot).filter(|pulse| pulse.news).map(|pulse| pulse.take(now))
    }

    /// What was taken to be written down was not: all of it is said again.
    pub(crate) fn doubt(&mut self, robot: &str) {
        if let Some(pulse) = self.by_robot.get_mut(robot) {
            (pulse.device_mark, pulse.written, pulse.news) = (UNKNOWN, None, true);
        }
    }

    /// A robot is gone.
    pub(crate) fn forget(&mut self, robot: &str) {
        self.by_robot.remove(robot);
    }
}

/// A mark for what a robot is; never [`UNKNOWN`].
fn mark_of(device: &DeviceInfo) -> u64 {
    let mut hasher = DefaultHasher::new();
    device.hash(&mut hasher);
    hasher.finish().max(UNKNOWN + 1)
}

/// Writes down what was heard of a robot. What is not there any more is not made again. False if it is there and says something
/// else.
pub(crate) async fn write(
    store: &Store,
    resource: &ResourceName,
    path: &str,
    pulse: &Pulse,
    now: Millis,
) -> bool {
    for _ in 0..TRIES {
        let key = Key { resource: resource.clone(), path: path.into() };
        let Some(stored) = store.get(&key) else { return true };
        let Ok(mut robot) = serde_json::from_slice::<Robot>(stored.json()) else { return true };
        fold(&mut robot, pulse, now);
        robot.metadata.resource_version.clear();
        let draft = serde_json::to_vec(&robot).ok().and_then(Draft::of_object);
        let Some(draft) = draft else { return true };
        let write = Write::Put { key, expect: Precondition::At(stored.revision), draft };
        match store.commit(Batch::of(write)).await {
            Err(CommitError::Conflict { .. }) => {}
            Ok(_) => return true,
            Err(error) => {
                tracing::warn!(path, %error, "a sign of life could not be written down");
                return false;
            }
        }
    }
    false
}

/// Puts what was heard into a robot, and nothing else.
pub(crate) fn fold(robot: &mut Robot, pulse: &Pulse, now: Millis) {
    let status = &mut robot.status;
    if let Some(heard) = pulse.heard {
        status.last_heartbeat_time = status.last_heartbeat_time.max(Some(heard.to_timestamp()));
        status.running = pulse.running;
    }
    if let Some(device) = &pulse.device {
        status.device_info.clone_from(device.as_ref());
    }
    if let Some(connected) = pulse.connected {
        let (word, reason, message) = if connected {
            (ConditionStatus::True, "Connected", "It is connected to the broker")
        } else {
            (ConditionStatus::False, "ConnectionLost", "The broker lost its connection")
        };
        set_condition(
            &mut status.conditions,
            Condition::new(CONNECTED, word, reason, message, now.to_timestamp()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn due(pulses: &mut Pulses, most: usize, second: i64) -> Vec<String> {
        let taken = pulses.take_due(MINUTE, most, Millis(second * 1000));
        taken.into_iter().map(|(robot, _)| robot).collect()
    }

    #[test]
    fn signs_of_life_are_folded_and_written_once_a_minute() {
        let mut pulses = Pulses::default();
        let mut written = 0;
        for second in 0..600 {
            if second % 5 == 0 {
                pulses.hear("r1", &DeviceInfo::default(), 0, Millis(second * 1000));
            }
            written += due(&mut pulses, 100, second).len();
        }
        assert_eq!(written, 10);
    }

    #[test]
    fn however_many_robots_speak_no_more_than_the_limit_is_written() {
        let mut pulses = Pulses::default();
        for robot in 0..1000 {
            pulses.hear(&format!("r{robot}"), &DeviceInfo::default(), 0, Millis(1));
        }
        assert_eq!(due(&mut pulses, 300, 1).len(), 300);
        assert_eq!((0..9).map(|_| due(&mut pulses, 300, 1).len()).sum::<usize>(), 700);
    }

    #[test]
    fn news_goes_before_what_is_only_old() {
        let mut pulses = Pulses::default();
        for second in [0, 100] {
            pulses.hear("old", &DeviceInfo::default(), 0, Millis(second * 1000));
            if second == 0 {
                assert_eq!(due(&mut pulses, 9, 0), ["old"]);
            }
        }
        pulses.hear_connection("back", true);
        pulses.hear_connection("cut", false);
        assert_eq!(due(&mut pulses, 1, 100), ["cut"]);
        assert_eq!(due(&mut pulses, 1, 100), ["back"]);
        assert_eq!(due(&mut pulses, 1, 100), ["old"]);
    }

    #[test]
    fn what_was_taken_at_once_is_not_due_again() {
        let mut pulses = Pulses::default();
        pulses.hear_connection("r1", false);
        assert_eq!(pulses.take_news("r1", Millis(0)).and_then(|pulse| pulse.connected), Some(false));
        assert_eq!(pulses.take_news("r1", Millis(1)), None);
        assert_eq!(due(&mut pulses, 9, 1), [""; 0]);
    }

    #[test]
    fn a_device_is_written_once_and_again_if_that_failed() {
        let mut pulses = Pulses::default();
        let device = DeviceInfo { cpus: 3, ..DeviceInfo::default() };
        let mut cpus = |pulses: &mut Pulses, second: i64| {
            pulses.hear("r1", &device, 0, Millis(second * 1000));
            let taken = pulses.take_due(MINUTE, 1, Millis(second * 1000));
            taken.into_iter().map(|(_, pulse)| pulse.device.map(|device| device.cpus)).collect::<Vec<_>>()
        };
        assert_eq!(cpus(&mut pulses, 0), [Some(3)]);
        assert_eq!(cpus(&mut pulses, 60), [None], "it is known");
        pulses.doubt("r1");
        assert_eq!(cpus(&mut pulses, 61), [Some(3)]);
        assert_eq!(cpus(&mut pulses, 62), []);
    }

    #[test]
    fn a_sign_of_life_never_changes_a_phase() {
        let mut robot = Robot::default();
        let mut pulses = Pulses::default();
        pulses.hear("r1", &DeviceInfo { cpus: 3, ..DeviceInfo::default() }, 2, Millis(5000));
        let (_, pulse) = pulses.take_due(MINUTE, 1, Millis(5000)).remove(0);
        fold(&mut robot, &pulse, Millis(5000));
        assert_eq!((robot.status.phase, robot.status.running, robot.status.device_info.cpus), (None, 2, 3));
        assert_eq!(robot.spec, muster_types::robot::RobotSpec::default());
    }
}

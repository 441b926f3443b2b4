//! What was heard of a robot, held against what is stored of it.
//!
//! Several servers hear of one robot, so what is worth writing down depends on what is stored by now, never on what this server
//! wrote itself. Never holds a phase: that is the engine's.

use std::time::Duration;

use muster_ports::clock::Millis;
use muster_types::Timestamp;
use muster_types::condition::{Condition, ConditionStatus, find_condition, set_condition};
use muster_types::robot_status::{CONNECTED, DeviceInfo, RobotStatus};

/// What was heard of a robot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pulse {
    /// Its last sign of life.
    pub beat: Option<Beat>,
    /// Whether it is connected, as was last heard.
    pub connected: Option<bool>,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beat {
    pub heard: Millis,
    pub running: u32,
    pub device: Box<DeviceInfo>,
}

/// What is written down first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// A robot is cut off: it is to be given nothing.
    Cut,
    /// Something else is new.
    News,
    /// What is stored has become old.
    Old,
}

impl Pulse {
    /// A robot lives, and so is connected.
    pub(crate) fn of_beat(heard: Millis, running: u32, device: DeviceInfo) -> Self {
        Self { beat: Some(Beat { heard, running, device: Box::new(device) }), connected: Some(true) }
    }

    /// The connection of a robot came or went.
    pub(crate) fn of_connection(connected: bool) -> Self {
        Self { beat: None, connected: Some(connected) }
    }

    /// Takes in what was heard after it.
    pub(crate) fn absorb(&mut self, later: Self) {
        self.connected = later.connected.or(self.connected);
        if later.beat.is_some() {
            self.beat = later.beat;
        }
    }

    /// How urgent it is to write this down over what is stored; `None` if that says as much already. What only says that a robot
    /// lives is worth a write when what is stored is older by `every`.
    pub(crate) fn urgency(&self, stored: &RobotStatus, every: Duration, now: Millis) -> Option<Urgency> {
        let is = find_condition(&stored.conditions, CONNECTED).map(Condition::is_true);
        match self.connected {
            Some(false) if is != Some(false) => return Some(Urgency::Cut),
            Some(true) if is != Some(true) => return Some(Urgency::News),
            _ => {}
        }
        let beat = self.newer_beat(stored, every, now)?;
        if beat.running != stored.running || *beat.device != stored.device_info {
            return Some(Urgency::News);
        }
        let heard = beat.heard.to_timestamp();
        let is_new = |time: Timestamp| heard < time || heard.duration_since(time).as_std() >= every;
        stored.last_heartbeat_time.is_none_or(is_new).then_some(Urgency::Old)
    }

    /// The sign of life, unless another server has heard a later one. What is stored from further ahead than signs of life wait to be
    /// written comes from a clock that was wrong, unless this server has kept the sign of life for as long as that: a robot must not be
    /// silent until this clock has caught up.
    fn newer_beat(&self, stored: &RobotStatus, every: Duration, now: Millis) -> Option<&Beat> {
        let is_newer = |beat: &Beat| {
            let heard = beat.heard.to_timestamp();
            let is_fresh = now.to_timestamp().duration_since(heard).as_std() < every;
            let replaces =
                |time: Timestamp| heard >= time || (is_fresh && time.duration_since(heard).as_std() >= every);
            stored.last_heartbeat_time.is_none_or(replaces)
        };
        self.beat.as_ref().filter(|beat| is_newer(beat))
    }

    /// Puts what was heard into what is reported of a robot, and nothing else.
    pub(crate) fn fold_into(&self, status: &mut RobotStatus, every: Duration, now: Millis) {
        if let Some(beat) = self.newer_beat(status, every, now) {
            status.last_heartbeat_time = Some(beat.heard.to_timestamp());
            status.running = beat.running;
            status.device_info.clone_from(&beat.device);
        }
        if let Some(connected) = self.connected {
            let (word, reason, message) = if connected {
                (ConditionStatus::True, "Connected", "It is connected to the broker")
            } else {
                (ConditionStatus::False, "ConnectionLost", "The broker lost its connection")
            };
            let condition = Condition::new(CONNECTED, word, reason, message, now.to_timestamp());
            set_condition(&mut status.conditions, condition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn beat(second: i64, running: u32) -> Pulse {
        Pulse::of_beat(Millis(second * 1000), running, DeviceInfo { cpus: 3, ..DeviceInfo::default() })
    }

    fn after(pulses: &[Pulse]) -> RobotStatus {
        let mut status = RobotStatus::default();
        for pulse in pulses {
            pulse.fold_into(&mut status, MINUTE, Millis(0));
        }
        status
    }

    #[test]
    fn a_sign_of_life_replaces_one_of_a_clock_that_was_ahead() {
        let mut stored = after(&[beat(9000, 0)]);
        assert_eq!(beat(1000, 0).urgency(&stored, MINUTE, Millis(0)), Some(Urgency::Old));
        beat(1000, 0).fold_into(&mut stored, MINUTE, Millis(0));
        assert_eq!(stored.last_heartbeat_time.map(Timestamp::as_second), Some(1000));
        assert_eq!(
            beat(990, 0).urgency(&stored, MINUTE, Millis(0)),
            None,
            "another server heard a later one"
        );
    }

    #[test]
    fn a_sign_of_life_that_was_kept_for_too_long_replaces_no_later_one() {
        let mut stored = after(&[beat(9000, 0)]);
        let now = Millis(1_060_000);
        assert_eq!(beat(1000, 0).urgency(&stored, MINUTE, now), None);
        beat(1000, 0).fold_into(&mut stored, MINUTE, now);
        assert_eq!(stored.last_heartbeat_time.map(Timestamp::as_second), Some(9000));
        assert_eq!(beat(1001, 0).urgency(&stored, MINUTE, now), Some(Urgency::Old));
    }

    #[test]
    fn a_clock_that_was_set_back_a_little_does_not_make_robots_silent() {
        let every = Duration::from_secs(3);
        let mut stored = after(&[beat(114, 0)]);
        assert_eq!(beat(100, 0).urgency(&stored, every, Millis(0)), Some(Urgency::Old));
        beat(100, 0).fold_into(&mut stored, every, Millis(0));
        assert_eq!(stored.last_heartbeat_time.map(Timestamp::as_second), Some(100));
        assert_eq!(beat(103, 0).urgency(&stored, every, Millis(0)), Some(Urgency::Old));
    }

    #[test]
    fn a_sign_of_life_is_worth_a_write_once_what_is_stored_is_old_whoever_stored_it() {
        let stored = after(&[beat(100, 0)]);
        assert_eq!(beat(159, 0).urgency(&stored, MINUTE, Millis(0)), None);
        assert_eq!(beat(160, 0).urgency(&stored, MINUTE, Millis(0)), Some(Urgency::Old));
        assert_eq!(beat(101, 2).urgency(&stored, MINUTE, Millis(0)), Some(Urgency::News));
        assert_eq!(beat(0, 0).urgency(&RobotStatus::default(), MINUTE, Millis(0)), Some(Urgency::News));
    }

    #[test]
    fn what_another_server_heard_later_is_not_undone() {
        let stored = after(&[beat(100, 1)]);
        assert_eq!(beat(90, 2).urgency(&stored, MINUTE, Millis(0)), None);
        let mut status = stored.clone();
        beat(90, 2).fold_into(&mut status, MINUTE, Millis(0));
        assert_eq!(status, stored);
    }

    #[test]
    fn a_connection_is_worth_a_write_unless_it_is_stored_so() {
        let (cut, back) = (Pulse::of_connection(false), Pulse::of_connection(true));
        let nothing = RobotStatus::default();
        assert_eq!(cut.urgency(&nothing, MINUTE, Millis(0)), Some(Urgency::Cut));
        assert_eq!(back.urgency(&nothing, MINUTE, Millis(0)), Some(Urgency::News));
        let stored = after(std::slice::from_ref(&cut));
        assert_eq!(
            (cut.urgency(&stored, MINUTE, Millis(0)), back.urgency(&stored, MINUTE, Millis(0))),
            (None, Some(Urgency::News))
        );
        assert_eq!(
            beat(0, 0).urgency(&stored, MINUTE, Millis(0)),
            Some(Urgency::News),
            "who lives is connected"
        );
    }

    #[test]
    fn a_sign_of_life_never_changes_a_phase() {
        let status = after(&[beat(5, 2), Pulse::of_connection(false)]);
        assert_eq!((status.phase, status.running, status.device_info.cpus), (None, 2, 3));
    }
}

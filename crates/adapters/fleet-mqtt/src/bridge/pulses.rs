//! Signs of life on their way to the store: what is written down is bounded, however many robots there are and however often they
//! speak.
//!
//! A robot is here only while something of it is not written down. Of one robot one write is under way: what is heard meanwhile is
//! written after it, so that what was heard first never comes last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_types::robot_status::RobotStatus;

use super::pulse::{Pulse, Urgency};

/// Robots for which there is always room.
const ROOM: usize = 1024;

/// What was heard of each robot and is not written down yet.
#[derive(Debug, Default)]
pub(crate) struct Pulses {
    by_robot: HashMap<Box<str>, Waiting>,
}

/// What waits to be written down.
#[derive(Debug)]
struct Waiting {
    pulse: Pulse,
    urgency: Urgency,
    stage: Stage,
}

/// How far that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Due,
    /// It is being written down.
    UnderWay,
    /// It is, and more was heard since.
    DueAgain,
}

impl Pulses {
    /// Something was heard of a robot of which this is stored.
    pub(crate) fn hear(
        &mut self,
        robot: &str,
        pulse: Pulse,
        stored: &RobotStatus,
        every: Duration,
        now: Millis,
    ) {
        match self.by_robot.entry(robot.into()) {
            Entry::Vacant(place) => {
                if let Some(urgency) = pulse.urgency(stored, every, now) {
                    place.insert(Waiting { pulse, urgency, stage: Stage::Due });
                }
            }
            Entry::Occupied(mut place) => {
                let waiting = place.get_mut();
                waiting.pulse.absorb(pulse);
                waiting.stage = match waiting.stage {
                    Stage::Due => Stage::Due,
                    Stage::UnderWay | Stage::DueAgain => Stage::DueAgain,
                };
                waiting.urgency = waiting.pulse.urgency(stored, every, now).unwrap_or(Urgency::Old);
            }
        }
    }

    /// What is to be written down now: what is new first, and no more than `most`.
    pub(crate) fn take_due(&mut self, most: usize) -> Vec<(String, Pulse)> {
        let heard = |waiting: &Waiting| waiting.pulse.beat.as_ref().map(|beat| beat.heard);
        let mut due: Vec<(Urgency, Option<Millis>, &str)> = self
            .by_robot
            .iter()
            .filter(|(_, waiting)| waiting.stage == Stage::Due)
            .map(|(robot, waiting)| (waiting.urgency, heard(waiting), robot.as_ref()))
            .collect();
        due.sort_unstable();
        due.truncate(most);
        let robots: Vec<String> = due.into_iter().map(|(.., robot)| robot.to_owned()).collect();
        robots.into_iter().filter_map(|robot| Some((robot.clone(), self.take(&robot)?))).collect()
    }

    /// What is due of one robot, to be written down now.
    pub(crate) fn take(&mut self, robot: &str) -> Option<Pulse> {
        let waiting = self.by_robot.get_mut(robot).filter(|waiting| waiting.stage == Stage::Due)?;
        waiting.stage = Stage::UnderWay;
        Some(waiting.pulse.clone())
    }

    /// Gives back the room that a crowd needed which came at once.
    fn give_back(&mut self) {
        if self.by_robot.capacity() > ROOM && self.by_robot.len() * 4 < self.by_robot.capacity() {
            self.by_robot.shrink_to(self.by_robot.len() * 2);
        }
    }

    /// What was taken was written down, or was not and is due again.
    pub(crate) fn settle(&mut self, robot: &str, written: bool) {
        if let Some(waiting) = self.by_robot.get_mut(robot) {
            if written && waiting.stage == Stage::UnderWay {
                self.by_robot.remove(robot);
                self.give_back();
            } else {
                waiting.stage = Stage::Due;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_types::robot_status::DeviceInfo;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// Servers that hear robots in turns and share what is stored.
    #[derive(Default)]
    struct Site {
        stored: HashMap<String, RobotStatus>,
        writes: usize,
    }

    impl Site {
        fn of(&mut self, robot: &str) -> &mut RobotStatus {
            self.stored.entry(robot.to_owned()).or_default()
        }

        fn beat(&mut self, pulses: &mut Pulses, robot: &str, second: i64) {
            let pulse = Pulse::of_beat(Millis(second * 1000), 0, DeviceInfo::default());
            pulses.hear(robot, pulse, self.of(robot), MINUTE, Millis(0));
        }

        fn connection(&mut self, pulses: &mut Pulses, robot: &str, connected: bool) {
            pulses.hear(robot, Pulse::of_connection(connected), self.of(robot), MINUTE, Millis(0));
        }

        /// Writes down what was taken, if it is still worth it.
        fn write(&mut self, pulses: &mut Pulses, robot: &str, pulse: &Pulse) {
            let status = self.of(robot);
            if pulse.urgency(status, MINUTE, Millis(0)).is_some() {
                pulse.fold_into(status, MINUTE, Millis(0));
                self.writes += 1;
            }
            pulses.settle(robot, true);
        }

        fn look(&mut self, pulses: &mut Pulses, most: usize) -> Vec<String> {
            let due = pulses.take_due(most);
            for (robot, pulse) in &due {
                self.write(pulses, robot, pulse);
            }
            due.into_iter().map(|(robot, _)| robot).collect()
        }

        fn is_connected(&mut self, robot: &str) -> bool {
            self.of(robot).conditions.iter().any(muster_types::condition::Condition::is_true)
        }
    }

    #[test]
    fn signs_of_life_are_folded_and_written_once_a_minute_however_many_servers_share_them() {
        for servers in [1, 2, 5] {
            let mut site = Site::default();
            let mut all: Vec<Pulses> = (0..servers).map(|_| Pulses::default()).collect();
            for second in 0..600 {
                if second % 5 == 0 {
                    let turn = usize::try_from(second / 5).unwrap_or_default() % servers;
                    site.beat(&mut all[turn], "r1", second);
                }
                for pulses in &mut all {
                    site.look(pulses, 100);
                }
            }
            assert_eq!(site.writes, 10, "{servers} servers");
            assert!(all.iter().all(|pulses| pulses.by_robot.is_empty()), "nothing waits");
        }
    }

    #[test]
    fn however_many_robots_speak_no_more_than_the_limit_is_written() {
        let (mut site, mut pulses) = (Site::default(), Pulses::default());
        for robot in 0..1000 {
            site.beat(&mut pulses, &format!("r{robot}"), 1);
        }
        assert_eq!(site.look(&mut pulses, 300).len(), 300);
        assert_eq!((0..9).map(|_| site.look(&mut pulses, 300).len()).sum::<usize>(), 700);
    }

    #[test]
    fn a_crowd_that_came_at_once_leaves_no_room_behind() {
        let (mut pulses, mut site) = (Pulses::default(), Site::default());
        for robot in 0..10_000 {
            site.connection(&mut pulses, &robot.to_string(), true);
        }
        while !site.look(&mut pulses, 1000).is_empty() {}
        assert!(pulses.by_robot.is_empty() && pulses.by_robot.capacity() <= 2 * ROOM);
    }

    #[test]
    fn news_goes_before_what_is_only_old() {
        let (mut site, mut pulses) = (Site::default(), Pulses::default());
        site.beat(&mut pulses, "old", 0);
        assert_eq!(site.look(&mut pulses, 9), ["old"]);
        site.beat(&mut pulses, "old", 100);
        site.connection(&mut pulses, "back", true);
        site.connection(&mut pulses, "cut", false);
        assert_eq!(site.look(&mut pulses, 1), ["cut"]);
        assert_eq!(site.look(&mut pulses, 1), ["back"]);
        assert_eq!(site.look(&mut pulses, 1), ["old"]);
    }

    #[test]
    fn what_is_being_written_is_not_due_again_and_what_failed_is() {
        let (mut site, mut pulses) = (Site::default(), Pulses::default());
        site.connection(&mut pulses, "r1", false);
        assert!(pulses.take("r1").is_some());
        assert_eq!((pulses.take("r1"), pulses.take_due(9).len()), (None, 0));
        pulses.settle("r1", false);
        assert!(pulses.take("r1").is_some());
        pulses.settle("r1", true);
        assert!(pulses.by_robot.is_empty());
    }

    #[test]
    fn a_cut_whose_write_is_slow_never_comes_after_the_reconnect() {
        let (mut site, mut pulses) = (Site::default(), Pulses::default());
        site.connection(&mut pulses, "r1", true);
        site.look(&mut pulses, 9);
        site.connection(&mut pulses, "r1", false);
        let cut = pulses.take("r1").unwrap();
        site.connection(&mut pulses, "r1", true);
        assert_eq!(site.look(&mut pulses, 9), [""; 0], "the first write is still under way");
        site.write(&mut pulses, "r1", &cut);
        assert!(!site.is_connected("r1"));
        site.look(&mut pulses, 9);
        assert!(site.is_connected("r1"));
    }

    #[test]
    fn servers_that_write_in_any_order_agree_with_what_was_said_last() {
        let (mut site, mut fast, mut slow) = (Site::default(), Pulses::default(), Pulses::default());
        site.connection(&mut fast, "r1", true);
        site.look(&mut fast, 9);
        // Both hear that it is cut off and back; one is ahead with both writes, the other one has only heard of the cut.
        site.connection(&mut fast, "r1", false);
        site.connection(&mut slow, "r1", false);
        let late = slow.take("r1").unwrap();
        site.look(&mut fast, 9);
        site.connection(&mut fast, "r1", true);
        site.look(&mut fast, 9);
        site.write(&mut slow, "r1", &late);
        assert!(!site.is_connected("r1"), "for a moment");
        site.connection(&mut slow, "r1", true);
        site.look(&mut slow, 9);
        assert!(site.is_connected("r1"));
    }
}

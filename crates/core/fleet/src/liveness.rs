//! The phase of a robot: when it is let in, when it counts as gone, when it is back (seed 003, R7, R16, R18).
//!
//! Goes by when the server heard of a robot, on its own steady clock, never by the robot's clock. Being cut off is no reason to be Offline: only
//! silence is. A server that was not there itself heard nothing, so silence counts from its own start at the earliest.

use muster_types::Robot;
use muster_types::robot_status::Phase;

/// How robots are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Seconds of silence after which a robot is Offline.
    pub offline_after: i64,
    /// True if robots that joined with a token are let in without being asked about.
    pub approve: bool,
    /// The most robots that are let in, if there is a limit.
    pub max_robots: Option<usize>,
}

/// What was decided of a robot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The phase it is in.
    pub phase: Phase,
    /// Why, in a sentence.
    pub message: String,
    /// When to look again even if nothing is heard, in seconds.
    pub wake_at: Option<i64>,
}

/// Decides on a robot. `heard` is when its last sign of life was seen, if there ever was one; `members` are the robots that
/// were let in before; `since` is when this server began to listen.
pub fn judge(
    robot: &Robot,
    heard: Option<i64>,
    settings: &Settings,
    members: usize,
    since: i64,
    now: i64,
) -> Verdict {
    let before = robot.status.phase();
    let verdict = |phase, message: &str, wake_at| Verdict { phase, message: message.to_owned(), wake_at };
    let Some(heard) = heard else {
        return verdict(Phase::Pending, "It has not joined yet", None);
    };
    match robot.spec.approved {
        Some(false) => return verdict(Phase::Pending, "It was refused: spec.approved is false", None),
        None if before == Phase::Pending && !settings.approve => {
            return verdict(Phase::Pending, "It waits to be approved: muster robot approve", None);
        }
        None if before == Phase::Pending && settings.max_robots.is_some_and(|most| members >= most) => {
            let message = "There are as many robots as --max-robots allows; remove one or approve this one";
            return verdict(Phase::Pending, message, None);
        }
        Some(true) | None => {}
    }
    // Only a robot that worked gets the benefit of a server that was away.
    let counts = if before == Phase::Online { heard.max(since) } else { heard };
    let silent_at = counts.saturating_add(settings.offline_after);
    if silent_at <= now {
        let phase = if before == Phase::Pending { Phase::Pending } else { Phase::Offline };
        return verdict(phase, "Nothing was heard of it for too long", None);
    }
    verdict(Phase::Online, "It works", Some(silent_at))
}

/// When a robot was heard of whose sign of life another process wrote down as `written`, on a clock of its own. A time to come
/// was written by a clock that was ahead: a robot that worked was heard of just now, any other long ago.
pub fn heard_before(phase: Phase, written: i64, now: i64) -> i64 {
    match phase {
        _ if written <= now => written,
        Phase::Online => now,
        Phase::Pending | Phase::Offline => 0,
    }
}

#[cfg(test)]
mod tests {
    use muster_types::Timestamp;
    use muster_types::robot::RobotSpec;

    use super::*;

    const SETTINGS: Settings = Settings { offline_after: 300, approve: true, max_robots: Some(2) };

    fn robot(phase: Phase, heard: Option<i64>) -> Robot {
        let mut robot = Robot::new("default", "r1", RobotSpec::default());
        robot.status.phase = Some(phase);
        robot.status.last_heartbeat_time = heard.map(Timestamp::from_second);
        robot
    }

    fn phase(robot: &Robot, members: usize, since: i64, now: i64) -> Phase {
        look(robot, &SETTINGS, members, since, now).phase
    }

    fn look(robot: &Robot, settings: &Settings, members: usize, since: i64, now: i64) -> Verdict {
        let heard = robot.status.last_heartbeat_time.map(Timestamp::as_second);
        judge(robot, heard, settings, members, since, now)
    }

    #[test]
    fn a_sign_of_life_from_a_clock_that_was_ahead_makes_no_robot_immortal_and_revives_none() {
        assert_eq!(heard_before(Phase::Online, 900, 1000), 900);
        assert_eq!(heard_before(Phase::Online, 9000, 1000), 1000);
        assert_eq!(heard_before(Phase::Offline, 9000, 1000), 0);
    }

    #[test]
    fn a_robot_that_joined_is_let_in() {
        assert_eq!(phase(&robot(Phase::Pending, Some(1000)), 0, 0, 1001), Phase::Online);
    }

    #[test]
    fn a_robot_that_was_only_described_waits_until_it_joins() {
        assert_eq!(phase(&robot(Phase::Pending, None), 0, 0, 5000), Phase::Pending);
    }

    #[test]
    fn a_robot_is_offline_after_five_minutes_of_silence_and_not_before() {
        let online = robot(Phase::Online, Some(1000));
        assert_eq!(phase(&online, 1, 0, 1299), Phase::Online);
        assert_eq!(look(&online, &SETTINGS, 1, 0, 1299).wake_at, Some(1300));
        assert_eq!(phase(&online, 1, 0, 1300), Phase::Offline);
    }

    #[test]
    fn a_robot_that_is_heard_of_again_is_back() {
        assert_eq!(phase(&robot(Phase::Offline, Some(2000)), 1, 0, 2001), Phase::Online);
    }

    #[test]
    fn silence_counts_from_the_start_of_the_server_for_robots_that_worked() {
        assert_eq!(phase(&robot(Phase::Online, Some(0)), 1, 5000, 5299), Phase::Online);
        assert_eq!(phase(&robot(Phase::Online, Some(0)), 1, 5000, 5300), Phase::Offline);
        assert_eq!(phase(&robot(Phase::Offline, Some(0)), 1, 5000, 5001), Phase::Offline);
    }

    #[test]
    fn beyond_the_limit_only_those_that_were_approved_are_let_in() {
        let mut third = robot(Phase::Pending, Some(1000));
        assert_eq!(phase(&third, 2, 0, 1001), Phase::Pending);
        third.spec.approved = Some(true);
        assert_eq!(phase(&third, 2, 0, 1001), Phase::Online);
        assert_eq!(
            phase(&robot(Phase::Online, Some(1000)), 3, 0, 1001),
            Phase::Online,
            "nobody is thrown out"
        );
    }

    #[test]
    fn with_manual_approval_a_robot_waits_for_it() {
        let manual = Settings { approve: false, ..SETTINGS };
        let mut new = robot(Phase::Pending, Some(1000));
        assert_eq!(look(&new, &manual, 0, 0, 1001).phase, Phase::Pending);
        new.spec.approved = Some(true);
        assert_eq!(look(&new, &manual, 0, 0, 1001).phase, Phase::Online);
    }

    #[test]
    fn a_robot_that_is_refused_leaves_whatever_its_phase() {
        let mut refused = robot(Phase::Online, Some(1000));
        refused.spec.approved = Some(false);
        assert_eq!(phase(&refused, 1, 0, 1001), Phase::Pending);
    }
}

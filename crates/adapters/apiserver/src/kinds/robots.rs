//! Rules on what tasks and groups ask of robots.

use muster_fleet::describe_bad_constraint;
use muster_types::placement::Constraint;
use muster_types::recovery::{Reschedule, Restart};

use crate::refusal::Causes;

/// The most attempts a policy counts: no more are remembered.
const MOST_ATTEMPTS: u32 = 9;
/// Constraints of a task, at most.
const MOST_CONSTRAINTS: usize = 64;

/// Checks constraints and policies that stand at a place.
pub fn validate(
    at: &str,
    constraints: &[Constraint],
    restart: Option<Restart>,
    reschedule: Option<Reschedule>,
    causes: &mut Causes,
) {
    if constraints.len() > MOST_CONSTRAINTS {
        let why = format!("there may be {MOST_CONSTRAINTS} at most");
        causes.invalid(format!("{at}.constraints"), constraints.len(), why);
    }
    for (index, constraint) in constraints.iter().take(MOST_CONSTRAINTS).enumerate() {
        if let Some(why) = describe_bad_constraint(constraint) {
            causes.invalid(format!("{at}.constraints[{index}]"), constraint.to_string(), why);
        }
    }
    let counts =
        [("restart", restart.map(|it| it.attempts)), ("reschedule", reschedule.map(|it| it.attempts))];
    for (name, attempts) in counts {
        if let Some(attempts) = attempts.filter(|attempts| *attempts > MOST_ATTEMPTS) {
            let why = format!("must be no more than {MOST_ATTEMPTS}");
            causes.invalid(format!("{at}.{name}.attempts"), attempts, why);
        }
    }
}

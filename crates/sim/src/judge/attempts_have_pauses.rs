//! A program that fails at once is not run hundreds of times a second: of attempts that failed by themselves no three begin within a
//! second.

use std::collections::BTreeMap;

use super::history::What;
use super::{Moment, Statement};

/// Attempts that follow each other begin this far apart, in whole seconds: of three the first and the last surely do.
const SECOND: i64 = 1_000;

#[derive(Default)]
pub struct AttemptsHavePauses {
    /// When attempts began and whether they failed, by task and number.
    begun: BTreeMap<(String, u32), (i64, bool)>,
}

impl Statement for AttemptsHavePauses {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        match &moment.entry.what {
            What::Started(program) => {
                let at = moment.present.at;
                self.begun.insert((program.task.clone(), program.attempt), (at, false));
                let before = |back: u32| {
                    let number = program.attempt.checked_sub(back)?;
                    self.begun.get(&(program.task.clone(), number)).filter(|(_, failed)| *failed)
                };
                let (Some(_), Some((first, _))) = (before(1), before(2)) else { return };
                moment.present.compared();
                if at - first < SECOND {
                    broken.push(format!(
                        "attempt {} of {} began {} ms after attempt {}, and both before it had failed",
                        program.attempt,
                        program.task,
                        at - first,
                        program.attempt - 2
                    ));
                }
            }
            What::Ended(program, Some(code)) if *code != 0 => {
                if let Some((_, failed)) = self.begun.get_mut(&(program.task.clone(), program.attempt)) {
                    *failed = true;
                }
            }
            // The start time in news that was under way is wrong after a jump, and another server has another steady clock.
            What::ClockJumped(_) | What::Server(..) => self.begun.clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::story::Story;

    fn three(pause: i64) -> Vec<String> {
        let mut story = Story::new();
        for attempt in 1..=3 {
            story.started("a", attempt).wait(pause / 2).ended("a", attempt, 1).wait(pause / 2);
        }
        story.broken("attempts_have_pauses")
    }

    #[test]
    fn attempts_with_a_second_between_them_are_as_promised() {
        assert!(three(1_000).is_empty());
    }

    #[test]
    fn attempts_at_once_are_found() {
        assert_eq!(three(2).len(), 1);
    }
}

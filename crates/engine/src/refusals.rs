//! What the store refuses to take, such as on a full disk: tried again after ever longer pauses, and said once.
//!
//! Every loop that writes has one. A conflict is no refusal: somebody else was first, and looking again helps at once.

use muster_ports::clock::Millis;
use muster_ports::store::CommitError;

/// The first pause, and the longest, in milliseconds.
const SHORTEST: i64 = 100;
const LONGEST: i64 = 5_000;
/// What goes on is said again after this time, in milliseconds.
const SAID_AGAIN: i64 = 60_000;

/// What is to be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Say {
    Nothing,
    /// Changes are refused, since so many milliseconds.
    Refused(i64),
    /// Changes are taken again, after so many milliseconds.
    Taken(i64),
}

/// Refusals of the store, as one loop sees them.
#[derive(Debug)]
pub struct Refusals {
    who: &'static str,
    /// Commits of this cycle that were taken and refused, and the error of the first that was refused.
    committed: usize,
    refused: usize,
    error: Option<CommitError>,
    /// While changes are refused.
    trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy)]
struct Trouble {
    since: Millis,
    said: Millis,
    pause: i64,
    until: Millis,
    /// Nothing at all was taken the last time.
    whole: bool,
}

impl Refusals {
    /// None yet, of the loop that people know by this name.
    pub fn of(who: &'static str) -> Self {
        Self { who, committed: 0, refused: 0, error: None, trouble: None }
    }

    /// Until when no change is to be tried, if the store took none the last time.
    pub fn holds_until(&self, now: Millis) -> Option<Millis> {
        self.trouble.filter(|trouble| trouble.whole && trouble.is_early(now)).map(|trouble| trouble.until)
    }

    /// When what was not committed is to be tried again.
    pub fn try_again_at(&self, now: Millis) -> Millis {
        self.trouble.filter(|trouble| trouble.is_early(now)).map_or(now, |trouble| trouble.until)
    }

    /// Takes in what came of a commit.
    pub fn observe<T>(&mut self, outcome: &Result<T, CommitError>) {
        match outcome {
            Ok(_) => self.observe_taken(),
            Err(error) => self.observe_error(error),
        }
    }

    /// Takes in that a commit was made.
    pub fn observe_taken(&mut self) {
        self.committed += 1;
    }

    /// Takes in why a commit was not made.
    pub fn observe_error(&mut self, error: &CommitError) {
        if !matches!(error, CommitError::Conflict { .. }) {
            self.refused += 1;
            self.error.get_or_insert_with(|| error.clone());
        }
    }

    /// Says what is new about the commits of a cycle.
    pub fn tell(&mut self, now: Millis) {
        let (committed, refused) = (std::mem::take(&mut self.committed), std::mem::take(&mut self.refused));
        let (who, error) = (self.who, self.error.take());
        match self.fold(committed, refused, now) {
            Say::Nothing => {}
            Say::Taken(after) => {
                tracing::info!("{who} can write to the store again, after {}s", after / 1000);
            }
            Say::Refused(since) => {
                let error = error.map_or_else(String::new, |error| error.to_string());
                let for_seconds = since / 1000;
                tracing::warn!(
                    error,
                    changes = refused,
                    for_seconds,
                    "the store refuses the changes of {who}; they are tried again"
                );
            }
        }
    }

    fn fold(&mut self, committed: usize, refused: usize, now: Millis) -> Say {
        if refused == 0 {
            // A cycle without a change says nothing about the store.
            let trouble = if committed > 0 { self.trouble.take() } else { None };
            return trouble.map_or(Say::Nothing, |trouble| Say::Taken((now.0 - trouble.since.0).max(0)));
        }
        let before = self.trouble;
        let pause = before.map_or(SHORTEST, |before| before.pause.saturating_mul(2).min(LONGEST));
        let since = before.map_or(now, |before| before.since);
        let is_news = before.is_none_or(|before| (now.0 - before.said.0).abs() >= SAID_AGAIN);
        let said = before.filter(|_| !is_news).map_or(now, |before| before.said);
        let (until, whole) = (Millis(now.0.saturating_add(pause)), committed == 0);
        self.trouble = Some(Trouble { since, said, pause, until, whole });
        if is_news { Say::Refused((now.0 - since.0).max(0)) } else { Say::Nothing }
    }
}

impl Trouble {
    /// True until the pause is over. A clock that was set back does not make it longer.
    fn is_early(self, now: Millis) -> bool {
        now < self.until && self.until.0 - now.0 <= self.pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_end_with_the_first_change_that_is_taken() {
        let mut refusals = Refusals::of("the engine");
        let mut now = Millis(0);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            refusals.fold(0, 3, now);
            let until = refusals.holds_until(now).unwrap();
            pauses.push(until.0 - now.0);
            now = until;
            assert_eq!(refusals.holds_until(now), None);
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(refusals.fold(2, 0, now), Say::Taken(now.0));
        refusals.fold(0, 1, now);
        assert_eq!(refusals.holds_until(now), Some(Millis(now.0 + 100)));
    }

    #[test]
    fn a_refusal_is_said_once_and_then_once_a_minute_and_so_is_its_end() {
        let mut refusals = Refusals::of("the engine");
        let said: Vec<Say> = (0..130).map(|second| refusals.fold(0, 1, Millis(second * 1000))).collect();
        let said: Vec<Say> = said.into_iter().filter(|say| *say != Say::Nothing).collect();
        assert_eq!(said, [Say::Refused(0), Say::Refused(60_000), Say::Refused(120_000)]);
        assert_eq!(refusals.fold(0, 0, Millis(130_000)), Say::Nothing, "nothing was tried");
        assert_eq!(refusals.fold(1, 0, Millis(131_000)), Say::Taken(131_000));
        assert_eq!(refusals.fold(1, 0, Millis(132_000)), Say::Nothing);
    }

    #[test]
    fn a_store_that_takes_other_changes_is_not_waited_for() {
        let mut refusals = Refusals::of("the engine");
        refusals.fold(5, 1, Millis(0));
        assert_eq!(refusals.holds_until(Millis(0)), None);
        assert_eq!(refusals.try_again_at(Millis(0)), Millis(100));
    }

    #[test]
    fn a_clock_that_is_set_back_makes_no_pause_longer() {
        let mut refusals = Refusals::of("the engine");
        refusals.fold(0, 1, Millis(7_200_000));
        assert_eq!(refusals.holds_until(Millis(0)), None);
    }
}

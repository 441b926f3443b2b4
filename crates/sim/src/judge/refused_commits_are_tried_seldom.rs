//! What the store refuses, such as on a full disk, is tried again after pauses: not hundreds of times a second.

use std::collections::VecDeque;

use super::history::What;
use super::{Moment, Statement};

/// In this time, in milliseconds,
const WINDOW: i64 = 2_000;
/// the store refuses no more often than this: every loop has pauses of its own, which begin short, and users ask too.
const MOST: usize = 100;

#[derive(Default)]
pub struct RefusedCommitsAreTriedSeldom {
    /// When the store refused.
    times: VecDeque<i64>,
}

impl Statement for RefusedCommitsAreTriedSeldom {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::StoreRefused = moment.entry.what else { return };
        let at = moment.present.at;
        moment.present.compared();
        // Several commits of one moment are one try.
        if self.times.back() == Some(&at) {
            return;
        }
        self.times.push_back(at);
        while self.times.front().is_some_and(|first| at - first > WINDOW) {
            self.times.pop_front();
        }
        if self.times.len() > MOST {
            broken.push(format!("the store refused at {} moments within {WINDOW} ms", self.times.len()));
            self.times.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::story::Story;

    fn refused(times: usize, pause: i64) -> Vec<String> {
        let mut story = Story::new();
        for _ in 0..times {
            story.wait(pause).refused();
        }
        story.broken("refused_commits_are_tried_seldom")
    }

    #[test]
    fn tries_with_pauses_are_as_promised() {
        assert!(refused(300, 100).is_empty());
    }

    #[test]
    fn hundreds_of_tries_at_once_are_found() {
        assert_eq!(refused(150, 1).len(), 1);
    }
}

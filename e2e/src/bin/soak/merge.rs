//! Puts commits where they belong. A commit is seen later than it was made, and those of different kinds in any order.
//!
//! Commits go in the order of their revisions, each at the latest where it was seen. A program is started only after the commit that
//! made its attempt, so that one and all before it go before the start. Nothing is ever moved to later.

use std::collections::BTreeMap;

use muster_sim::judge::history::{Commit, Entry, What};
use serde::Deserialize;

const TASKS: &str = "tasks.muster.dev";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Task {
    metadata: Metadata,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    attempt: u32,
    prefetched: bool,
}

/// The history in the order in which things happened.
pub fn merge(seen: Vec<Entry>) -> Vec<Entry> {
    let mut commits: Vec<(u64, usize)> =
        (0..).zip(&seen).filter_map(|(at, it)| Some((commit(it)?.revision, at))).collect();
    commits.sort_unstable();
    let made = attempts_made(&seen, &commits);
    // Where each commit goes at the latest: before this entry.
    let mut places: Vec<usize> = commits.iter().map(|(_, at)| *at).collect();
    for (at, entry) in seen.iter().enumerate() {
        if let What::Started(program) = &entry.what
            && let Some(place) = made.get(&(program.task.clone(), program.attempt))
        {
            places[*place] = places[*place].min(at);
        }
    }
    for number in (1..places.len()).rev() {
        places[number - 1] = places[number - 1].min(places[number]);
    }
    lay_out(seen, &commits, &places)
}

fn commit(entry: &Entry) -> Option<&Commit> {
    match &entry.what {
        What::Change(commit) => Some(commit),
        _ => None,
    }
}

/// The first commit that has each attempt, by uid and number: its place among the commits.
fn attempts_made(seen: &[Entry], commits: &[(u64, usize)]) -> BTreeMap<(String, u32), usize> {
    let mut made = BTreeMap::new();
    let mut last: BTreeMap<String, u32> = BTreeMap::new();
    for (place, (_, at)) in commits.iter().enumerate() {
        let Some(commit) = commit(&seen[*at]).filter(|it| it.resource == TASKS) else { continue };
        let task: Task = serde_json::from_str(commit.object.get()).unwrap_or_default();
        // One that was handed over ahead of a free slot may begin as the next.
        let attempt = task.status.attempt + u32::from(task.status.prefetched);
        let known = last.entry(task.metadata.uid.clone()).or_default();
        for number in *known + 1..=attempt {
            made.insert((task.metadata.uid.clone(), number), place);
        }
        *known = attempt.max(*known);
    }
    made
}

fn lay_out(seen: Vec<Entry>, commits: &[(u64, usize)], places: &[usize]) -> Vec<Entry> {
    let times: Vec<(i64, i64)> = seen.iter().map(|entry| (entry.at, entry.wall)).collect();
    let mut seen: Vec<Option<Entry>> = seen.into_iter().map(Some).collect();
    let mut merged = Vec::with_capacity(seen.len());
    let mut next = 0;
    for at in 0..seen.len() {
        while next < commits.len() && places[next] <= at {
            let (from, next_commit) = (commits[next].1, &mut seen[commits[next].1]);
            if let Some(mut entry) = next_commit.take() {
                if from != at {
                    (entry.at, entry.wall) = times[at];
                }
                merged.push(entry);
            }
            next += 1;
        }
        // A commit that goes elsewhere was taken, or is taken by its own place.
        if seen[at].as_ref().is_some_and(|entry| commit(entry).is_none()) {
            merged.extend(seen[at].take());
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use muster_sim::judge::history::Program;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn commit(at: i64, revision: u64, uid: &str, attempt: u32) -> Entry {
        written(at, revision, uid, &json!({"attempt": attempt}))
    }

    fn written(at: i64, revision: u64, uid: &str, status: &serde_json::Value) -> Entry {
        let object = to_raw_value(&json!({"metadata": {"uid": uid}, "status": status})).unwrap();
        let (resource, path) = (TASKS.to_owned(), format!("d/{uid}"));
        let commit = Commit { revision, resource, path, deleted: false, object };
        Entry { at, wall: at + 1000, late: 0, what: What::Change(commit) }
    }

    fn program(uid: &str, attempt: u32) -> Program {
        Program { task: uid.to_owned(), attempt, place: "server/a".to_owned() }
    }

    fn started(at: i64, uid: &str, attempt: u32) -> Entry {
        Entry { at, wall: at + 1000, late: 0, what: What::Started(program(uid, attempt)) }
    }

    fn ended(at: i64, uid: &str, attempt: u32) -> Entry {
        Entry { at, wall: at + 1000, late: 0, what: What::Ended(program(uid, attempt), Some(0)) }
    }

    /// Each entry in a word, with its time.
    fn words(history: Vec<Entry>) -> String {
        let word = |entry: Entry| {
            assert_eq!(entry.wall, entry.at + 1000, "both clocks move together");
            match entry.what {
                What::Change(commit) => format!("r{}@{}", commit.revision, entry.at),
                What::Started(program) => format!("+{}{}@{}", program.task, program.attempt, entry.at),
                What::Ended(program, _) => format!("-{}{}@{}", program.task, program.attempt, entry.at),
                other => format!("{other:?}"),
            }
        };
        history.into_iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_was_seen_in_order_stays_as_it_is() {
        let seen = vec![
            commit(1, 1, "a", 0),
            commit(2, 2, "a", 1),
            started(3, "a", 1),
            ended(4, "a", 1),
            commit(5, 3, "a", 1),
        ];
        assert_eq!(words(merge(seen)), "r1@1 r2@2 +a1@3 -a1@4 r3@5");
    }

    #[test]
    fn commits_of_different_watches_go_in_the_order_of_their_revisions() {
        let seen =
            vec![commit(1, 3, "a", 0), commit(2, 1, "b", 0), commit(3, 2, "c", 0), commit(4, 4, "d", 0)];
        assert_eq!(words(merge(seen)), "r1@1 r2@1 r3@1 r4@4");
    }

    #[test]
    fn a_start_comes_after_the_commit_of_its_attempt_and_all_before_it() {
        let seen = vec![
            started(1, "b", 1),
            commit(2, 1, "a", 1),
            commit(3, 2, "b", 1),
            commit(4, 3, "b", 1),
            ended(5, "b", 1),
        ];
        assert_eq!(words(merge(seen)), "r1@1 r2@1 +b1@1 r3@4 -b1@5");
    }

    #[test]
    fn an_end_that_made_room_stays_before_what_followed_from_it() {
        let seen = vec![
            commit(1, 1, "a", 1),
            started(2, "a", 1),
            ended(3, "a", 1),
            started(4, "b", 1),
            commit(5, 2, "a", 1),
            commit(6, 3, "b", 1),
        ];
        assert_eq!(words(merge(seen)), "r1@1 +a1@2 -a1@3 r2@4 r3@4 +b1@4");
    }

    #[test]
    fn an_attempt_that_waited_at_its_executor_was_made_when_it_was_handed_over() {
        let ahead = json!({"attempt": 0, "prefetched": true});
        let seen = vec![started(1, "a", 1), written(2, 1, "a", &ahead), commit(3, 2, "a", 1)];
        assert_eq!(words(merge(seen)), "r1@1 +a1@1 r2@3");
    }

    #[test]
    fn a_second_attempt_moves_the_commit_of_the_second() {
        let seen = vec![
            commit(1, 1, "a", 1),
            started(2, "a", 1),
            ended(3, "a", 1),
            started(4, "a", 2),
            commit(5, 2, "a", 2),
            commit(6, 3, "a", 2),
        ];
        assert_eq!(words(merge(seen)), "r1@1 +a1@2 -a1@3 r2@4 +a2@4 r3@6");
    }
}

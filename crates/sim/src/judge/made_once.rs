//! What is made for an owner is made once: no member of a group, no group of a job, no run of a schedule and no task of an adapter
//! comes again under its name after it went. A backfill may make the run of a time again.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::history::What;
use super::present::TASKS;
use super::schedule_times::BACKFILL;
use super::task::Metadata;
use super::{Moment, Statement};

/// Kinds that are made for others.
const MADE: [&str; 3] = [TASKS, "taskgroups.muster.dev", "jobs.muster.dev"];

#[derive(Default)]
pub struct MadeOnce {
    /// What is there, by resource and path.
    there: BTreeSet<(String, String)>,
    /// What was ever made, by uid of the owner, resource and path.
    made: BTreeSet<(String, String, String)>,
}

#[derive(Deserialize)]
struct Head {
    metadata: Metadata,
}

impl Statement for MadeOnce {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::Change(commit) = &moment.entry.what else { return };
        if !MADE.contains(&commit.resource.as_str()) {
            return;
        }
        let key = (commit.resource.clone(), commit.path.clone());
        if commit.deleted {
            self.there.remove(&key);
            return;
        }
        if !self.there.insert(key) {
            return;
        }
        let Ok(Head { metadata }) = serde_json::from_str(commit.object.get()) else { return };
        if metadata.annotations.contains_key(BACKFILL) {
            return;
        }
        for owner in &metadata.owner_references {
            moment.present.compared();
            if !self.made.insert((owner.uid.clone(), commit.resource.clone(), commit.path.clone())) {
                let (path, kind, name) = (&commit.path, &owner.kind, &owner.name);
                broken.push(format!("{} {path} of {kind} {name} was made again", commit.resource));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    fn member(uid: &str) -> Value {
        json!({"metadata": {"name": "m", "namespace": "d", "uid": uid,
            "ownerReferences": [{"kind": "TaskGroup", "name": "g", "uid": "g"}]}})
    }

    #[test]
    fn a_member_that_changes_and_goes_is_as_promised() {
        let mut story = Story::new();
        story.write(&member("m")).write(&member("m")).delete("m");
        assert!(story.broken("made_once").is_empty());
    }

    #[test]
    fn a_member_that_comes_again_is_found() {
        let mut story = Story::new();
        story.write(&member("m")).delete("m").write(&member("n"));
        assert_eq!(story.broken("made_once").len(), 1);
    }

    #[test]
    fn a_task_without_an_owner_may_come_again() {
        let mut story = Story::new();
        story.task("a", "Failed", 1).delete("a").task("a", "Ready", 0);
        assert!(story.broken("made_once").is_empty());
    }
}

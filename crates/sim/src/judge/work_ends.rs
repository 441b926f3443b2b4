//! Groups and jobs end when the outside is quiet, and agree from below upwards: a job ends after its groups, it has Failed only if
//! one of them has, and the counts of a group that has ended are those of all its members.

use std::collections::BTreeMap;

use serde_json::Value;

use super::present::Present;
use super::{Moment, Statement};

const GROUPS: &str = "taskgroups.muster.dev";
const JOBS: &str = "jobs.muster.dev";

pub struct WorkEnds;

impl Statement for WorkEnds {
    fn read(&mut self, _moment: &Moment<'_>, _broken: &mut Vec<String>) {}

    fn close(&mut self, present: &Present, broken: &mut Vec<String>) {
        if present.quiet_since.is_none() {
            return;
        }
        for (resource, object) in
            [GROUPS, JOBS].into_iter().flat_map(|it| present.all(it).map(move |o| (it, o)))
        {
            present.compared();
            if !is_over(state(object)) {
                let name = &object["metadata"]["name"];
                broken.push(format!("{resource} {name} never ended: it is {}", state(object)));
            }
        }
        let mut members: BTreeMap<&str, u64> = BTreeMap::new();
        for owner in present.tasks.values().flat_map(|task| &task.metadata.owner_references) {
            *members.entry(&owner.uid).or_default() += 1;
        }
        for group in present.all(GROUPS).filter(|group| is_over(state(group))) {
            let uid = group["metadata"]["uid"].as_str().unwrap_or_default();
            check_counts(group, members.get(uid).copied().unwrap_or(0), broken);
        }
        for job in present.all(JOBS).filter(|job| is_over(state(job))) {
            check_job(job, present, broken);
        }
    }
}

fn check_counts(group: &Value, members: u64, broken: &mut Vec<String>) {
    let (name, counts) = (&group["metadata"]["name"], &group["status"]["counts"]);
    let sum = |words: &[&str]| words.iter().map(|word| counts[word].as_u64().unwrap_or(0)).sum::<u64>();
    let (open, ended) =
        (sum(&["created", "ready", "pending", "running"]), sum(&["succeeded", "failed", "canceled"]));
    if (open, ended) != (0, members) {
        broken.push(format!("group {name} has ended and counts {counts}, it had {members} members"));
    }
}

fn check_job(job: &Value, present: &Present, broken: &mut Vec<String>) {
    let (name, uid) = (&job["metadata"]["name"], &job["metadata"]["uid"]);
    for group in present.all(GROUPS).filter(|group| !is_over(state(group))) {
        let mut owners = group["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        if owners.any(|owner| owner["uid"] == *uid) {
            broken.push(format!("job {name} has ended, and its group {} has not", group["metadata"]["name"]));
        }
    }
    let groups = job["status"]["groups"].as_array().into_iter().flatten();
    let has_failed = groups.into_iter().any(|group| group["state"] == "Failed");
    let is_canceled = job["spec"]["cancel"] == true;
    if has_failed != (state(job) == "Failed") && !is_canceled {
        broken.push(format!("job {name} is {} with groups {}", state(job), job["status"]["groups"]));
    }
}

fn state(object: &Value) -> &str {
    object["status"]["state"].as_str().unwrap_or("Created")
}

fn is_over(state: &str) -> bool {
    matches!(state, "Succeeded" | "Failed" | "Canceled" | "Skipped")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::judge::story::Story;

    fn group(state: &str, counts: &Value) -> Value {
        json!({
            "metadata": {"name": "g", "uid": "g", "ownerReferences": [{"kind": "Job", "name": "j", "uid": "j"}]},
            "status": {"state": state, "counts": counts},
        })
    }

    fn job(state: &str, group: &str) -> Value {
        json!({
            "metadata": {"name": "j", "uid": "j"},
            "status": {"state": state, "groups": [{"name": "g", "state": group}]},
        })
    }

    fn broken(group: Value, job: Value) -> usize {
        let mut story = Story::new();
        story.object("jobs.muster.dev", "d/j", job).object("taskgroups.muster.dev", "d/g", group);
        story.write(&json!({
            "metadata": {"name": "m", "namespace": "d", "uid": "m",
                "ownerReferences": [{"kind": "TaskGroup", "name": "g", "uid": "g"}]},
            "status": {"state": "Failed"},
        }));
        story.quiet().broken("work_ends").len()
    }

    #[test]
    fn a_job_that_agrees_with_its_group_and_members_is_as_promised() {
        assert_eq!(broken(group("Failed", &json!({"failed": 1})), job("Failed", "Failed")), 0);
    }

    #[test]
    fn a_job_that_succeeded_though_a_group_failed_is_found() {
        assert_eq!(broken(group("Failed", &json!({"failed": 1})), job("Succeeded", "Failed")), 1);
    }

    #[test]
    fn a_group_that_never_ends_is_found_and_so_is_its_job_that_did() {
        assert_eq!(broken(group("Running", &json!({"failed": 1})), job("Failed", "Failed")), 2);
    }

    #[test]
    fn a_group_that_lost_a_member_in_its_counts_is_found() {
        assert_eq!(broken(group("Failed", &json!({})), job("Failed", "Failed")), 1);
        assert_eq!(broken(group("Failed", &json!({"ready": 1})), job("Failed", "Failed")), 1);
    }
}

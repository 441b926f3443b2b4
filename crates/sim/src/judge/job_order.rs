//! A group of a job is made only when the groups it depends on ended as it says: `when` succeeded, failed or completed. No program of
//! them runs then, whatever became of its task.

use serde_json::Value;

use super::history::What;
use super::task::Task;
use super::{Moment, Statement};

pub struct JobOrder;

impl Statement for JobOrder {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        let What::Change(commit) = &moment.entry.what else { return };
        if commit.resource != "taskgroups.muster.dev" || commit.deleted {
            return;
        }
        let Some(group) = moment.present.object(&commit.resource, &commit.path) else { return };
        // Only when it is made: it has no status yet.
        if group["status"]["state"].is_string() {
            return;
        }
        let owner = group["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        let Some(owner) = owner.into_iter().find(|owner| owner["kind"] == "Job") else { return };
        let Some(job_name) = owner["name"].as_str() else { return };
        let namespace = commit.path.split('/').next().unwrap_or_default();
        let job = moment.present.object("jobs.muster.dev", &format!("{namespace}/{job_name}"));
        let own = job.and_then(|job| {
            let groups = job["spec"]["taskGroups"].as_array()?;
            groups.iter().find(|own| {
                own["name"].as_str().is_some_and(|it| commit.path == format!("{namespace}/{job_name}-{it}"))
            })
        });
        let Some(own) = own else { return };
        moment.present.compared();
        let state = |need: &Value| {
            let path = format!("{namespace}/{job_name}-{}", need.as_str().unwrap_or_default());
            let found = moment.present.object("taskgroups.muster.dev", &path);
            // One that was never made was skipped, or is gone.
            found.map_or("Skipped", |it| it["status"]["state"].as_str().unwrap_or("Created")).to_owned()
        };
        let states: Vec<String> = own["dependsOn"].as_array().into_iter().flatten().map(state).collect();
        let over = |it: &String| matches!(it.as_str(), "Succeeded" | "Failed" | "Canceled" | "Skipped");
        let allowed = match own["when"].as_str().unwrap_or("succeeded") {
            "failed" => states.iter().any(|it| it == "Failed") && states.iter().all(over),
            "completed" => states.iter().all(over),
            _ => states.iter().all(|it| it == "Succeeded"),
        };
        if !allowed {
            broken.push(format!("group {} ({}) was made when {states:?}", commit.path, own["when"]));
        }
        let needs = own["dependsOn"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let needs: Vec<String> = needs.map(|need| format!("{job_name}-{need}")).collect();
        let is_of_need = |task: &Task| {
            let owners = &task.metadata.owner_references;
            task.metadata.namespace == namespace
                && owners.iter().any(|owner| owner.kind == "TaskGroup" && needs.contains(&owner.name))
        };
        if let Some((.., task)) = moment.present.reachable_programs().find(|(.., task)| is_of_need(task)) {
            broken.push(format!(
                "group {} was made while a program of {} ran",
                commit.path, task.metadata.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    fn second_made_when_first_is(state: &str) -> Vec<String> {
        let mut story = Story::new();
        let groups = json!([{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]);
        story.object("jobs.muster.dev", "d/j", json!({"spec": {"taskGroups": groups}}));
        let owned = json!({"ownerReferences": [{"kind": "Job", "name": "j"}]});
        story.object("taskgroups.muster.dev", "d/j-a", json!({"metadata": owned}));
        story.object(
            "taskgroups.muster.dev",
            "d/j-a",
            json!({"metadata": owned, "status": {"state": state}}),
        );
        story.object("taskgroups.muster.dev", "d/j-b", json!({"metadata": owned}));
        story.broken("job_order")
    }

    #[test]
    fn a_group_after_what_it_depends_on_is_as_promised() {
        assert!(second_made_when_first_is("Succeeded").is_empty());
    }

    #[test]
    fn a_group_whose_dependency_failed_is_found() {
        assert_eq!(second_made_when_first_is("Failed").len(), 1);
    }

    #[test]
    fn a_group_that_is_made_while_a_program_of_a_deleted_member_of_its_dependency_runs_is_found() {
        let mut story = Story::new();
        let groups = json!([{"name": "a"}, {"name": "b", "dependsOn": ["a"], "when": "completed"}]);
        story.object("jobs.muster.dev", "d/j", json!({"spec": {"taskGroups": groups}}));
        let owned = json!({"ownerReferences": [{"kind": "Job", "name": "j"}]});
        story.object(
            "taskgroups.muster.dev",
            "d/j-a",
            json!({"metadata": owned, "status": {"state": "Canceled"}}),
        );
        story.write(&json!({"metadata": {"name": "m", "uid": "m", "namespace": "d",
            "ownerReferences": [{"kind": "TaskGroup", "name": "j-a", "uid": "g"}]}}));
        story.started("m", 1).delete("m");
        story.object("taskgroups.muster.dev", "d/j-b", json!({"metadata": owned}));
        assert_eq!(story.broken("job_order").len(), 1);
    }

    #[test]
    fn a_group_whose_dependency_runs_is_found() {
        assert_eq!(second_made_when_first_is("Running").len(), 1);
    }
}

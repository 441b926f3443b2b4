//! Groups, jobs, schedules and robots: which transitions a change of one holds.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

use crate::step::{Step, Unique};

/// What of such an object matters here.
#[derive(Debug, Deserialize)]
pub struct SeenWork<'a> {
    #[serde(borrow, default)]
    spec: Spec<'a>,
    #[serde(borrow, default)]
    status: Status<'a>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    suspend: bool,
    #[serde(borrow)]
    robot_id: Cow<'a, str>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    state: Option<Cow<'a, str>>,
    #[serde(borrow)]
    phase: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    made: u64,
}

/// Groups and jobs: where they are in their life.
pub fn steps_of_state(before: Option<&SeenWork<'_>>, after: &SeenWork<'_>, deleted: bool) -> Vec<Step> {
    fn state<'a>(seen: &'a SeenWork<'_>) -> &'a str {
        seen.status.state.as_deref().unwrap_or("Created")
    }
    let more = |step: Step| {
        let mut data = vec![("state", json!(state(after)))];
        if !after.status.message.is_empty() {
            data.push(("message", json!(after.status.message)));
        }
        Step { data, ..step }
    };
    let mut steps = around(before.is_none(), deleted);
    if !deleted && before.map_or("Created", state) != state(after) {
        let ended = matches!(state(after), "Succeeded" | "Failed" | "Canceled" | "Skipped");
        let unique = if ended { Unique::Once } else { Unique::Revision };
        steps.push(Step::new(state(after), unique));
    }
    steps.into_iter().map(more).collect()
}

/// Schedules: runs that were made, and being suspended.
pub fn steps_of_schedule(before: Option<&SeenWork<'_>>, after: &SeenWork<'_>, deleted: bool) -> Vec<Step> {
    let mut steps = around(before.is_none(), deleted);
    if deleted {
        return steps;
    }
    if after.status.made > before.map_or(0, |before| before.status.made) {
        let step = Step::new("run", Unique::Count(after.status.made));
        steps.push(Step { data: vec![("made", json!(after.status.made))], ..step });
    }
    if after.spec.suspend != before.is_some_and(|before| before.spec.suspend) {
        let word = if after.spec.suspend { "suspended" } else { "resumed" };
        steps.push(Step::new(word, Unique::Revision));
    }
    steps
}

/// Robots: their phase.
pub fn steps_of_robot(before: Option<&SeenWork<'_>>, after: &SeenWork<'_>, deleted: bool) -> Vec<Step> {
    let mut steps = around(before.is_none(), deleted);
    let was = before.and_then(|before| before.status.phase.as_deref());
    if let Some(phase) = after.status.phase.as_deref().filter(|phase| !deleted && was != Some(phase)) {
        let data = vec![("phase", json!(phase)), ("robotId", json!(after.spec.robot_id))];
        steps.push(Step { data, ..Step::new(phase, Unique::Revision) });
    }
    steps
}

/// Being made and being deleted.
pub fn around(is_new: bool, deleted: bool) -> Vec<Step> {
    match (is_new, deleted) {
        (_, true) => vec![Step::new("deleted", Unique::Once)],
        (true, false) => vec![Step::new("created", Unique::Once)],
        (false, false) => Vec::new(),
    }
}

//! Managed resources, whatever their kind: generations, pulses and conditions.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::step::{Step, Unique};
use crate::work::around;

/// What of a managed resource matters here.
#[derive(Debug, Deserialize)]
pub struct SeenManaged<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow, default)]
    status: Status<'a>,
}

#[derive(Debug, Deserialize)]
struct Metadata<'a> {
    #[serde(default)]
    generation: i64,
    #[serde(borrow, default, rename = "deletionTimestamp")]
    deletion_timestamp: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(default)]
struct Status<'a> {
    pulse: Option<Value>,
    #[serde(borrow)]
    conditions: Vec<Seen<'a>>,
}

#[derive(Debug, Deserialize)]
struct Seen<'a> {
    #[serde(borrow, rename = "type")]
    of: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
}

/// The transitions between two versions.
pub fn steps(before: Option<&SeenManaged<'_>>, after: &SeenManaged<'_>, deleted: bool) -> Vec<Step> {
    let generation = ("generation", json!(after.metadata.generation));
    let mut steps = around(before.is_none(), deleted);
    if deleted {
        return steps;
    }
    if before.is_some_and(|before| before.metadata.generation < after.metadata.generation) {
        let unique = Unique::Count(u64::try_from(after.metadata.generation).unwrap_or(0));
        steps.push(Step { data: vec![generation.clone()], ..Step::new("changed", unique) });
    }
    if after.metadata.deletion_timestamp.is_some()
        && before.is_none_or(|before| before.metadata.deletion_timestamp.is_none())
    {
        steps.push(Step::new("deleting", Unique::Once));
    }
    if let Some(pulse) = &after.status.pulse
        && before.is_none_or(|before| before.status.pulse.as_ref() != Some(pulse))
    {
        let data = vec![generation, ("pulse", pulse.clone())];
        steps.push(Step { data, ..Step::new("pulse", Unique::Revision) });
    }
    for condition in &after.status.conditions {
        let was = before.and_then(|before| before.status.conditions.iter().find(|it| it.of == condition.of));
        if was.is_some_and(|was| was.status == condition.status) {
            continue;
        }
        let word = format!("{}.{}", condition.of, condition.status);
        let data = vec![
            ("condition", json!(condition.of)),
            ("status", json!(condition.status)),
            ("reason", json!(condition.reason)),
        ];
        steps.push(Step { data, ..Step::new(&word, Unique::Revision) });
    }
    steps
}

//! Everything that is decided about one managed resource, at one moment.
//!
//! In order: what its adapters' work came to is reported; a deletion that is complete lets it go; the sentinel decides whether
//! it is looked at; adapters answer pulses they have not answered. What is to be made is in the plan together with the status
//! that says so, and both are committed at once: no stop of the server makes anything twice or forgets it. Calls are made
//! after that commit, and once more after a restart.
//!
//! Planning again from the same resource, tasks and time gives the same plan; planning from what a plan gave changes nothing.

mod answer;
mod deletion;
mod work;

use std::sync::Arc;

use muster_types::timestamp::MicroTimestamp;
use muster_types::{AdapterReport, ManagedResource, Millis, Task, Timestamp};
use serde_json::Value as Json;

use crate::adapter_rules::AdapterRules;
use crate::inputs::Inputs;
use crate::outcome::{About, Outcome, report_of};
use crate::report::{accept_report, pulse};
use crate::root_conditions::fold_conditions;
use crate::sentinel::{Look, decide_pulse};
use crate::type_rules::TypeRules;

/// What a decision looks at besides the resource itself.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// What time it is.
    pub now: Millis,
    /// Variables that the server offers to adapters.
    pub env: &'a Json,
    /// The task of a name, in the resource's namespace.
    pub task: &'a dyn Fn(&str) -> Option<Task>,
    /// What became of an adapter's last call.
    pub call: &'a dyn Fn(&str) -> CallState,
    /// How many resources belong to this one.
    pub children: usize,
}

/// What became of an adapter's last call, as far as this server knows.
#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    /// It was not made by this server.
    Unknown,
    /// It was made, and there is no answer yet.
    Open,
    /// It was answered, or could not be made.
    Answered {
        /// Which work it was for.
        number: u64,
        /// The answer, or why there is none.
        answer: Result<Json, String>,
    },
    /// Its answer was taken in.
    Taken,
}

/// Something to do outside, after the commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Who wants it.
    pub adapter: String,
    /// Which work of the adapter it is for.
    pub number: u64,
    /// What is to be done.
    pub what: CallWhat,
}

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq)]
pub enum CallWhat {
    /// Call a URL; the document is a rendered `HttpAction`.
    Http(Json),
    /// Apply a manifest.
    Apply(Json),
    /// Delete what was applied.
    Delete(Json),
}

/// What is decided.
#[derive(Debug)]
pub struct Plan {
    /// The resource as it is to be.
    pub resource: ManagedResource,
    /// True if it differs from what is stored.
    pub changed: bool,
    /// Tasks to make, without what only a server gives them.
    pub tasks: Vec<Task>,
    /// Tasks that are no longer wanted, by name.
    pub cancel: Vec<String>,
    /// Old tasks to delete, by name.
    pub forget: Vec<String>,
    /// What is to be done outside.
    pub calls: Vec<Call>,
    /// True if the resource may go: its adapters agree.
    pub release: bool,
    /// When to look again even if nothing happens.
    pub wake_at: Option<Millis>,
}

/// Decides everything about one resource. `adapters` are those of its type and namespace.
pub fn plan_resource(
    rules: &TypeRules,
    adapters: &[Arc<AdapterRules>],
    resource: &ManagedResource,
    world: &World<'_>,
) -> Plan {
    let mut planning = Planning::new(rules, resource, world);
    fold_conditions(rules, &mut planning.plan.resource, planning.now);
    for adapter in adapters {
        planning.take_outcome(adapter);
    }
    if !planning.let_go(resource) {
        planning.look();
        planning.answer_all(adapters);
    }
    planning.finish(resource)
}

struct Planning<'a> {
    rules: &'a TypeRules,
    world: &'a World<'a>,
    now: Timestamp,
    plan: Plan,
}

impl<'a> Planning<'a> {
    fn new(rules: &'a TypeRules, resource: &ManagedResource, world: &'a World<'a>) -> Self {
        let plan = Plan {
            resource: resource.clone(),
            changed: false,
            tasks: Vec::new(),
            cancel: Vec::new(),
            forget: Vec::new(),
            calls: Vec::new(),
            release: false,
            wake_at: None,
        };
        Self { rules, world, now: world.now.to_timestamp(), plan }
    }

    /// Writes down a pulse, if there is a reason for one.
    fn look(&mut self) {
        if let Look::Now(reason) = decide_pulse(self.rules, &self.plan.resource, self.world.now) {
            pulse(&mut self.plan.resource, reason, self.now);
        }
    }

    fn finish(mut self, before: &ManagedResource) -> Plan {
        self.plan.changed = self.plan.resource != *before;
        self.plan.wake_at = match decide_pulse(self.rules, &self.plan.resource, self.world.now) {
            _ if self.may_go(&self.plan.resource) => Some(self.world.now),
            Look::Now(_) => Some(self.world.now),
            Look::At(at) => Some(at),
            Look::Never => None,
        };
        self.plan
    }

    fn inputs(&self) -> Inputs {
        Inputs::new(&self.plan.resource, self.world.env)
    }

    /// Takes in what an adapter found, at the generation its work was for.
    fn report(&mut self, adapter: &AdapterRules, generation: i64, deleting: bool, outcome: &Outcome) {
        let inputs = self.inputs();
        let about = About {
            rules: adapter,
            inputs: &inputs,
            generation,
            deleting,
            now: self.time_for(&adapter.name),
        };
        let report = report_of(&about, outcome);
        if let Err(message) = self.take_in(&report) {
            // Its own rules made a report that cannot be taken: that is what is reported then.
            let unable = report_of(&about, &Outcome::Unable(message));
            let _refused_again = self.take_in(&unable);
        }
    }

    /// Now, but never before what the adapter reported last: a clock that was set back loses no report.
    fn time_for(&self, adapter: &str) -> MicroTimestamp {
        let now = MicroTimestamp::from_microsecond(self.world.now.0.saturating_mul(1000));
        let last = self.plan.resource.status.standing(adapter).and_then(|standing| standing.observed_time);
        last.map_or(now, |last| last.max(now))
    }

    fn take_in(&mut self, report: &AdapterReport) -> Result<(), String> {
        let now = report.observed_time.unwrap_or(MicroTimestamp::from(self.now));
        match accept_report(self.rules, &self.plan.resource, report, true, now) {
            Ok(verdict) => {
                if let Some(status) = verdict.into_status() {
                    self.plan.resource.status = status;
                }
                Ok(())
            }
            Err(problems) => {
                let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
                Err(format!("the report cannot be taken: {}", problems.join("; ")))
            }
        }
    }
}

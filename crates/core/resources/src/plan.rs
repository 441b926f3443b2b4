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

use muster_expr::cel::Budget;
use muster_types::condition::{Condition, ConditionStatus, find_condition};
use muster_types::managed_resource::EVALUATED;
use muster_types::timestamp::MicroTimestamp;
use muster_types::{AdapterReport, ManagedResource, Millis, Task, Timestamp};
use serde_json::Value as Json;

use crate::adapter_rules::AdapterRules;
use crate::inputs::Inputs;
use crate::outcome::{About, Outcome, report_of};
use crate::report::{accept_within, pulse};
use crate::root_conditions::fold_within;
use crate::sentinel::{Look, decide_pulse};
use crate::type_rules::TypeRules;

/// What the condition says while expressions of the type are stopped.
const TYPE_TOO_COSTLY: &str = "an expression of its type was stopped because of what it costs; the condition whose reason is \
    RuleFailed says which. It is tried again after some time, and when the type changes";
/// What it says while expressions of an adapter are.
const ADAPTER_TOO_COSTLY: &str = "an expression of an adapter was stopped because of what it costs; its conditions in \
    status.adapters say which. It is tried again with the next pulse";

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
    /// True if an expression was stopped because of its cost: it is better left alone for a while.
    pub too_costly: bool,
    /// Steps that expressions took.
    pub steps: u64,
}

/// Decides everything about one resource. `adapters` are those of its type and namespace.
pub fn plan_resource(
    rules: &TypeRules,
    adapters: &[Arc<AdapterRules>],
    resource: &ManagedResource,
    world: &World<'_>,
) -> Plan {
    let budget = Budget::of_object();
    let mut planning = Planning::new(rules, resource, world, &budget);
    fold_within(rules, &mut planning.plan.resource, planning.now, &budget);
    planning.type_is_too_costly = budget.is_exceeded();
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
    /// What all expressions may cost.
    budget: &'a Budget,
    type_is_too_costly: bool,
    now: Timestamp,
    plan: Plan,
}

impl<'a> Planning<'a> {
    fn new(
        rules: &'a TypeRules,
        resource: &ManagedResource,
        world: &'a World<'a>,
        budget: &'a Budget,
    ) -> Self {
        let plan = Plan {
            resource: resource.clone(),
            changed: false,
            tasks: Vec::new(),
            cancel: Vec::new(),
            forget: Vec::new(),
            calls: Vec::new(),
            release: false,
            wake_at: None,
            too_costly: false,
            steps: 0,
        };
        Self { rules, world, budget, type_is_too_costly: false, now: world.now.to_timestamp(), plan }
    }

    /// Writes down a pulse, if there is a reason for one.
    fn look(&mut self) {
        if let Look::Now(reason) = decide_pulse(self.rules, &self.plan.resource, self.world.now, self.budget)
        {
            pulse(&mut self.plan.resource, reason, self.now);
        }
    }

    fn finish(mut self, before: &ManagedResource) -> Plan {
        self.plan.wake_at = match decide_pulse(self.rules, &self.plan.resource, self.world.now, self.budget) {
            _ if self.may_go(&self.plan.resource) => Some(self.world.now),
            Look::Now(_) => Some(self.world.now),
            Look::At(at) => Some(at),
            Look::Never => None,
        };
        self.say_if_too_costly(before);
        self.plan.changed = self.plan.resource != *before;
        self.plan
    }

    /// Says that the expressions about it cost too much, until they have been evaluated and did not: those of the type are each
    /// time, those of adapters with each pulse.
    fn say_if_too_costly(&mut self, before: &ManagedResource) {
        (self.plan.too_costly, self.plan.steps) = (self.budget.is_exceeded(), self.budget.spent().steps);
        let (now, resource) = (self.now, &mut self.plan.resource);
        let was_pulsed = resource.status.pulse != before.status.pulse;
        let (generation, conditions) = (resource.metadata.generation, &mut resource.status.conditions);
        let old = find_condition(conditions, EVALUATED).cloned();
        let message = if self.type_is_too_costly {
            TYPE_TOO_COSTLY
        } else if self.plan.too_costly {
            ADAPTER_TOO_COSTLY
        } else if !was_pulsed && old.as_ref().is_some_and(|old| old.message == ADAPTER_TOO_COSTLY) {
            return;
        } else {
            ""
        };
        conditions.retain(|condition| condition.r#type != EVALUATED);
        if !message.is_empty() {
            conditions.push(Condition {
                observed_generation: Some(generation),
                last_transition_time: old.map_or(now, |old| old.last_transition_time),
                ..Condition::new(EVALUATED, ConditionStatus::False, "TooCostly", message, now)
            });
        }
    }

    fn inputs(&self) -> Inputs<'a> {
        Inputs::new(&self.plan.resource, self.world.env, self.budget)
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
        match accept_within(self.rules, &self.plan.resource, report, true, now, self.budget) {
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

//! How adapters answer a pulse (seed 002, F22, F30–F33).
//!
//! | work for this generation | answer |
//! |---|---|
//! | none | made |
//! | goes on | said so; a call is made again |
//! | succeeded, within its ttl | reported again |
//! | succeeded, ttl over | made anew |
//! | failed, and has rested | made anew |
//! | failed, and rests | reported again |
//! | a task for an older generation goes on | waited for; canceled if the resource is deleted |
//!
//! Params and preconditions come first: what is wrong with them is the answer. After a deletion an adapter without an action for that has
//! cleaned up.

use std::sync::Arc;

use muster_expr::cel::Template;
use muster_types::adapter::RecreateOn;
use muster_types::adapter_standing::{AdapterWork, WorkPhase};
use muster_types::{AdapterReport, JsonText};
use serde_json::{Value as Json, json};

use super::{Call, CallState, CallWhat, Planning};
use crate::adapter_rules::{ActionRules, AdapterRules};
use crate::inputs::{Evaluated, evaluate};
use crate::outcome::Outcome;
use crate::root_conditions::is_decided;
use crate::sentinel::backoff;
use crate::task_render::{render_task, task_name};

/// Tasks of an adapter that are kept besides the newest.
const OLD_TASKS: u64 = 2;
/// Names that are tried for a task.
const MOST_NAMES: u64 = 1000;

/// What is to become of finished work.
enum Finished {
    Reuse,
    Anew,
}

impl Planning<'_> {
    /// Every adapter answers; an answer may be what another one waited for.
    pub(super) fn answer_all(&mut self, adapters: &[Arc<AdapterRules>]) {
        for _round in 0..=adapters.len() {
            let before = self.sequence();
            for adapter in adapters {
                self.answer(adapter);
            }
            if self.sequence() == before {
                break;
            }
        }
    }

    fn sequence(&self) -> u64 {
        self.plan.resource.status.pulse.as_ref().map_or(0, |pulse| pulse.sequence)
    }

    fn answer(&mut self, adapter: &AdapterRules) {
        let resource = &self.plan.resource;
        let (generation, deleting) = (resource.metadata.generation, resource.is_deleting());
        let standing = resource.status.standing(&adapter.name);
        let answered = standing.map_or(0, |standing| standing.answered_pulse);
        let work = standing.and_then(|standing| standing.work.clone());
        let is_call = |work: &AdapterWork| work.task.is_empty();
        if adapter.spec.suspend || (deleting && self.world.children > 0) {
            return;
        }
        if answered >= self.sequence() {
            // A call that this server has not made yet: it was decided before a restart.
            if let Some(work) = work.filter(|work| work.goes_on() && is_call(work))
                && (self.world.call)(&adapter.name) == CallState::Unknown
            {
                self.call_again(adapter, &work);
            }
            return;
        }
        match &work {
            Some(work) if work.goes_on() && !is_call(work) && work.generation != generation => {
                if deleting {
                    self.plan.cancel.push(work.task.clone());
                }
            }
            Some(work) if work.goes_on() && !is_call(work) => {
                let got = (self.world.task)(&work.task).and_then(|task| task.to_document().ok());
                self.mark_answered(adapter);
                let outcome = Outcome::InProgress { got: got.unwrap_or_default() };
                self.report(adapter, generation, work.delete, &outcome);
            }
            Some(work) if work.goes_on() && work.generation == generation => {
                self.mark_answered(adapter);
                self.call_again(adapter, work);
            }
            _ => {
                self.mark_answered(adapter);
                self.act(adapter, work.as_ref(), generation, deleting);
            }
        }
    }

    fn mark_answered(&mut self, adapter: &AdapterRules) {
        let sequence = self.sequence();
        self.plan.resource.status.standing_mut(&adapter.name).answered_pulse = sequence;
    }

    /// Makes, reuses or makes anew.
    fn act(&mut self, adapter: &AdapterRules, work: Option<&AdapterWork>, generation: i64, deleting: bool) {
        if deleting && adapter.delete.is_none() {
            // There is nothing to clean up, so nothing that would have to be known.
            return self.report(adapter, generation, deleting, &Outcome::Succeeded { got: Json::Null });
        }
        let outcome = match evaluate(adapter, &self.inputs(), deleting) {
            Evaluated::Unable(message) => Outcome::Unable(message),
            Evaluated::Unmet(message) => Outcome::Unmet(message),
            Evaluated::Ready(params) => {
                let action = if deleting { adapter.delete.as_ref() } else { Some(&adapter.action) };
                let finished = work.filter(|work| work.generation == generation && work.delete == deleting);
                match (action, finished.map(|work| self.judge(adapter, work))) {
                    (None, _) => Outcome::Succeeded { got: Json::Null },
                    (Some(_), Some(Finished::Reuse)) => return self.report_again(adapter),
                    (Some(action), _) => match self.make(adapter, action, work, &params) {
                        Ok(got) => Outcome::InProgress { got },
                        Err(message) => Outcome::Unable(message),
                    },
                }
            }
        };
        self.report(adapter, generation, deleting, &outcome);
    }

    fn judge(&self, adapter: &AdapterRules, work: &AdapterWork) -> Finished {
        let lifecycle = &adapter.spec.lifecycle;
        let age = work.ended.map_or(muster_types::Duration::ZERO, |ended| self.now.duration_since(ended));
        let failures =
            self.plan.resource.status.standing(&adapter.name).map_or(0, |standing| standing.failures);
        let anew = match work.phase {
            Some(WorkPhase::Failed) if lifecycle.recreates_on(RecreateOn::Failed) => {
                age >= backoff(self.rules, failures)
            }
            _ => age > lifecycle.ttl() && lifecycle.recreates_on(RecreateOn::Expired),
        };
        if anew { Finished::Anew } else { Finished::Reuse }
    }

    /// Says once more what was said, as seen now.
    fn report_again(&mut self, adapter: &AdapterRules) {
        let Some(standing) = self.plan.resource.status.standing(&adapter.name) else { return };
        if !is_decided(standing) {
            return;
        }
        let report = AdapterReport {
            adapter: adapter.name.clone(),
            observed_generation: standing.observed_generation,
            observed_time: Some(self.time_for(&adapter.name)),
            conditions: standing.conditions.clone(),
            data: standing.data.clone(),
            uid: String::new(),
        };
        // It was taken before, and it is not older than the last.
        let _taken = self.take_in(&report);
    }

    /// Makes the work and writes down that it was made. Gives what there is to look at.
    fn make(
        &mut self,
        adapter: &AdapterRules,
        action: &ActionRules,
        before: Option<&AdapterWork>,
        params: &Json,
    ) -> Result<Json, String> {
        let number = before.map_or(0, |work| work.number) + 1;
        match action {
            ActionRules::Task(template) => self.make_task(adapter, template, number, params),
            ActionRules::Manifest(template) => {
                let what = CallWhat::Apply(self.render(template, params)?);
                self.make_call(adapter, number, what);
                Ok(Json::Null)
            }
            ActionRules::DeleteManifest(template) => {
                let what = CallWhat::Delete(self.render(template, params)?);
                self.make_call(adapter, number, what);
                Ok(Json::Null)
            }
            ActionRules::Http(http) => {
                let what = CallWhat::Http(self.render(&http.request, params)?);
                self.make_call(adapter, number, what);
                Ok(Json::Null)
            }
        }
    }

    fn render(&self, template: &Template, params: &Json) -> Result<Json, String> {
        let inputs = self.inputs();
        let rendered = template.render(&inputs.scope(params));
        rendered.map_err(|error| format!("the template has no value at {}: {}", error.path, error.message))
    }

    fn make_task(
        &mut self,
        adapter: &AdapterRules,
        template: &Template,
        number: u64,
        params: &Json,
    ) -> Result<Json, String> {
        let rendered = self.render(template, params)?;
        let resource = &self.plan.resource;
        let is_free = |number: &u64| {
            (self.world.task)(&task_name(&resource.metadata.name, &adapter.name, *number)).is_none()
        };
        let number = (number..number + MOST_NAMES)
            .find(is_free)
            .ok_or("all names for its task are taken; delete some of those tasks")?;
        let resource_type = &adapter.spec.resource_type;
        let task = render_task(resource, &adapter.name, resource_type, number, rendered, params)?;
        let got = json!({"metadata": {"name": task.metadata.name}, "status": {"state": "Ready"}});
        if let Some(old) = number.checked_sub(OLD_TASKS + 1).filter(|old| *old > 0) {
            self.plan.forget.push(task_name(&resource.metadata.name, &adapter.name, old));
        }
        self.set_work(adapter, number, task.metadata.name.clone());
        self.plan.tasks.push(task);
        Ok(got)
    }

    fn make_call(&mut self, adapter: &AdapterRules, number: u64, what: CallWhat) {
        self.set_work(adapter, number, String::new());
        self.plan.calls.push(Call { adapter: adapter.name.clone(), number, what });
    }

    fn set_work(&mut self, adapter: &AdapterRules, number: u64, task: String) {
        let resource = &mut self.plan.resource;
        let (generation, delete) = (resource.metadata.generation, resource.is_deleting());
        let started = Some(self.now);
        let phase = Some(WorkPhase::InProgress);
        let work = AdapterWork { number, generation, task, phase, started, ended: None, delete };
        resource.status.standing_mut(&adapter.name).work = Some(work);
    }

    /// Makes a call of open work once more: its last answer said that the work goes on, or nobody knows whether it was made.
    fn call_again(&mut self, adapter: &AdapterRules, work: &AdapterWork) {
        if matches!((self.world.call)(&adapter.name), CallState::Open | CallState::Answered { .. }) {
            return;
        }
        let Evaluated::Ready(params) = evaluate(adapter, &self.inputs(), true) else { return };
        let action = if work.delete { adapter.delete.as_ref() } else { Some(&adapter.action) };
        let what = match action {
            Some(ActionRules::Http(http)) => self.render(&http.request, &params).map(CallWhat::Http),
            Some(ActionRules::Manifest(template)) => self.render(template, &params).map(CallWhat::Apply),
            Some(ActionRules::DeleteManifest(template)) => {
                self.render(template, &params).map(CallWhat::Delete)
            }
            Some(ActionRules::Task(_)) | None => return,
        };
        match what {
            Ok(what) => {
                self.plan.calls.push(Call { adapter: adapter.name.clone(), number: work.number, what });
            }
            Err(message) => self.report(adapter, work.generation, work.delete, &Outcome::Unable(message)),
        }
    }
}

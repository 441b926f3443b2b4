//! The spans of a task: one for all of its life, one for each wait and one for each attempt.

use muster_ports::clock::Millis;
use muster_ports::telemetry::Telemetry;
use muster_ports::telemetry::catalog::SPANS;
use muster_ports::traces::{Span, Tracer};
use muster_tasks::trace_context::TraceContext;
use muster_tasks::view::{parse_uid, state_of};
use muster_types::{State, Task};

use crate::telemetry::waited;

/// Makes the spans of tasks.
#[derive(Debug, Clone)]
pub struct TaskTracer {
    tracer: Tracer,
    telemetry: Telemetry,
}

impl TaskTracer {
    /// Hands them to this tracer.
    pub fn new(tracer: Tracer, telemetry: Telemetry) -> Self {
        Self { tracer, telemetry }
    }

    /// What an attempt finds in its environment, if there are traces.
    pub fn traceparent(&self, task: &Task, attempt: u32) -> Option<String> {
        let context = TraceContext::of(task).filter(|_| self.tracer.is_on())?;
        Some(context.traceparent(attempt))
    }

    /// An attempt was admitted: its wait is over.
    pub fn started(&self, task: &Task, now: Millis) {
        let start = Millis(now.0 - waited(task, now));
        let number = task.status.attempt;
        self.record(task, |context| Span {
            id: context.wait(number),
            parent: Some(context.span),
            name: "wait".to_owned(),
            start,
            end: now,
            attributes: vec![("muster.attempt", number.to_string())],
            ..blank(context)
        });
    }

    /// An attempt ended that ran from one time to another.
    pub fn ended(&self, task: &Task, ran: (Millis, Millis)) {
        let Some(attempt) = task.status.attempts.last() else { return };
        self.record(task, |context| {
            let mut attributes = vec![("muster.attempt", attempt.number.to_string())];
            attributes.extend(attempt.runtime.map(|runtime| ("muster.runtime", runtime.to_string())));
            attributes.extend(attempt.exit_code.map(|code| ("process.exit_code", code.to_string())));
            attributes.extend((!attempt.robot.is_empty()).then(|| ("muster.robot", attempt.robot.clone())));
            Span {
                id: context.attempt(attempt.number),
                parent: Some(context.span),
                name: "attempt".to_owned(),
                start: ran.0,
                end: ran.1,
                attributes,
                error: (attempt.exit_code != Some(0)).then(|| attempt.reason.clone()),
                ..blank(context)
            }
        });
    }

    /// A task ended.
    pub fn over(&self, task: &Task, now: Millis) {
        self.record(task, |context| {
            let (metadata, state) = (&task.metadata, state_of(task));
            let made = parse_uid(&metadata.uid).and_then(|uid| i64::try_from(uid >> 80).ok());
            let attributes = [
                ("muster.task", metadata.name.clone()),
                ("muster.namespace", metadata.namespace.clone()),
                ("muster.uid", metadata.uid.clone()),
                ("muster.state", state.to_string()),
                ("muster.kind", task.spec.kind.clone()),
                ("muster.addon", task.spec.addon.clone()),
                ("muster.attempts", task.status.attempt.to_string()),
            ];
            Span {
                id: context.span,
                parent: context.parent,
                name: format!("task {}", metadata.name),
                start: Millis(made.unwrap_or(now.0).min(now.0)),
                end: now,
                attributes: attributes.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
                error: (state == State::Failed).then(|| task.status.message.clone()),
                ..blank(context)
            }
        });
    }

    fn record(&self, task: &Task, make: impl FnOnce(&TraceContext) -> Span) {
        if !self.tracer.is_on() {
            return;
        }
        let Some(context) = TraceContext::of(task) else { return };
        if !self.tracer.record(make(&context)) {
            self.telemetry.count(SPANS, &["dropped"], 1);
        }
    }
}

fn blank(context: &TraceContext) -> Span {
    Span {
        trace: context.trace,
        id: 0,
        parent: None,
        name: String::new(),
        start: Millis(0),
        end: Millis(0),
        attributes: Vec::new(),
        error: None,
    }
}

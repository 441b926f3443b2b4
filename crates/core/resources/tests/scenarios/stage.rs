//! A resource on a stage: steps in words, its stand in words.
//!
//! Steps: `create`, `edit`, `delete`, `force REASON`, `wait 10s`, `report ADAPTER gN STATUS [REASON]`, `plan`,
//! `task NAME STATE`, `children N`, `answer ADAPTER STATUS`, `restart`. A line is `step -> stand`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use muster_resources::plan::{CallState, World, plan_resource};
use muster_resources::root_conditions::fold_conditions;
use muster_resources::{AdapterRules, TypeRules, accept_report};
use muster_types::adapter::AdapterSpec;
use muster_types::adapter_report::{AdapterReport, ReportedCondition};
use muster_types::condition::ConditionStatus;
use muster_types::managed_resource::{FINALIZER, FORCE_DELETE};
use muster_types::resource_type::ResourceTypeSpec;
use muster_types::timestamp::MicroTimestamp;
use muster_types::{Duration, ManagedResource, Millis, State, Task};
use serde_json::{Value as Json, json};

/// One resource, its type, its adapters and its tasks.
pub struct Stage {
    pub rules: TypeRules,
    pub adapters: Vec<Arc<AdapterRules>>,
    pub resource: ManagedResource,
    pub tasks: BTreeMap<String, Task>,
    pub calls: BTreeMap<String, CallState>,
    pub numbers: BTreeMap<String, u64>,
    pub now: Millis,
    pub children: usize,
    pub wake_at: Option<Millis>,
}

impl Stage {
    /// A type that requires these adapters; the reports are made by hand.
    pub fn new(required: &[&str]) -> Self {
        Self::of_type(json!({
            "names": {"kind": "Cluster", "plural": "clusters"},
            "adapters": required,
        }))
    }

    /// A resource of this type.
    pub fn of_type(spec: Json) -> Self {
        let spec: ResourceTypeSpec = serde_json::from_value(spec).expect("a type");
        let mut resource = ManagedResource::new("Cluster", "n", "x", json!({"size": 1}));
        "u".clone_into(&mut resource.metadata.uid);
        Self {
            rules: TypeRules::compile(&spec).expect("a good type"),
            adapters: vec![],
            resource,
            tasks: BTreeMap::new(),
            calls: BTreeMap::new(),
            numbers: BTreeMap::new(),
            now: Millis(1_000_000_000_000),
            children: 0,
            wake_at: None,
        }
    }

    /// Adds an adapter of the product.
    #[must_use]
    pub fn with_adapter(mut self, name: &str, mut spec: Json) -> Self {
        spec["resourceType"] = json!("clusters");
        let spec: AdapterSpec = serde_json::from_value(spec).expect("an adapter");
        self.adapters.push(Arc::new(AdapterRules::compile(name, &spec).expect("a good adapter")));
        self
    }

    /// Adds an adapter that makes a task.
    #[must_use]
    pub fn with_task_adapter(self, name: &str) -> Self {
        self.with_adapter(name, json!({"task": {"spec": {"container": {"command": ["true"]}}}}))
    }

    /// Plays a table and compares what happens with what it says.
    pub fn play(&mut self, table: &str) {
        let mut played = String::new();
        let mut wanted = String::new();
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (step, stand) = line.split_once("->").expect("a line is `step -> stand`");
            let (step, stand) = (step.trim(), stand.trim());
            writeln!(wanted, "{step} -> {stand}").expect("text");
            let happened = self.step(step);
            writeln!(played, "{step} -> {happened}").expect("text");
        }
        assert_eq!(played, wanted, "\nplayed:\n{played}");
    }

    fn step(&mut self, step: &str) -> String {
        let words: Vec<_> = step.split_whitespace().collect();
        let said = match words.as_slice() {
            ["create"] => {
                self.resource.metadata.generation = 1;
                self.resource.metadata.finalizers = vec![FINALIZER.to_owned()];
                self.fold()
            }
            ["edit"] => {
                self.resource.metadata.generation += 1;
                self.fold()
            }
            ["delete"] => {
                self.resource.metadata.generation += 1;
                self.resource.metadata.deletion_timestamp = Some(self.now.to_timestamp());
                self.fold()
            }
            ["force", reason @ ..] => {
                self.resource.metadata.annotations.insert(FORCE_DELETE.to_owned(), reason.join(" "));
                String::new()
            }
            ["wait", time] => {
                let time: Duration = time.parse().expect("a duration");
                self.now.0 += i64::try_from(time.as_std().as_millis()).expect("not that long");
                return String::new();
            }
            ["report", adapter, generation, status, reason @ ..] => {
                self.report(adapter, generation, status, reason.first().unwrap_or(&""))
            }
            ["task", name, state] => {
                let state: State = state.parse().expect("a state");
                let task = self.tasks.get_mut(*name).expect("a task of that name");
                task.status.state = Some(state);
                return String::new();
            }
            ["answer", adapter, status] => {
                let answer = match *status {
                    "none" => Err("no answer".to_owned()),
                    "null" => Ok(Json::Null),
                    status if status.starts_with('{') => Ok(serde_json::from_str(status).expect("JSON")),
                    status => Ok(json!({"status": status.parse::<u64>().expect("a status"), "body": {}})),
                };
                let number = self.numbers[*adapter];
                self.calls.insert((*adapter).to_owned(), CallState::Answered { number, answer });
                return String::new();
            }
            ["restart"] => {
                self.calls.clear();
                return String::new();
            }
            ["children", number] => {
                self.children = number.parse().expect("a number");
                return String::new();
            }
            ["plan"] => return self.plan(),
            other => unreachable!("no such step: {other:?}"),
        };
        format!("{said}{}", self.stand())
    }

    fn fold(&mut self) -> String {
        fold_conditions(&self.rules, &mut self.resource, self.now.to_timestamp());
        String::new()
    }

    fn report(&mut self, adapter: &str, generation: &str, status: &str, reason: &str) -> String {
        let status: ConditionStatus = status.parse().expect("a status");
        let now = MicroTimestamp::from_microsecond(self.now.0 * 1000);
        let report = report(adapter, generation[1..].parse().expect("gN"), status, reason, now);
        let verdict = accept_report(&self.rules, &self.resource, &report, true, now).expect("a good report");
        let answer = verdict.answer();
        if let Some(status) = verdict.into_status() {
            self.resource.status = status;
        }
        if answer.outcome.as_str() == "Discarded" {
            return format!("Discarded {}; ", answer.reason);
        }
        format!("{}; ", answer.outcome)
    }

    /// Plans, and plays what the plan says as the engine does. A second plan must change nothing.
    fn plan(&mut self) -> String {
        let mut said = self.plan_once();
        let before = self.resource.clone();
        let again = self.plan_once();
        if self.resource != before {
            write!(said, " THEN {again}").expect("text");
        }
        said
    }

    fn plan_once(&mut self) -> String {
        let env = json!({"REGION": "north"});
        let task = |name: &str| self.tasks.get(name).cloned();
        let call = |adapter: &str| self.calls.get(adapter).cloned().unwrap_or(CallState::Unknown);
        let world = World { now: self.now, env: &env, task: &task, call: &call, children: self.children };
        let before = self.resource.status.pulse.clone();
        let plan = plan_resource(&self.rules, &self.adapters, &self.resource, &world);
        let mut said = Vec::new();
        if plan.resource.status.pulse != before
            && let Some(pulse) = &plan.resource.status.pulse
        {
            said.push(format!("pulse {} {}", pulse.sequence, pulse.reason));
        }
        for state in self.calls.values_mut() {
            if matches!(state, CallState::Answered { .. }) {
                *state = CallState::Taken;
            }
        }
        for task in plan.tasks {
            said.push(format!("make {}", task.metadata.name));
            self.tasks.insert(task.metadata.name.clone(), task);
        }
        for name in plan.cancel {
            said.push(format!("cancel {name}"));
        }
        for name in plan.forget {
            if self.tasks.remove(&name).is_some() {
                said.push(format!("forget {name}"));
            }
        }
        for call in plan.calls {
            said.push(format!("call {} {}", call.adapter, call.number));
            self.numbers.insert(call.adapter.clone(), call.number);
            self.calls.insert(call.adapter, CallState::Open);
        }
        self.resource = plan.resource;
        self.wake_at = plan.wake_at;
        if plan.release {
            said.push("release".to_owned());
            return said.join(", ");
        }
        said.push(self.stand());
        said.join(", ")
    }

    /// Available and Ready, each with its generation; other conditions by their status.
    pub fn stand(&self) -> String {
        let stand = self.resource.status.conditions.iter().map(|condition| match condition.r#type.as_str() {
            "Available" => {
                format!("Available={}@{}", condition.status, condition.observed_generation.unwrap_or(0))
            }
            other => format!("{other}={}", condition.status),
        });
        stand.collect::<Vec<_>>().join(" ")
    }

    /// What an adapter's current report says of each condition.
    pub fn says(&self, adapter: &str) -> String {
        let Some(standing) = self.resource.status.standing(adapter) else { return "nothing".to_owned() };
        let said = standing.conditions.iter().map(|condition| {
            let reason =
                if condition.reason.is_empty() { String::new() } else { format!("({})", condition.reason) };
            format!("{}={}{reason}", condition.r#type, condition.status)
        });
        said.collect::<Vec<_>>().join(" ")
    }
}

/// A report whose other conditions are True.
pub fn report(
    adapter: &str,
    generation: i64,
    available: ConditionStatus,
    reason: &str,
    at: MicroTimestamp,
) -> AdapterReport {
    let condition = |r#type: &str, status, reason: &str| ReportedCondition {
        r#type: r#type.to_owned(),
        status,
        reason: reason.to_owned(),
        message: String::new(),
    };
    AdapterReport {
        adapter: adapter.to_owned(),
        observed_generation: generation,
        observed_time: Some(at),
        conditions: vec![
            condition("Applied", ConditionStatus::True, ""),
            condition("Available", available, reason),
            condition("Health", ConditionStatus::True, ""),
        ],
        ..AdapterReport::default()
    }
}

//! Managed resources of a seed: users change and delete them, and an adapter that is not ours reports on them through a network
//! that loses, delays, doubles and reorders.

use std::collections::BTreeMap;

use muster_ports::store::{Precondition, Revision};
use muster_resources::root_conditions::fold_conditions;
use muster_resources::{TypeRules, accept_report};
use muster_types::adapter_report::{AdapterReport, FINALIZED, ReportedCondition};
use muster_types::condition::ConditionStatus;
use muster_types::managed_resource::FINALIZER;
use muster_types::resource_type::ResourceTypeSpec;
use muster_types::timestamp::MicroTimestamp;
use muster_types::{Adapter, ManagedResource, ResourceType};
use serde_json::json;

use super::World;
use super::users::key;

/// Names of resources, and resources of one seed: one that went comes again under its name.
const NAMES: u64 = 2;
const RESOURCES: u64 = 4;
/// Milliseconds that a quiet world has to make resources Ready before nobody wants them any more.
const PATIENCE: i64 = 1_000_000;
/// The adapter that is not ours: it reports by itself.
const OUTSIDE: &str = "outside";
/// All required adapters.
const REQUIRED: [&str; 3] = ["first", "second", OUTSIDE];

/// What is known outside.
pub struct Managed {
    rules: TypeRules,
    spec: ResourceTypeSpec,
    /// Reports on their way: to whom, and what.
    network: Vec<(String, AdapterReport)>,
    /// The pulse of each resource that was answered last while all is quiet.
    answered: BTreeMap<String, u64>,
    /// Up to where everything was answered while all is quiet.
    seen: Option<Revision>,
    made: u64,
}

impl Managed {
    /// Nothing was reported.
    pub fn new() -> Result<Self, String> {
        let spec: ResourceTypeSpec = serde_json::from_value(json!({
            "names": {"kind": "Cluster", "plural": "clusters"}, "adapters": REQUIRED,
        }))
        .map_err(|error| error.to_string())?;
        let rules = TypeRules::compile(&spec).map_err(|problems| format!("{problems:?}"))?;
        Ok(Self { rules, spec, network: Vec::new(), answered: BTreeMap::new(), seen: None, made: 0 })
    }
}

impl World {
    pub(super) async fn declare_managed(&mut self) -> Result<(), String> {
        let words = |error: serde_json::Error| error.to_string();
        let r#type = ResourceType::new("", "clusters", self.managed.spec.clone());
        let r#type = serde_json::to_value(&r#type).map_err(words)?;
        self.put::<ResourceType>("resourcetypes", r#type, Precondition::Absent).await?;
        let task = json!({"spec": {"container": {"command": ["true"]}, "priority": 3}});
        let adapters = [
            ("first", json!({"resourceType": "clusters", "task": task, "delete": {"task": task}})),
            (
                "second",
                json!({
                    "resourceType": "clusters", "task": task, "lifecycle": {"ttl": "1h"},
                    "preconditions": [{"expression": "'first' in done"}],
                }),
            ),
        ];
        for (name, spec) in adapters {
            let spec = serde_json::from_value(spec).map_err(words)?;
            let adapter = serde_json::to_value(Adapter::new("d", name, spec)).map_err(words)?;
            self.put::<Adapter>("adapters", adapter, Precondition::Absent).await?;
        }
        Ok(())
    }

    pub(super) fn managed(&self) -> Vec<ManagedResource> {
        let stored = self.store.snapshot(&key("clusters", "x").resource);
        stored.range(None, None).filter_map(|stored| serde_json::from_slice(stored.json()).ok()).collect()
    }

    /// Writes a resource that was read; whoever was faster is not overwritten.
    async fn write_managed(&self, mut resource: ManagedResource) -> Result<(), String> {
        let expect = match resource.metadata.resource_version.parse() {
            Ok(revision) => Precondition::At(Revision(revision)),
            Err(_) => Precondition::Absent,
        };
        resource.metadata.resource_version.clear();
        self.put_typed(key("clusters", &resource.metadata.name), &resource, expect).await
    }

    /// Users make resources, change their specs and delete them.
    pub(super) async fn ask_managed(&mut self) -> Result<(), String> {
        let now = self.now().to_timestamp();
        if self.managed.made < RESOURCES && self.dice.once_in(8) {
            let name = format!("c{}", self.dice.below(NAMES));
            if self.managed().iter().any(|resource| resource.metadata.name == name) {
                return Ok(());
            }
            self.managed.made += 1;
            let mut resource = ManagedResource::new("Cluster", "d", &name, json!({"size": 1}));
            resource.metadata.uid = format!("uid-of-{name}-{}", self.managed.made);
            resource.metadata.generation = 1;
            resource.metadata.finalizers = vec![FINALIZER.to_owned()];
            resource.metadata.creation_timestamp = Some(now);
            fold_conditions(&self.managed.rules, &mut resource, now);
            return self.write_managed(resource).await;
        }
        if !self.dice.once_in(25) {
            return Ok(());
        }
        let resources = self.managed();
        let Some(mut resource) = self.dice.pick(&resources).cloned() else { return Ok(()) };
        if resource.is_deleting() {
            return Ok(());
        }
        resource.metadata.generation += 1;
        if self.dice.once_in(3) {
            resource.metadata.deletion_timestamp = Some(now);
        } else {
            resource.spec = json!({"size": self.dice.below(100)});
        }
        fold_conditions(&self.managed.rules, &mut resource, now);
        self.write_managed(resource).await
    }

    pub(super) fn all_managed_went(&self) -> bool {
        self.names("clusters").is_empty()
    }

    /// In a quiet world they become Ready. Then nobody wants them any more, and they go. True once that was asked for.
    pub(super) async fn calm_managed(&mut self, quiet_for: i64) -> Result<bool, String> {
        let is_settled = |it: &ManagedResource| it.status.is_ready() || it.is_deleting();
        if quiet_for < PATIENCE && !self.managed().iter().all(is_settled) {
            return Ok(false);
        }
        let now = self.now().to_timestamp();
        for mut resource in self.managed().into_iter().filter(|resource| !resource.is_deleting()) {
            resource.metadata.generation += 1;
            resource.metadata.deletion_timestamp = Some(now);
            fold_conditions(&self.managed.rules, &mut resource, now);
            self.write_managed(resource).await?;
        }
        Ok(true)
    }

    /// The outside adapter answers what it sees.
    pub(super) async fn report_managed(&mut self) -> Result<(), String> {
        let well = self.is_quiet;
        let now = MicroTimestamp::from_microsecond(self.now().0 * 1000);
        let stored = self.store.snapshot(&key("clusters", "x").resource);
        let newest = stored.range(None, None).map(|stored| stored.revision).max();
        let is_news = std::mem::replace(&mut self.managed.seen, newest) != newest;
        if well && is_news || !well && self.dice.once_in(4) {
            for resource in self.managed() {
                let Some(pulse) = &resource.status.pulse else { continue };
                // A quiet outside answers each pulse once.
                let name = resource.metadata.name.clone();
                if well && self.managed.answered.insert(name, pulse.sequence) == Some(pulse.sequence) {
                    continue;
                }
                let status = match self.dice.below(8) {
                    _ if well => ConditionStatus::True,
                    0 => ConditionStatus::False,
                    1 => ConditionStatus::Unknown,
                    _ => ConditionStatus::True,
                };
                let report = report_of(&resource, pulse.generation, status, now);
                let copies = if well { 1 } else { self.dice.below(3) };
                for _ in 0..copies {
                    let room = self.managed.network.len() as u64 + 1;
                    let place = usize::try_from(self.dice.below(room)).unwrap_or(0);
                    self.managed.network.insert(place, (resource.metadata.name.clone(), report.clone()));
                }
            }
        }
        while let Some((name, report)) = self.managed.network.pop() {
            self.deliver_report(&name, &report, now).await?;
            if !well && self.dice.once_in(2) {
                break;
            }
        }
        Ok(())
    }

    /// Hands in a report, as the API does. One that is too old is refused; that is as good as lost.
    async fn deliver_report(
        &mut self,
        name: &str,
        report: &AdapterReport,
        now: MicroTimestamp,
    ) -> Result<(), String> {
        let Some(stored) = self.store.get(&key("clusters", name)) else { return Ok(()) };
        let mut resource: ManagedResource =
            serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
        let Ok(verdict) = accept_report(&self.managed.rules, &resource, report, false, now) else {
            return Ok(());
        };
        let Some(status) = verdict.into_status() else { return Ok(()) };
        resource.status = status;
        self.write_managed(resource).await
    }
}

fn report_of(
    resource: &ManagedResource,
    generation: i64,
    status: ConditionStatus,
    now: MicroTimestamp,
) -> AdapterReport {
    let condition = |r#type: &str, status| ReportedCondition {
        r#type: r#type.to_owned(),
        status,
        reason: String::new(),
        message: String::new(),
    };
    let cleans_up = resource.is_deleting() && generation == resource.metadata.generation;
    let status = if cleans_up && status == ConditionStatus::True { ConditionStatus::False } else { status };
    let mut conditions = vec![
        condition("Applied", ConditionStatus::True),
        condition("Available", status),
        condition("Health", ConditionStatus::True),
    ];
    if cleans_up && status == ConditionStatus::False {
        conditions.push(condition(FINALIZED, ConditionStatus::True));
    }
    AdapterReport {
        adapter: OUTSIDE.to_owned(),
        observed_generation: generation,
        observed_time: Some(now),
        conditions,
        data: None,
        uid: resource.metadata.uid.clone(),
    }
}

//! One stored object, its writers, and a clock that ticks with every write.

use muster_merge::{Apply, ApplyError, Conflict, ManagedFields, PatchKind, Schema, Update};
use serde_json::{Value, json};

/// A small workload: named containers with ports and env, a set of groups, free-form args, an atomic
/// selector.
pub fn schema() -> Schema {
    let keyed = |keys: Value, properties: Value| {
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": properties},
        })
    };
    let ports = keyed(
        json!(["port", "protocol"]),
        json!({
            "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "host": {"type": "integer"},
        }),
    );
    let containers = keyed(
        json!(["name"]),
        json!({
            "name": {"type": "string"}, "image": {"type": "string"}, "ports": ports,
            "command": {"type": "array", "items": {"type": "string"}},
            "probe": {"type": "object", "properties": {"path": {"type": "string"}, "period": {"type": "integer"}}},
        }),
    );
    Schema::from_json(&json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "replicas": {"type": "integer"},
                "containers": containers,
                "groups": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "args": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "selector": {"type": "object", "x-kubernetes-map-type": "atomic"},
            }},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
    }))
    .unwrap()
}

pub struct Store {
    pub schema: Schema,
    pub object: Option<Value>,
    /// The version clients write in.
    pub api_version: &'static str,
    clock: u32,
}

impl Store {
    /// Nothing is stored.
    pub fn empty() -> Self {
        Self { schema: schema(), object: None, api_version: "v1", clock: 0 }
    }

    /// An object is stored that nobody ever applied.
    pub fn with(object: Value) -> Self {
        Self { object: Some(object), ..Self::empty() }
    }

    pub fn tick(&mut self) -> String {
        self.clock += 1;
        format!("T{:02}", self.clock)
    }

    fn try_apply(&mut self, manager: &str, config: &Value, force: bool) -> Result<(), ApplyError> {
        let now = self.tick();
        let applied = muster_merge::apply(Apply {
            live: self.object.as_ref(),
            config,
            manager,
            force,
            subresource: None,
            schema: &self.schema,
            api_version: self.api_version,
            now: &now,
        })?;
        self.object = Some(applied);
        Ok(())
    }

    pub fn apply(&mut self, manager: &str, spec: Value) -> Result<(), ApplyError> {
        self.try_apply(manager, &json!({ "spec": spec }), false)
    }

    pub fn apply_object(&mut self, manager: &str, config: Value) -> Result<(), ApplyError> {
        self.try_apply(manager, &config, false)
    }

    pub fn force(&mut self, manager: &str, spec: Value) {
        self.try_apply(manager, &json!({ "spec": spec }), true).unwrap();
    }

    /// The fields an apply conflicts over, each with its owner.
    pub fn conflicts(&mut self, manager: &str, spec: Value) -> Vec<String> {
        match self.apply(manager, spec) {
            Err(ApplyError::Conflicts(conflicts)) => conflicts.iter().map(shown).collect(),
            other => panic!("expected conflicts, got {other:?}"),
        }
    }

    /// Stores what `change` makes of the object.
    pub fn update(&mut self, manager: &str, change: impl FnOnce(&mut Value)) {
        self.update_subresource(manager, None, change);
    }

    pub fn update_subresource(
        &mut self,
        manager: &str,
        subresource: Option<&str>,
        change: impl FnOnce(&mut Value),
    ) {
        let now = self.tick();
        let mut new = self.object.clone().unwrap_or_else(|| json!({}));
        change(&mut new);
        let tracked = muster_merge::track_update(Update {
            old: self.object.as_ref(),
            new: &new,
            manager,
            subresource,
            schema: &self.schema,
            api_version: self.api_version,
            now: &now,
        });
        self.object = Some(tracked.unwrap());
    }

    pub fn patch(&mut self, manager: &str, kind: PatchKind, patch: &Value) {
        let old = self.object.clone().unwrap();
        let patched = muster_merge::patch(kind, &old, patch, &self.schema, 1 << 20).unwrap();
        self.update(manager, |object| *object = patched);
    }

    pub fn spec(&self) -> &Value {
        &self.object.as_ref().unwrap()["spec"]
    }

    /// Who owns what and since when, one line per writer.
    pub fn owners(&self) -> Vec<String> {
        let managed = ManagedFields::of(self.object.as_ref().unwrap()).unwrap();
        managed
            .entries()
            .map(|entry| {
                let writer = &entry.writer;
                let subresource =
                    writer.subresource.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
                let (operation, time) = (writer.operation.as_str(), entry.time.as_deref().unwrap_or("-"));
                let paths = entry.fields.paths().join(" ");
                format!("{}{subresource} {operation} {time}: {paths}", writer.manager)
            })
            .collect()
    }
}

fn shown(conflict: &Conflict) -> String {
    format!("{} {}: {}", conflict.manager, conflict.operation.as_str(), conflict.path)
}

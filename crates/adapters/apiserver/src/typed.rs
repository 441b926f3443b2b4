//! Kinds of ours: a spec type with its strategy, seen as a [`Kind`].

use std::any::Any;
use std::borrow::Cow;
use std::marker::PhantomData;

use muster_merge::Schema;
use muster_ports::store::{Check, Snapshot, Store};
use muster_types::{Object, Resource, Timestamp};
use serde_json::Value;

use crate::decode::decode;
use crate::kind::{AnyObject, Column, ColumnInfo, Decoded, Input, Kind, KindInfo, Part, Strategy, Writing};
use crate::refusal::{Causes, Refusal};

/// A kind made of a spec type and its strategy.
pub struct Typed<S: Strategy> {
    info: KindInfo,
    openapi: Value,
    schema: Schema,
    columns: Vec<Column<S>>,
    column_infos: Vec<ColumnInfo>,
    spec: PhantomData<fn() -> S>,
}

impl<S: Strategy> Default for Typed<S> {
    fn default() -> Self {
        let openapi = muster_types::schema::openapi_schema::<S>();
        let columns = S::columns();
        let column_infos = columns.iter().map(|column| ColumnInfo {
            name: Cow::Borrowed(column.name),
            description: Cow::Borrowed(column.description),
            wide: column.wide,
            column_type: column.column_type,
        });
        Self {
            info: KindInfo::new(&S::NAMES, S::HAS_STATUS),
            schema: Schema::from_json(&openapi).unwrap_or_else(|_| Schema::free_form()),
            openapi,
            column_infos: column_infos.collect(),
            columns,
            spec: PhantomData,
        }
    }
}

impl<S: Strategy> Kind for Typed<S> {
    fn info(&self) -> &KindInfo {
        &self.info
    }

    fn openapi(&self) -> &Value {
        &self.openapi
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn decode(&self, input: Input<'_>) -> Result<Decoded, Refusal> {
        let (object, unknown) = decode::<Object<S>>(&self.info, input)?;
        Ok(Decoded { object: Box::new(object), unknown })
    }

    fn prepare_create(&self, new: &mut dyn AnyObject, by: Writing<'_>, causes: &mut Causes) {
        let Some(new) = typed_mut::<S>(new) else { return };
        new.status = S::Status::default();
        new.metadata.generation = 1;
        S::prepare(new, by.user);
        S::validate(new, causes);
    }

    fn prepare_update(
        &self,
        old: &dyn AnyObject,
        new: &mut dyn AnyObject,
        part: Part,
        by: Writing<'_>,
        causes: &mut Causes,
    ) {
        let (Some(old), Some(new)) = (typed::<S>(old), typed_mut::<S>(new)) else { return };
        match part {
            Part::Main => {
                new.status.clone_from(&old.status);
                S::prepare_change(old, new, by);
            }
            Part::Status => {
                new.spec.clone_from(&old.spec);
                let managed_fields = new.metadata.managed_fields.take();
                new.metadata.clone_from(&old.metadata);
                new.metadata.managed_fields = managed_fields;
                S::STATUS.check(&old.status, &new.status, causes);
            }
        }
        let changed = new.spec != old.spec;
        new.metadata.generation = old.metadata.generation + i64::from(changed);
        // What is stored and was allowed once may stay: its status, its labels and its end must not hang on it.
        if changed && S::is_checked_again(old, new) {
            S::validate(new, causes);
        }
        S::validate_update(old, new, causes);
    }

    fn admit(&self, object: &dyn AnyObject, stored: &Snapshot, causes: &mut Causes) {
        if let Some(object) = typed::<S>(object) {
            S::admit(object, stored, causes);
        }
    }

    fn held_back(&self, object: &dyn AnyObject, store: &Store) -> Option<String> {
        typed::<S>(object).and_then(|object| S::held_back(object, store))
    }

    fn needs_at_end(&self, object: &dyn AnyObject) -> Vec<Check> {
        typed::<S>(object).map(S::needs_at_end).unwrap_or_default()
    }

    fn mark_deleted(&self, object: &mut dyn AnyObject, store: &Store, _now: Timestamp) {
        if let Some(object) = typed_mut::<S>(object) {
            S::mark_deleted(object, store);
        }
    }

    fn goes_last(&self, object: &dyn AnyObject) -> bool {
        typed::<S>(object).is_some_and(S::goes_last)
    }

    fn follows_wall_clock(&self) -> bool {
        S::FOLLOWS_WALL_CLOCK
    }

    fn columns(&self) -> &[ColumnInfo] {
        &self.column_infos
    }

    fn cells(&self, object: &dyn AnyObject) -> Vec<Value> {
        typed::<S>(object)
            .map_or_else(Vec::new, |object| self.columns.iter().map(|column| (column.cell)(object)).collect())
    }

    fn field_names(&self) -> Vec<Cow<'static, str>> {
        S::fields().iter().map(|(name, _)| Cow::Borrowed(*name)).collect()
    }

    fn field(&self, object: &dyn AnyObject, name: &str) -> Option<String> {
        let read = S::fields().iter().find(|(field, _)| *field == name).map(|(_, read)| read)?;
        typed::<S>(object).map(|object| read(object).into_owned())
    }
}

fn typed<S: Resource>(object: &dyn AnyObject) -> Option<&Object<S>> {
    (object as &dyn Any).downcast_ref()
}

fn typed_mut<S: Resource>(object: &mut dyn AnyObject) -> Option<&mut Object<S>> {
    (object as &mut dyn Any).downcast_mut()
}

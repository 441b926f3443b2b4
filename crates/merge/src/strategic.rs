//! Strategic merge patch: a merge patch that merges lists as the schema says, with directives for the rest.
//!
//! Maps merge field by field and null deletes. Keyed lists merge by key, sets by value; other lists are
//! replaced.
//!
//! | directive | where | meaning |
//! |---|---|---|
//! | `$patch: replace` | in a map or item | what is there is replaced by the rest of the map |
//! | `$patch: replace` | alone in an item | the whole list is replaced by the other items |
//! | `$patch: delete` | in a map | the map is emptied |
//! | `$patch: delete` | in an item | the item with this key goes |
//! | `$setElementOrder/x` | beside `x` | the order of the named items; others keep their place |
//! | `$deleteFromPrimitiveList/x` | beside `x` | these values go from the list |
//! | `$retainKeys` | in a map | fields not named here go |

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::interleave::interleave;
use crate::patch::PatchError;
use crate::path::PathElement;
use crate::schema::Node;
use crate::shape::element_of;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges `patch` into a copy of `target`.
pub(crate) fn merge_strategically(target: &Value, patch: &Value, node: &Node) -> Result<Value, PatchError> {
    let (Some(target), Some(patch)) = (target.as_object(), patch.as_object()) else {
        return Err(PatchError::Malformed("a strategic merge patch is a map, for an object that is a map"));
    };
    merge_map(target.clone(), patch, node).map(Value::Object).map_err(|refusal| PatchError::Invalid {
        path: if refusal.path.is_empty() { "the patch".to_owned() } else { refusal.path },
        reason: refusal.reason,
    })
}

/// Why a patch cannot be merged; the path grows on the way out.
struct Refusal {
    path: String,
    reason: String,
}

impl Refusal {
    fn new(reason: impl Into<String>) -> Self {
        Self { path: String::new(), reason: reason.into() }
    }

    fn under(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

/// What a map of the patch asks for.
#[derive(Clone, Copy, PartialEq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

fn directive(patch: &Map<String, Value>) -> Result<Directive, Refusal> {
    match patch.get(PATCH) {
        None => Ok(Directive::Merge),
        Some(Value::String(text)) if text == "merge" => Ok(Directive::Merge),
        Some(Value::String(text)) if text == "replace" => Ok(Directive::Replace),
        Some(Value::String(text)) if text == "delete" => Ok(Directive::Delete),
        Some(other) => Err(Refusal::new(format!("$patch cannot be {other}"))),
    }
}

fn merge_map(
    mut target: Map<String, Value>,
    patch: &Map<String, Value>,
    node: &Node,
) -> Result<Map<String, Value>, Refusal> {
    match directive(patch)? {
        Directive::Delete => return Ok(Map::new()),
        Directive::Replace => target.clear(),
        Directive::Merge => {}
    }
    if let Some(keep) = patch.get(RETAIN_KEYS) {
        let keep = names(keep).ok_or_else(|| Refusal::new("$retainKeys is not a list of field names"))?;
        target.retain(|name, _| keep.contains(name.as_str()));
    }
    for (name, values) in directives(patch, DELETE_FROM) {
        delete_values(&mut target, name, values)?;
    }
    for (name, value) in patch.iter().filter(|(name, _)| !is_directive(name)) {
        if value.is_null() {
            target.remove(name);
            continue;
        }
        let merged = merge_value(target.remove(name), value, node.field(name).node);
        target.insert(name.clone(), merged.map_err(|refusal| refusal.under(&format!(".{name}")))?);
    }
    for (name, order) in directives(patch, SET_ORDER) {
        set_order(&mut target, name, order, node.field(name).node)?;
    }
    Ok(target)
}

fn is_directive(name: &str) -> bool {
    name == PATCH || name == RETAIN_KEYS || name.starts_with(SET_ORDER) || name.starts_with(DELETE_FROM)
}

fn directives<'p>(
    patch: &'p Map<String, Value>,
    prefix: &'p str,
) -> impl Iterator<Item = (&'p str, &'p Value)> {
    patch.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value)))
}

fn names(list: &Value) -> Option<BTreeSet<&str>> {
    list.as_array()?.iter().map(Value::as_str).collect()
}

fn merge_value(target: Option<Value>, patch: &Value, node: &Node) -> Result<Value, Refusal> {
    match patch {
        Value::Object(patch) => {
            let target = if let Some(Value::Object(target)) = target { target } else { Map::new() };
            merge_map(target, patch, node).map(Value::Object)
        }
        Value::Array(patch) if matches!(node, Node::Keyed(_) | Node::Set) => {
            let target = if let Some(Value::Array(target)) = target { target } else { Vec::new() };
            let merged = match node {
                Node::Set => merge_set(target, patch),
                _ => merge_keyed(target, patch, node)?,
            };
            Ok(Value::Array(merged))
        }
        other => Ok(other.clone()),
    }
}

fn merge_set(mut target: Vec<Value>, patch: &[Value]) -> Vec<Value> {
    let mut known: BTreeSet<String> = target.iter().map(Value::to_string).collect();
    target.extend(patch.iter().filter(|value| known.insert(value.to_string())).cloned());
    target
}

fn merge_keyed(target: Vec<Value>, patch: &[Value], node: &Node) -> Result<Vec<Value>, Refusal> {
    let mut items = KeyedItems::new(if patch.iter().any(replaces_list) { Vec::new() } else { target }, node);
    for (index, item) in patch.iter().enumerate().filter(|(_, item)| !replaces_list(item)) {
        items.merge(index, item)?;
    }
    Ok(items.slots.into_iter().flatten().collect())
}

/// An item that is nothing but `$patch: replace` speaks for the list.
fn replaces_list(item: &Value) -> bool {
    let Some(map) = item.as_object() else { return false };
    map.len() == 1 && matches!(directive(map), Ok(Directive::Replace))
}

/// A keyed list under change. Items that cannot be told apart stay as they are, unless all of them go.
struct KeyedItems<'s> {
    node: &'s Node,
    slots: Vec<Option<Value>>,
    by_key: BTreeMap<PathElement, Vec<usize>>,
}

impl<'s> KeyedItems<'s> {
    fn new(list: Vec<Value>, node: &'s Node) -> Self {
        let mut by_key = BTreeMap::<_, Vec<usize>>::new();
        for (index, item) in list.iter().enumerate() {
            if let Ok(key) = element_of(item, node, index) {
                by_key.entry(key).or_default().push(index);
            }
        }
        Self { node, slots: list.into_iter().map(Some).collect(), by_key }
    }

    fn merge(&mut self, index: usize, item: &Value) -> Result<(), Refusal> {
        let key = element_of(item, self.node, index).map_err(|error| Refusal::new(error.to_string()))?;
        let step = key.to_string();
        let Some(item) = item.as_object() else { return Ok(()) };
        let directive = directive(item).map_err(|refusal| refusal.under(&step))?;
        if directive == Directive::Delete {
            for index in self.by_key.remove(&key).unwrap_or_default() {
                self.put(index, None);
            }
            return Ok(());
        }
        let known = self.by_key.get(&key).and_then(|at| at.first().copied());
        let target = known.and_then(|index| self.slots.get_mut(index)?.take());
        let target = if let Some(Value::Object(target)) = target { target } else { Map::new() };
        let merged = merge_map(target, item, self.node.item()).map_err(|refusal| refusal.under(&step))?;
        if let Some(index) = known {
            self.put(index, Some(Value::Object(merged)));
        } else {
            self.by_key.insert(key, vec![self.slots.len()]);
            self.slots.push(Some(Value::Object(merged)));
        }
        Ok(())
    }

    fn put(&mut self, index: usize, item: Option<Value>) {
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = item;
        }
    }
}

fn delete_values(target: &mut Map<String, Value>, name: &str, values: &Value) -> Result<(), Refusal> {
    let values = values
        .as_array()
        .ok_or_else(|| Refusal::new("$deleteFromPrimitiveList is not a list").under(&format!(".{name}")))?;
    let gone: BTreeSet<String> = values.iter().map(Value::to_string).collect();
    if let Some(Value::Array(list)) = target.get_mut(name) {
        list.retain(|value| !gone.contains(&value.to_string()));
    }
    Ok(())
}

fn set_order(target: &mut Map<String, Value>, name: &str, order: &Value, node: &Node) -> Result<(), Refusal> {
    let refuse = |reason: String| Refusal::new(reason).under(&format!(".{name}"));
    let order = order.as_array().ok_or_else(|| refuse("$setElementOrder is not a list".to_owned()))?;
    let Some(Value::Array(list)) = target.get_mut(name) else { return Ok(()) };
    let keys = |items: &[Value]| -> Result<Vec<PathElement>, Refusal> {
        let keys = items.iter().enumerate().map(|(index, item)| element_of(item, node, index));
        keys.collect::<Result<_, _>>().map_err(|error| refuse(error.to_string()))
    };
    let order = distinct(keys(order)?);
    // A stored list whose items cannot be told apart has no order to set.
    let Ok(present) = keys(list) else { return Ok(()) };
    if distinct(present.clone()).len() != present.len() {
        return Ok(());
    }
    let mut items: Vec<Option<Value>> = std::mem::take(list).into_iter().map(Some).collect();
    let in_order = interleave(&present, &order).into_iter();
    *list = in_order.filter_map(|origin| items.get_mut(origin.live?)?.take()).collect();
    Ok(())
}

fn distinct(keys: Vec<PathElement>) -> Vec<PathElement> {
    let mut seen = BTreeSet::new();
    keys.into_iter().filter(|key| seen.insert(key.clone())).collect()
}

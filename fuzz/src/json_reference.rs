//! Merge patches and JSON patches, written down once more from their standards, to hold the product against.

use serde_json::{Map, Value};

/// True if every number is read as it is written. Some with large exponents are not (`fuzz/findings/object_json/number-drifts.md`):
/// what holds of all documents is not asked of those that have one.
pub fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            serde_json::from_str::<Value>(&number.to_string()).is_ok_and(|read| read == *value)
        }
        Value::Array(list) => list.iter().all(is_exact),
        Value::Object(map) => map.values().all(is_exact),
        _ => true,
    }
}

/// RFC 7396, section 2.
pub fn merge_patch(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut merged = target.as_object().cloned().unwrap_or_default();
    for (name, change) in patch {
        if change.is_null() {
            merged.remove(name);
        } else {
            let before = merged.get(name).cloned().unwrap_or(Value::Null);
            merged.insert(name.clone(), merge_patch(&before, change));
        }
    }
    Value::Object(merged)
}

/// RFC 6902; nothing if an operation cannot be done.
pub fn json_patch(target: &Value, patch: &Value) -> Option<Value> {
    let mut document = target.clone();
    for operation in patch.as_array()? {
        document = operate(document, operation.as_object()?)?;
    }
    Some(document)
}

fn operate(mut document: Value, operation: &Map<String, Value>) -> Option<Value> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = steps(text("path")?)?;
    match text("op")? {
        "add" => add(&mut document, &path, operation.get("value")?.clone())?,
        "remove" => drop(remove(&mut document, &path)?),
        "replace" => *find(&mut document, &path)? = operation.get("value")?.clone(),
        "move" => {
            let from = steps(text("from")?)?;
            // Nothing can become a part of itself.
            if path.len() > from.len() && path.starts_with(&from) {
                return None;
            }
            find(&mut document, &from)?;
            if from != path {
                let moved = remove(&mut document, &from)?;
                add(&mut document, &path, moved)?;
            }
        }
        "copy" => {
            let copied = find(&mut document, &steps(text("from")?)?)?.clone();
            add(&mut document, &path, copied)?;
        }
        "test" => {
            let wanted = operation.get("value")?;
            if find(&mut document, &path)? != wanted {
                return None;
            }
        }
        _ => return None,
    }
    Some(document)
}

/// RFC 6901.
fn steps(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let steps = pointer.strip_prefix('/')?.split('/');
    Some(steps.map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

fn index(step: &str) -> Option<usize> {
    let is_plain = step == "0" || step.starts_with(|first: char| ('1'..='9').contains(&first));
    step.parse().ok().filter(|_| is_plain)
}

fn find<'a>(document: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(document, |at, step| match at {
        Value::Object(map) => map.get_mut(step),
        Value::Array(list) => list.get_mut(index(step)?),
        _ => None,
    })
}

fn add(document: &mut Value, path: &[String], value: Value) -> Option<()> {
    let Some((name, parent)) = path.split_last() else {
        *document = value;
        return Some(());
    };
    match find(document, parent)? {
        Value::Object(map) => drop(map.insert(name.clone(), value)),
        Value::Array(list) if name == "-" => list.push(value),
        Value::Array(list) => {
            let at = index(name).filter(|at| *at <= list.len())?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(document: &mut Value, path: &[String]) -> Option<Value> {
    let Some((name, parent)) = path.split_last() else { return Some(std::mem::take(document)) };
    match find(document, parent)? {
        Value::Object(map) => map.remove(name),
        Value::Array(list) => {
            let at = index(name).filter(|at| *at < list.len())?;
            Some(list.remove(at))
        }
        _ => None,
    }
}

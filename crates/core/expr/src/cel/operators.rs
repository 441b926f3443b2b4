//! What operators do with values.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Mistake;
use super::meter::{Meter, VALUE_BYTES};
use super::syntax::Operator;
use super::value::{Text, Value};

/// A field of a map; `None` if there is none of that name.
pub fn field<'a>(at: usize, of: &Value<'a>, name: &str) -> Result<Option<Value<'a>>, Mistake> {
    match of {
        Value::Map(entries) => Ok(entries.get(name).cloned()),
        Value::Document(Json::Object(entries)) => Ok(entries.get(name).map(Value::of_json)),
        other => Err(Mistake::new(at, format!("{} has no fields, so not {name:?}", other.type_name()))),
    }
}

/// An element of a list or a map.
pub fn index<'a>(meter: &Meter<'_>, at: usize, of: &Value<'a>, by: &Value<'a>) -> Result<Value<'a>, Mistake> {
    if let Value::Text(name) = by {
        meter.read(at, name.len())?;
        return field(at, of, name)?
            .ok_or_else(|| Mistake::new(at, format!("there is no key {:?}; ask with in first", &**name)));
    }
    let place = match by {
        Value::Int(place) => usize::try_from(*place).ok(),
        other => {
            return Err(Mistake::new(
                at,
                format!("an index is an int or a string, not {}", other.type_name()),
            ));
        }
    };
    let found = match of {
        Value::List(elements) => place.and_then(|place| elements.get(place)).cloned(),
        Value::Document(Json::Array(elements)) => {
            place.and_then(|place| elements.get(place)).map(Value::of_json)
        }
        other => return Err(Mistake::new(at, format!("{} has no element at a place", other.type_name()))),
    };
    found.ok_or_else(|| Mistake::new(at, "there is no element at this place; ask with size() first"))
}

/// How many elements or entries there are.
pub fn count(at: usize, of: &Value<'_>) -> Result<usize, Mistake> {
    match of {
        Value::List(elements) => Ok(elements.len()),
        Value::Map(entries) => Ok(entries.len()),
        Value::Document(Json::Array(elements)) => Ok(elements.len()),
        Value::Document(Json::Object(entries)) => Ok(entries.len()),
        other => Err(Mistake::new(at, format!("{} has no elements", other.type_name()))),
    }
}

/// The elements of a list, or the keys of a map. A step is taken for each.
pub fn elements<'a>(meter: &Meter<'_>, at: usize, of: &Value<'a>) -> Result<Vec<Value<'a>>, Mistake> {
    meter.take(at, count(at, of)?)?;
    Ok(match of {
        Value::List(elements) => elements.to_vec(),
        Value::Document(Json::Array(elements)) => elements.iter().map(Value::of_json).collect(),
        Value::Map(entries) => entries.keys().map(|key| Value::text(Arc::clone(key))).collect(),
        Value::Document(Json::Object(entries)) => {
            entries.keys().map(|key| Value::Text(Text::Of(key))).collect()
        }
        _ => Vec::new(),
    })
}

/// True or false.
pub fn bool_of(at: usize, value: &Value<'_>) -> Result<bool, Mistake> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(Mistake::new(at, format!("is {}, where bool is needed", other.type_name()))),
    }
}

/// A text.
pub fn text_of<'v>(at: usize, value: &'v Value<'_>) -> Result<&'v str, Mistake> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(Mistake::new(at, format!("is {}, where string is needed", other.type_name()))),
    }
}

/// `-a`.
pub fn negate<'a>(at: usize, value: &Value<'a>) -> Result<Value<'a>, Mistake> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(|| too_large(at)),
        Value::Duration(value) => value.checked_neg().map(Value::Duration).ok_or_else(|| too_large(at)),
        Value::Double(value) => Ok(Value::Double(-value)),
        other => Err(Mistake::new(at, format!("{} has no negative", other.type_name()))),
    }
}

/// `a + b` and its like.
pub fn binary<'a>(
    meter: &Meter<'_>,
    at: usize,
    operator: Operator,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Result<Value<'a>, Mistake> {
    let order = |wanted: fn(Ordering) -> bool| {
        compare(meter, at, left, right)?
            .map(|order| Value::Bool(wanted(order)))
            .ok_or_else(|| no_meaning(at, operator, left, right))
    };
    match operator {
        Operator::Equal => Ok(Value::Bool(equal(meter, at, left, right)?)),
        Operator::NotEqual => Ok(Value::Bool(!equal(meter, at, left, right)?)),
        Operator::Less => order(Ordering::is_lt),
        Operator::LessOrEqual => order(Ordering::is_le),
        Operator::Greater => order(Ordering::is_gt),
        Operator::GreaterOrEqual => order(Ordering::is_ge),
        Operator::In => contains(meter, at, left, right),
        Operator::Add => add(meter, at, left, right),
        Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
            calculate(at, operator, left, right)
        }
    }
}

/// Whether two values are the same. Values of different sorts are not; a whole number may equal one with a fraction.
pub fn equal(meter: &Meter<'_>, at: usize, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Mistake> {
    meter.take(at, 1)?;
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (
            Value::List(_) | Value::Document(_) | Value::Map(_),
            Value::List(_) | Value::Document(_) | Value::Map(_),
        ) => equal_parts(meter, at, left, right),
        _ => Ok(compare(meter, at, left, right)?.is_some_and(Ordering::is_eq)),
    }
}

fn equal_parts(meter: &Meter<'_>, at: usize, left: &Value<'_>, right: &Value<'_>) -> Result<bool, Mistake> {
    if left.type_name() != right.type_name() {
        return Ok(false);
    }
    if count(at, left)? != count(at, right)? {
        return Ok(false);
    }
    let (ours, theirs) = (elements(meter, at, left)?, elements(meter, at, right)?);
    let is_map = left.type_name() == "map";
    for (our, their) in ours.iter().zip(&theirs) {
        if !equal(meter, at, our, their)? {
            return Ok(false);
        }
        if is_map && !equal(meter, at, &index(meter, at, left, our)?, &index(meter, at, right, their)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The order of two values, if they have one.
fn compare(
    meter: &Meter<'_>,
    at: usize,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Option<Ordering>, Mistake> {
    Ok(match (left, right) {
        (Value::Int(left), Value::Int(right))
        | (Value::Timestamp(left), Value::Timestamp(right))
        | (Value::Duration(left), Value::Duration(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => {
            meter.read(at, left.len().min(right.len()))?;
            Some((**left).cmp(&**right))
        }
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => number(left).zip(number(right)).and_then(|(left, right)| left.partial_cmp(&right)),
    })
}

#[expect(clippy::cast_precision_loss, reason = "comparing with a fraction is never more exact than that")]
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Double(value) => Some(*value),
        _ => None,
    }
}

fn contains<'a>(
    meter: &Meter<'_>,
    at: usize,
    one: &Value<'a>,
    all: &Value<'a>,
) -> Result<Value<'a>, Mistake> {
    if let (Value::Text(name), "map") = (one, all.type_name()) {
        meter.read(at, name.len())?;
        return Ok(Value::Bool(field(at, all, name)?.is_some()));
    }
    for element in elements(meter, at, all)? {
        if equal(meter, at, one, &element)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn add<'a>(meter: &Meter<'_>, at: usize, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Mistake> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => {
            meter.make(at, left.len() + right.len())?;
            Ok(Value::text([&**left, &**right].concat()))
        }
        (Value::Timestamp(instant), Value::Duration(length))
        | (Value::Duration(length), Value::Timestamp(instant)) => {
            instant.checked_add(*length).map(Value::Timestamp).ok_or_else(|| too_large(at))
        }
        _ if left.type_name() == "list" && right.type_name() == "list" => {
            meter.make(at, (count(at, left)? + count(at, right)?) * VALUE_BYTES)?;
            let mut joined = elements(meter, at, left)?;
            joined.extend(elements(meter, at, right)?);
            Ok(Value::List(Arc::new(joined)))
        }
        _ => calculate(at, Operator::Add, left, right),
    }
}

/// Arithmetic; whole numbers stay whole, and what cannot be kept is an error.
fn calculate<'a>(
    at: usize,
    operator: Operator,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Result<Value<'a>, Mistake> {
    let whole = |left: i64, right: i64| {
        match operator {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left.checked_div(right),
            _ => left.checked_rem(right),
        }
        .ok_or_else(|| if right == 0 { Mistake::new(at, "divides by zero") } else { too_large(at) })
    };
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => whole(*left, *right).map(Value::Int),
        (Value::Duration(left), Value::Duration(right)) if operator.is_sum() => {
            whole(*left, *right).map(Value::Duration)
        }
        (Value::Timestamp(left), Value::Timestamp(right)) if operator == Operator::Subtract => {
            whole(*left, *right).map(Value::Duration)
        }
        (Value::Timestamp(left), Value::Duration(right)) if operator == Operator::Subtract => {
            whole(*left, *right).map(Value::Timestamp)
        }
        _ => {
            let (Some(ours), Some(theirs)) = (number(left), number(right)) else {
                return Err(no_meaning(at, operator, left, right));
            };
            let value = match operator {
                Operator::Add => ours + theirs,
                Operator::Subtract => ours - theirs,
                Operator::Multiply => ours * theirs,
                Operator::Divide => ours / theirs,
                _ => return Err(no_meaning(at, operator, left, right)),
            };
            Ok(Value::Double(value))
        }
    }
}

impl Operator {
    fn is_sum(self) -> bool {
        matches!(self, Self::Add | Self::Subtract)
    }
}

fn no_meaning(at: usize, operator: Operator, left: &Value<'_>, right: &Value<'_>) -> Mistake {
    let message = format!("{} {} {} has no meaning", left.type_name(), operator.as_str(), right.type_name());
    Mistake::new(at, message)
}

/// A number that cannot be kept.
pub fn too_large(at: usize) -> Mistake {
    Mistake::new(at, "the result is too large to be kept")
}

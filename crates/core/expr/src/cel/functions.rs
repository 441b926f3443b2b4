//! The functions of expressions.
//!
//! | function | gives |
//! |---|---|
//! | `size(x)`, `x.size()` | characters, elements or entries |
//! | `a.contains(b)`, `a.startsWith(b)`, `a.endsWith(b)`, `a.matches(pattern)`, `matches(a, pattern)` | bool |
//! | `a.lowerAscii()`, `a.upperAscii()`, `a.trim()`, `a.replace(b, c)` | string |
//! | `a.split(b)`, `list.join(b)`, `list.join()` | list, string |
//! | `string(x)`, `int(x)`, `uint(x)`, `double(x)`, `bool(x)`, `dyn(x)` | the same in another type |
//! | `timestamp(text)`, `duration(text)` | an instant, a length of time |

use std::sync::Arc;

use regex::RegexBuilder;

use super::Mistake;
use super::check::Type;
use super::meter::{Meter, VALUE_BYTES};
use super::operators::{count, elements, text_of, too_large};
use super::syntax::Call;
use super::value::Value;

/// Memory a pattern may take, in bytes.
const PATTERN_SIZE: usize = 256 * 1024;

/// What a function takes and gives.
pub(super) struct Function {
    name: &'static str,
    /// True for `a.f(b)`.
    is_method: bool,
    /// Types of its arguments; the receiver is the first.
    pub takes: &'static [Type],
    /// Arguments it needs at least.
    pub least: usize,
    /// Type of its value.
    pub gives: Type,
}

const fn function(name: &'static str, is_method: bool, takes: &'static [Type], gives: Type) -> Function {
    Function { name, is_method, takes, least: takes.len(), gives }
}

const FUNCTIONS: &[Function] = &[
    function("size", false, &[Type::Any], Type::Int),
    function("size", true, &[Type::Any], Type::Int),
    function("contains", true, &[Type::Text, Type::Text], Type::Bool),
    function("startsWith", true, &[Type::Text, Type::Text], Type::Bool),
    function("endsWith", true, &[Type::Text, Type::Text], Type::Bool),
    function("matches", true, &[Type::Text, Type::Text], Type::Bool),
    function("matches", false, &[Type::Text, Type::Text], Type::Bool),
    function("lowerAscii", true, &[Type::Text], Type::Text),
    function("upperAscii", true, &[Type::Text], Type::Text),
    function("trim", true, &[Type::Text], Type::Text),
    function("replace", true, &[Type::Text, Type::Text, Type::Text], Type::Text),
    function("split", true, &[Type::Text, Type::Text], Type::List),
    Function { least: 1, ..function("join", true, &[Type::List, Type::Text], Type::Text) },
    function("string", false, &[Type::Any], Type::Text),
    function("int", false, &[Type::Any], Type::Int),
    function("uint", false, &[Type::Any], Type::Int),
    function("double", false, &[Type::Any], Type::Double),
    function("bool", false, &[Type::Any], Type::Bool),
    function("dyn", false, &[Type::Any], Type::Any),
    function("timestamp", false, &[Type::Any], Type::Timestamp),
    function("duration", false, &[Type::Any], Type::Duration),
];

/// The function of a name.
pub(super) fn find(name: &str, is_method: bool) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name && function.is_method == is_method)
}

/// All names.
pub(super) fn names(is_method: bool) -> Vec<&'static str> {
    FUNCTIONS
        .iter()
        .filter(|function| function.is_method == is_method)
        .map(|function| function.name)
        .collect()
}

/// The value of a call.
pub(super) fn call<'a>(
    meter: &Meter<'_>,
    at: usize,
    call: &Call,
    arguments: &[Value<'a>],
) -> Result<Value<'a>, Mistake> {
    let text = |place: usize| -> Result<&str, Mistake> {
        let text = text_of(at, arguments.get(place).unwrap_or(&Value::Null))?;
        meter.read(at, text.len())?;
        Ok(text)
    };
    let made = |text: &str| -> Result<Value<'a>, Mistake> {
        meter.make(at, text.len())?;
        Ok(Value::text(text))
    };
    let first = arguments.first().unwrap_or(&Value::Null);
    Ok(match call.name.as_str() {
        "size" => Value::Int(i64::try_from(size(meter, at, first)?).unwrap_or(i64::MAX)),
        "contains" => Value::Bool(text(0)?.contains(text(1)?)),
        "startsWith" => Value::Bool(text(0)?.starts_with(text(1)?)),
        "endsWith" => Value::Bool(text(0)?.ends_with(text(1)?)),
        "matches" => Value::Bool(matches(meter, at, call, text(0)?, text(1)?)?),
        "lowerAscii" => made(&text(0)?.to_ascii_lowercase())?,
        "upperAscii" => made(&text(0)?.to_ascii_uppercase())?,
        "trim" => made(text(0)?.trim())?,
        "replace" => replace(meter, at, text(0)?, text(1)?, text(2)?)?,
        "split" => split(meter, at, text(0)?, text(1)?)?,
        "join" => join(meter, at, first, if arguments.len() > 1 { text(1)? } else { "" })?,
        "string" => match first {
            Value::Text(_) => first.clone(),
            other => Value::text(other.to_text(meter, at)?),
        },
        "int" | "uint" => Value::Int(int(meter, at, first)?),
        "double" => Value::Double(double(meter, at, first)?),
        "bool" => match first {
            Value::Bool(value) => Value::Bool(*value),
            Value::Text(text) if matches!(&**text, "true" | "True" | "1") => Value::Bool(true),
            Value::Text(text) if matches!(&**text, "false" | "False" | "0") => Value::Bool(false),
            other => return Err(cannot_be(at, other, "bool")),
        },
        "timestamp" => timestamp(meter, at, first)?,
        "duration" => duration(meter, at, first)?,
        // `dyn`, and nothing else gets through the check.
        _ => first.clone(),
    })
}

fn size(meter: &Meter<'_>, at: usize, value: &Value<'_>) -> Result<usize, Mistake> {
    let Value::Text(text) = value else { return count(at, value) };
    meter.read(at, text.len())?;
    Ok(text.chars().count())
}

fn matches(meter: &Meter<'_>, at: usize, call: &Call, text: &str, pattern: &str) -> Result<bool, Mistake> {
    // Linear in the text, with the size of the pattern as its factor.
    meter.take(at, text.len().saturating_mul(pattern.len() / 16 + 1) / 16)?;
    if let Some(pattern) = &call.pattern {
        return Ok(pattern.is_match(text));
    }
    // Building one is much more work than using it.
    meter.make(at, PATTERN_SIZE)?;
    let built = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE).build();
    let built = built.map_err(|error| Mistake::new(at, format!("the pattern cannot be read: {error}")))?;
    Ok(built.is_match(text))
}

fn replace<'a>(meter: &Meter<'_>, at: usize, text: &str, what: &str, by: &str) -> Result<Value<'a>, Mistake> {
    let places = text.matches(what).count();
    meter.make(at, text.len().saturating_add(places.saturating_mul(by.len())))?;
    Ok(Value::text(text.replace(what, by)))
}

fn split<'a>(meter: &Meter<'_>, at: usize, whole: &str, between: &str) -> Result<Value<'a>, Mistake> {
    let places = whole.matches(between).count();
    meter.make(at, whole.len() + places.saturating_add(1).saturating_mul(2 * VALUE_BYTES))?;
    let parts: Vec<_> = if between.is_empty() {
        whole.chars().map(|character| Value::text(character.encode_utf8(&mut [0; 4]).to_owned())).collect()
    } else {
        whole.split(between).map(Value::text).collect()
    };
    Ok(Value::List(Arc::new(parts)))
}

fn join<'a>(meter: &Meter<'_>, at: usize, list: &Value<'_>, between: &str) -> Result<Value<'a>, Mistake> {
    let parts = elements(meter, at, list)?;
    let parts = parts.iter().map(|part| text_of(at, part)).collect::<Result<Vec<_>, _>>()?;
    let bytes = parts.iter().map(|part| part.len() + between.len()).fold(0, usize::saturating_add);
    meter.make(at, bytes)?;
    Ok(Value::text(parts.join(between)))
}

fn cannot_be(at: usize, value: &Value<'_>, what: &str) -> Mistake {
    Mistake::new(at, format!("this {} cannot be read as {what}", value.type_name()))
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
fn int(meter: &Meter<'_>, at: usize, value: &Value<'_>) -> Result<i64, Mistake> {
    const LIMIT: f64 = 9.2e18;
    match value {
        Value::Int(value) => Ok(*value),
        Value::Double(value) if value.abs() < LIMIT => Ok(*value as i64),
        Value::Double(_) => Err(too_large(at)),
        Value::Text(text) => {
            meter.read(at, text.len())?;
            text.parse().map_err(|_| cannot_be(at, value, "int"))
        }
        Value::Timestamp(micros) => Ok(micros.div_euclid(1_000_000)),
        other => Err(cannot_be(at, other, "int")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a double is as exact as it is")]
fn double(meter: &Meter<'_>, at: usize, value: &Value<'_>) -> Result<f64, Mistake> {
    match value {
        Value::Int(value) => Ok(*value as f64),
        Value::Double(value) => Ok(*value),
        Value::Text(text) => {
            meter.read(at, text.len())?;
            text.parse().map_err(|_| cannot_be(at, value, "double"))
        }
        other => Err(cannot_be(at, other, "double")),
    }
}

fn timestamp<'a>(meter: &Meter<'_>, at: usize, value: &Value<'a>) -> Result<Value<'a>, Mistake> {
    match value {
        Value::Timestamp(_) => Ok(value.clone()),
        Value::Int(second) => {
            second.checked_mul(1_000_000).map(Value::Timestamp).ok_or_else(|| too_large(at))
        }
        Value::Text(text) => {
            meter.read(at, text.len())?;
            let instant: jiff::Timestamp = text.parse().map_err(|_| cannot_be(at, value, "timestamp"))?;
            Ok(Value::Timestamp(instant.as_microsecond()))
        }
        other => Err(cannot_be(at, other, "timestamp")),
    }
}

fn duration<'a>(meter: &Meter<'_>, at: usize, value: &Value<'a>) -> Result<Value<'a>, Mistake> {
    match value {
        Value::Duration(_) => Ok(value.clone()),
        Value::Int(second) => second.checked_mul(1_000_000).map(Value::Duration).ok_or_else(|| too_large(at)),
        Value::Text(text) => {
            meter.read(at, text.len())?;
            let length: jiff::SignedDuration = text.parse().map_err(|_| cannot_be(at, value, "duration"))?;
            let micros = i64::try_from(length.as_micros()).map_err(|_| too_large(at))?;
            Ok(Value::Duration(micros))
        }
        other => Err(cannot_be(at, other, "duration")),
    }
}

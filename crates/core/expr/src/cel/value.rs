//! Values of expressions. Documents that are handed in are not copied: their parts are looked at where they are.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Map, Number, Value as Json};

use super::Mistake;
use super::meter::{ENTRY_BYTES, Meter, VALUE_BYTES};

/// Lists and maps one inside the other that a value may have when it becomes a document.
const MAX_DEPTH: usize = 64;

/// A text, which is cheap to hand on.
#[derive(Debug, Clone)]
pub enum Text<'a> {
    /// One of a document.
    Of(&'a str),
    /// One that an expression has or made.
    Made(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Of(text) => text,
            Self::Made(text) => text,
        }
    }
}

/// A value.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Double(f64),
    /// A text.
    Text(Text<'a>),
    /// A list that an expression made.
    List(Arc<Vec<Value<'a>>>),
    /// A map that an expression made.
    Map(Arc<BTreeMap<Arc<str>, Value<'a>>>),
    /// A list or a map of a document.
    Document(&'a Json),
    /// An instant, in microseconds since 1970.
    Timestamp(i64),
    /// A length of time, in microseconds.
    Duration(i64),
}

impl<'a> Value<'a> {
    /// A document, or a part of one.
    pub fn of_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => of_number(number),
            Json::String(text) => Self::Text(Text::Of(text)),
            Json::Array(_) | Json::Object(_) => Self::Document(json),
        }
    }

    /// A text that was made.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    /// What it is called in messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) | Self::Document(Json::Array(_)) => "list",
            Self::Map(_) | Self::Document(_) => "map",
            Self::Timestamp(_) => "timestamp",
            Self::Duration(_) => "duration",
        }
    }

    /// As a document; instants and lengths of time become text.
    pub(super) fn to_json(&self, meter: &Meter<'_>, at: usize) -> Result<Json, Mistake> {
        self.copy(meter, at, 0)
    }

    /// As a text: of a string itself, of anything else what it looks like.
    pub(super) fn to_text(&self, meter: &Meter<'_>, at: usize) -> Result<String, Mistake> {
        let text = match self {
            Self::Text(text) => {
                meter.make(at, text.len())?;
                return Ok(text.to_string());
            }
            Self::Double(value) => value.to_string(),
            Self::Timestamp(micros) => jiff::Timestamp::from_microsecond(*micros)
                .map_or_else(|_| micros.to_string(), |instant| instant.to_string()),
            Self::Duration(micros) => {
                let sign = if *micros < 0 { "-" } else { "" };
                let (whole, part) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
                let part = format!("{part:06}");
                let part = part.trim_end_matches('0');
                if part.is_empty() { format!("{sign}{whole}s") } else { format!("{sign}{whole}.{part}s") }
            }
            other => other.to_json(meter, at)?.to_string(),
        };
        meter.make(at, text.len())?;
        Ok(text)
    }

    fn copy(&self, meter: &Meter<'_>, at: usize, depth: usize) -> Result<Json, Mistake> {
        let part = |value: &Self| value.copy(meter, at, depth + 1);
        Ok(match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Double(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
            Self::Text(_) | Self::Timestamp(_) | Self::Duration(_) => Json::String(self.to_text(meter, at)?),
            Self::List(elements) => {
                weigh_list(meter, at, elements.len(), depth)?;
                Json::Array(elements.iter().map(part).collect::<Result<_, _>>()?)
            }
            Self::Map(entries) => {
                weigh_map(meter, at, entries.keys().map(|key| key.len()), depth)?;
                let entries = entries.iter().map(|(key, value)| Ok((key.to_string(), part(value)?)));
                Json::Object(entries.collect::<Result<Map<_, _>, Mistake>>()?)
            }
            Self::Document(json) => {
                weigh(json, meter, at, depth)?;
                (*json).clone()
            }
        })
    }
}

/// Takes what a copy of a document costs.
fn weigh(json: &Json, meter: &Meter<'_>, at: usize, depth: usize) -> Result<(), Mistake> {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
        Json::String(text) => meter.make(at, text.len()),
        Json::Array(elements) => {
            weigh_list(meter, at, elements.len(), depth)?;
            elements.iter().try_for_each(|element| weigh(element, meter, at, depth + 1))
        }
        Json::Object(entries) => {
            weigh_map(meter, at, entries.keys().map(String::len), depth)?;
            entries.values().try_for_each(|value| weigh(value, meter, at, depth + 1))
        }
    }
}

fn weigh_list(meter: &Meter<'_>, at: usize, elements: usize, depth: usize) -> Result<(), Mistake> {
    refuse_depth(at, depth)?;
    meter.make(at, elements.saturating_mul(VALUE_BYTES))
}

fn weigh_map(
    meter: &Meter<'_>,
    at: usize,
    mut keys: impl Iterator<Item = usize>,
    depth: usize,
) -> Result<(), Mistake> {
    refuse_depth(at, depth)?;
    keys.try_for_each(|key| meter.make(at, ENTRY_BYTES + key))
}

fn refuse_depth(at: usize, depth: usize) -> Result<(), Mistake> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(Mistake::new(at, format!("has more than {MAX_DEPTH} lists and maps one inside the other")))
}

fn of_number(number: &Number) -> Value<'static> {
    match (number.as_i64(), number.as_f64()) {
        (Some(value), _) => Value::Int(value),
        (None, Some(value)) => Value::Double(value),
        (None, None) => Value::Null,
    }
}

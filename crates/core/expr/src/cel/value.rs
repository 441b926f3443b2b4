//! Values of expressions. Documents that are handed in are not copied: their parts are looked at where they are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Number, Value as Json};

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
    Text(Cow<'a, str>),
    /// A list that an expression made.
    List(Arc<Vec<Value<'a>>>),
    /// A map that an expression made.
    Map(Arc<BTreeMap<String, Value<'a>>>),
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
            Json::String(text) => Self::Text(Cow::Borrowed(text)),
            Json::Array(_) | Json::Object(_) => Self::Document(json),
        }
    }

    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
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
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Double(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
            Self::Text(text) => Json::String(text.clone().into_owned()),
            Self::List(elements) => elements.iter().map(Self::to_json).collect(),
            Self::Map(entries) => Json::Object(
                entries.iter().map(|(key, value)| (key.clone(), value.to_json())).collect::<Map<_, _>>(),
            ),
            Self::Document(json) => (*json).clone(),
            Self::Timestamp(_) | Self::Duration(_) => Json::String(self.to_text()),
        }
    }

    /// As a text: of a string itself, of anything else what it looks like.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone().into_owned(),
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
            other => other.to_json().to_string(),
        }
    }
}

fn of_number(number: &Number) -> Value<'static> {
    match (number.as_i64(), number.as_f64()) {
        (Some(value), _) => Value::Int(value),
        (None, Some(value)) => Value::Double(value),
        (None, None) => Value::Null,
    }
}

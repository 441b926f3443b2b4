//! One node of a schema, as it is used.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Number, Value};

use crate::formats::Format;

/// The type a value must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

/// What is said of one value. Every rule is for values of one type and leaves others alone, as in JSON Schema.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// `None` takes every type.
    pub(crate) wanted: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    /// The only values there are, unless empty.
    pub(crate) words: Vec<Value>,
    pub(crate) object: ObjectRules,
    pub(crate) list: ListRules,
    pub(crate) text: TextRules,
    pub(crate) number: NumberRules,
    pub(crate) branches: Branches,
}

/// What becomes of fields that have no name in the schema.
#[derive(Debug, Clone, Default)]
pub(crate) enum Rest {
    /// They stay as they are.
    #[default]
    Free,
    /// They are unknown.
    Unknown,
    /// They are all alike.
    Each(Box<Node>),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectRules {
    pub(crate) fields: BTreeMap<String, Node>,
    pub(crate) rest: Rest,
    pub(crate) required: Vec<String>,
    pub(crate) least: Option<usize>,
    pub(crate) most: Option<usize>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ListRules {
    pub(crate) item: Option<Box<Node>>,
    pub(crate) least: Option<usize>,
    pub(crate) most: Option<usize>,
    pub(crate) unique: Unique,
}

/// What may not be twice in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Unique {
    #[default]
    No,
    /// The same item.
    Items,
    /// The same values of these fields, which every item has.
    Keys(Vec<String>),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TextRules {
    /// In characters.
    pub(crate) least: Option<usize>,
    pub(crate) most: Option<usize>,
    pub(crate) pattern: Option<Regex>,
    pub(crate) format: Option<Format>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct NumberRules {
    pub(crate) least: Option<Limit>,
    pub(crate) most: Option<Limit>,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) format: Option<Format>,
}

/// An end of a range.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    pub(crate) number: Number,
    /// The number itself lies outside.
    pub(crate) exclusive: bool,
}

/// Alternatives. They say more about values, never which fields there are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Branches {
    pub(crate) all: Vec<Node>,
    pub(crate) any: Vec<Node>,
    pub(crate) one: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
}

//! Reading a schema: every key is known, of the right type, and within limits, or the schema is refused with the place.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value};
use thiserror::Error;

use crate::formats::Format;
use crate::node::{
    Branches, Limit, ListRules, Node, NumberRules, ObjectRules, Rest, TextRules, Type, Unique,
};
use crate::{check, fill, place};

/// Longest schema, as JSON.
pub const MAX_BYTES: usize = 128 * 1024;
/// Most schemas inside each other.
pub const MAX_DEPTH: usize = 32;
/// Most schemas in one.
pub const MAX_NODES: usize = 4096;
/// Longest pattern.
const MAX_PATTERN: usize = 1024;
/// Most memory of a compiled pattern.
const MAX_COMPILED: usize = 256 * 1024;

/// Keys that say something to people alone.
const ADVICE: [&str; 12] = [
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "example",
    "examples",
    "externalDocs",
    "deprecated",
    "readOnly",
    "writeOnly",
    "x-kubernetes-map-type",
];
/// Keys that are read below.
const RULES: [&str; 31] = [
    "type",
    "nullable",
    "default",
    "enum",
    "const",
    "format",
    "properties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
];

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct SchemaError {
    /// Where in the schema, for example `properties.region.minimum`; empty for all of it.
    pub at: String,
    /// What is wrong there.
    pub why: String,
}

type Schema = Map<String, Value>;

/// Reads one schema.
pub(crate) struct Reader {
    nodes: usize,
}

impl Reader {
    /// Reads a schema that describes an object.
    pub(crate) fn read(schema: &Value) -> Result<Node, SchemaError> {
        let bytes = schema.to_string().len();
        if bytes > MAX_BYTES {
            return Err(refuse("", format!("a schema may be {MAX_BYTES} bytes long, this one has {bytes}")));
        }
        let mut node = Self { nodes: 0 }.node(schema, "", MAX_DEPTH)?;
        match node.wanted {
            None | Some(Type::Object) => node.wanted = Some(Type::Object),
            Some(_) => return Err(refuse("type", "must be object: a spec is one")),
        }
        default_fits(&mut node, "")?;
        if node.nullable {
            return Err(refuse("nullable", "a spec cannot be null"));
        }
        Ok(node)
    }

    fn node(&mut self, schema: &Value, at: &str, levels: usize) -> Result<Node, SchemaError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(refuse(at, format!("a schema may have {MAX_NODES} parts")));
        }
        let levels = levels
            .checked_sub(1)
            .ok_or_else(|| refuse(at, format!("a schema may have {MAX_DEPTH} levels inside each other")))?;
        let schema = match schema {
            Value::Bool(true) => &Schema::new(),
            Value::Object(schema) => schema,
            _ => return Err(refuse(at, "a schema is an object")),
        };
        known_keys(schema, at)?;
        let (wanted, nullable) = read_type(schema, at)?;
        let mut node = Node {
            wanted: wanted.or_else(|| names_fields(schema).then_some(Type::Object)),
            nullable,
            default: schema.get("default").cloned(),
            words: read_words(schema, at)?,
            object: self.object(schema, at, levels)?,
            list: self.list(schema, at, levels)?,
            text: read_text(schema, at)?,
            number: read_number(schema, at)?,
            branches: self.branches(schema, at, levels)?,
        };
        read_format(schema, at, &mut node)?;
        branches_declare_nothing(&node, at)?;
        default_fits(&mut node, at)?;
        Ok(node)
    }

    fn object(&mut self, schema: &Schema, at: &str, levels: usize) -> Result<ObjectRules, SchemaError> {
        let mut rules = ObjectRules {
            required: texts(schema, "required", at)?,
            least: count(schema, "minProperties", at)?,
            most: count(schema, "maxProperties", at)?,
            ..ObjectRules::default()
        };
        if let Some(found) = schema.get("properties") {
            let below = place::field(at, "properties");
            let fields = found.as_object().ok_or_else(|| refuse(&below, "must be an object of schemas"))?;
            for (name, field) in fields {
                let field = self.node(field, &place::field(&below, name), levels)?;
                rules.fields.insert(name.clone(), field);
            }
        }
        let free = flag(schema, "x-kubernetes-preserve-unknown-fields", at)?;
        rules.rest = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) if free => {
                let at = place::field(at, "additionalProperties");
                return Err(refuse(&at, "cannot be false where unknown fields are preserved"));
            }
            Some(Value::Bool(false)) => Rest::Unknown,
            Some(Value::Bool(true)) => Rest::Free,
            Some(each) => {
                Rest::Each(Box::new(self.node(each, &place::field(at, "additionalProperties"), levels)?))
            }
            // An object that names no fields says nothing about them.
            None if free || rules.fields.is_empty() => Rest::Free,
            None => Rest::Unknown,
        };
        Ok(rules)
    }

    fn list(&mut self, schema: &Schema, at: &str, levels: usize) -> Result<ListRules, SchemaError> {
        let item = schema.get("items").map(|items| self.node(items, &place::field(at, "items"), levels));
        let keys = texts(schema, "x-kubernetes-list-map-keys", at)?;
        let list_type = "x-kubernetes-list-type";
        let unique = match schema.get(list_type).map(Value::as_str) {
            None | Some(Some("atomic")) if flag(schema, "uniqueItems", at)? => Unique::Items,
            None | Some(Some("atomic")) => Unique::No,
            Some(Some("set")) => Unique::Items,
            Some(Some("map")) if keys.is_empty() => {
                let at = place::field(at, "x-kubernetes-list-map-keys");
                return Err(refuse(&at, "a list of type map needs the names of its keys"));
            }
            Some(Some("map")) => Unique::Keys(keys),
            Some(_) => return Err(refuse(&place::field(at, list_type), "must be atomic, set or map")),
        };
        Ok(ListRules {
            item: item.transpose()?.map(Box::new),
            least: count(schema, "minItems", at)?,
            most: count(schema, "maxItems", at)?,
            unique,
        })
    }

    fn branches(&mut self, schema: &Schema, at: &str, levels: usize) -> Result<Branches, SchemaError> {
        let mut several = |key: &str| {
            let at = place::field(at, key);
            match schema.get(key) {
                None => Ok(Vec::new()),
                Some(Value::Array(branches)) if !branches.is_empty() => branches
                    .iter()
                    .enumerate()
                    .map(|(index, branch)| self.node(branch, &place::item(&at, index), levels))
                    .collect(),
                Some(_) => Err(refuse(&at, "must be a list of schemas")),
            }
        };
        let (all, any, one) = (several("allOf")?, several("anyOf")?, several("oneOf")?);
        let not = schema.get("not").map(|not| self.node(not, &place::field(at, "not"), levels));
        Ok(Branches { all, any, one, not: not.transpose()?.map(Box::new) })
    }
}

fn refuse(at: &str, why: impl Into<String>) -> SchemaError {
    SchemaError { at: at.to_owned(), why: why.into() }
}

/// What has fields is an object, even if it does not say so.
pub(crate) fn names_fields(schema: &Schema) -> bool {
    ["properties", "additionalProperties"].iter().any(|key| schema.contains_key(*key))
}

fn known_keys(schema: &Schema, at: &str) -> Result<(), SchemaError> {
    let unknown = schema.keys().find(|key| !RULES.contains(&key.as_str()) && !ADVICE.contains(&key.as_str()));
    let Some(unknown) = unknown else { return Ok(()) };
    let why = match unknown.as_str() {
        "$ref" | "$defs" | "definitions" | "$anchor" => "references are not followed; write the schema out",
        _ => "is not a key of a structural schema; remove it",
    };
    Err(refuse(&place::field(at, unknown), why))
}

fn read_type(schema: &Schema, at: &str) -> Result<(Option<Type>, bool), SchemaError> {
    let nullable = flag(schema, "nullable", at)?;
    let either = flag(schema, "x-kubernetes-int-or-string", at)?;
    let field = place::field(at, "type");
    let (name, or_null) = match schema.get("type") {
        None => (None, false),
        Some(Value::String(name)) => (Some(name.as_str()), false),
        Some(Value::Array(names)) => {
            let mut real = names.iter().filter(|name| *name != "null").map(Value::as_str);
            match (real.next(), real.next()) {
                (Some(name @ Some(_)), None) => (name, names.len() > 1),
                _ => return Err(refuse(&field, "must be one type, or one type and null")),
            }
        }
        Some(_) => return Err(refuse(&field, "must be the name of a type")),
    };
    let wanted = match name {
        _ if either => Some(Type::IntOrString),
        None => None,
        Some("object") => Some(Type::Object),
        Some("array") => Some(Type::Array),
        Some("string") => Some(Type::String),
        Some("integer") => Some(Type::Integer),
        Some("number") => Some(Type::Number),
        Some("boolean") => Some(Type::Boolean),
        Some(other) => {
            let why =
                format!("{other:?} is not a type; use object, array, string, integer, number or boolean");
            return Err(refuse(&field, why));
        }
    };
    Ok((wanted, nullable || or_null))
}

fn read_words(schema: &Schema, at: &str) -> Result<Vec<Value>, SchemaError> {
    let words = match schema.get("enum") {
        None => Vec::new(),
        Some(Value::Array(words)) if !words.is_empty() => words.clone(),
        Some(_) => return Err(refuse(&place::field(at, "enum"), "must be a list of values")),
    };
    Ok(schema.get("const").map_or(words, |only| vec![only.clone()]))
}

fn read_text(schema: &Schema, at: &str) -> Result<TextRules, SchemaError> {
    Ok(TextRules {
        least: count(schema, "minLength", at)?,
        most: count(schema, "maxLength", at)?,
        pattern: schema.get("pattern").map(|found| pattern(found, at)).transpose()?,
        format: None,
    })
}

fn pattern(found: &Value, at: &str) -> Result<Regex, SchemaError> {
    let at = place::field(at, "pattern");
    let text = found.as_str().ok_or_else(|| refuse(&at, "must be a regular expression"))?;
    if text.len() > MAX_PATTERN {
        return Err(refuse(&at, format!("may be {MAX_PATTERN} bytes long")));
    }
    let compiled = RegexBuilder::new(text).size_limit(MAX_COMPILED).nest_limit(64).build();
    compiled.map_err(|error| {
        let why = error.to_string();
        refuse(&at, format!("is not a regular expression: {}", why.lines().last().unwrap_or_default()))
    })
}

fn read_number(schema: &Schema, at: &str) -> Result<NumberRules, SchemaError> {
    let multiple_of = number(schema, "multipleOf", at)?;
    if multiple_of.as_ref().and_then(Number::as_f64).is_some_and(|number| number <= 0.0) {
        return Err(refuse(&place::field(at, "multipleOf"), "must be greater than 0"));
    }
    Ok(NumberRules {
        least: limit(schema, "minimum", "exclusiveMinimum", at)?,
        most: limit(schema, "maximum", "exclusiveMaximum", at)?,
        multiple_of,
        format: None,
    })
}

/// An end of a range, which excludes its number as `true` beside it (OpenAPI 3.0) or in its place (JSON Schema).
fn limit(schema: &Schema, name: &str, exclusive: &str, at: &str) -> Result<Option<Limit>, SchemaError> {
    let inclusive = number(schema, name, at)?;
    match schema.get(exclusive) {
        None | Some(Value::Bool(false)) => Ok(inclusive.map(|number| Limit { number, exclusive: false })),
        Some(Value::Bool(true)) => {
            let number =
                inclusive.ok_or_else(|| refuse(&place::field(at, exclusive), format!("needs {name}")))?;
            Ok(Some(Limit { number, exclusive: true }))
        }
        Some(_) if inclusive.is_some() => {
            Err(refuse(&place::field(at, exclusive), format!("cannot be given together with {name}")))
        }
        Some(_) => Ok(number(schema, exclusive, at)?.map(|number| Limit { number, exclusive: true })),
    }
}

fn read_format(schema: &Schema, at: &str, node: &mut Node) -> Result<(), SchemaError> {
    let Some(found) = schema.get("format") else { return Ok(()) };
    let name = found.as_str().ok_or_else(|| refuse(&place::field(at, "format"), "must be a name"))?;
    node.text.format = Format::named(name);
    node.number.format = node.text.format;
    Ok(())
}

/// Which fields there are is said outside: what only a branch knows would be dropped as unknown.
fn branches_declare_nothing(node: &Node, at: &str) -> Result<(), SchemaError> {
    let Branches { all, any, one, not } = &node.branches;
    for branch in all.iter().chain(any).chain(one).chain(not.as_deref()) {
        let names: BTreeSet<&String> = branch.object.fields.keys().chain(&branch.object.required).collect();
        let outside = |name: &String| {
            node.object.fields.contains_key(name) || !matches!(node.object.rest, Rest::Unknown)
        };
        if let Some(name) = names.into_iter().find(|name| !outside(name)) {
            let why = format!("a branch names {name:?}, which must be among the properties outside it too");
            return Err(refuse(at, why));
        }
        if branch.default.is_some() {
            return Err(refuse(at, "a branch cannot have a default"));
        }
    }
    Ok(())
}

/// A default is what a user could have written.
fn default_fits(node: &mut Node, at: &str) -> Result<(), SchemaError> {
    let Some(mut default) = node.default.take() else { return Ok(()) };
    fill::fill(node, &mut default);
    let at = place::field(at, "default");
    let mut found = check::Found::new(1);
    check::check(node, &default, &at, &mut found);
    if let Some(violation) = found.into_violations().into_iter().next() {
        return Err(refuse(&violation.at, format!("does not fit its own schema: {}", violation.problem)));
    }
    node.default = Some(default);
    Ok(())
}

fn flag(schema: &Schema, name: &str, at: &str) -> Result<bool, SchemaError> {
    match schema.get(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(refuse(&place::field(at, name), "must be true or false")),
    }
}

fn count(schema: &Schema, name: &str, at: &str) -> Result<Option<usize>, SchemaError> {
    let Some(found) = schema.get(name) else { return Ok(None) };
    let number = found.as_u64().and_then(|number| usize::try_from(number).ok());
    number
        .map(Some)
        .ok_or_else(|| refuse(&place::field(at, name), "must be a whole number that is not negative"))
}

fn number(schema: &Schema, name: &str, at: &str) -> Result<Option<Number>, SchemaError> {
    match schema.get(name) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number.clone())),
        Some(_) => Err(refuse(&place::field(at, name), "must be a number")),
    }
}

fn texts(schema: &Schema, name: &str, at: &str) -> Result<Vec<String>, SchemaError> {
    let Some(found) = schema.get(name) else { return Ok(Vec::new()) };
    let read = found.as_array().map(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
    read.flatten().ok_or_else(|| refuse(&place::field(at, name), "must be a list of names"))
}

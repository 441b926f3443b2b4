//! What is wrong with a value.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use crate::node::{Limit, ListRules, Node, NumberRules, ObjectRules, Rest, TextRules, Type, Unique};
use crate::place;
use crate::violation::{Problem, Violation};

/// Longest piece of a value that is shown.
const SHOWN: usize = 64;

/// Violations so far, as many as help.
pub(crate) struct Found {
    violations: Vec<Violation>,
    most: usize,
}

impl Found {
    pub(crate) fn new(most: usize) -> Self {
        Self { violations: Vec::new(), most }
    }

    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    fn is_full(&self) -> bool {
        self.violations.len() >= self.most
    }

    fn missing(&mut self, at: String) {
        self.add(Violation { at, problem: Problem::Missing });
    }

    fn wrong(&mut self, at: &str, value: &Value, why: impl Into<String>) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(_) => "a list".to_owned(),
            Value::Object(_) => "an object".to_owned(),
            other => other.to_string(),
        };
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        self.add(Violation { at: at.to_owned(), problem: Problem::Wrong { value: shown, why: why.into() } });
    }

    fn add(&mut self, violation: Violation) {
        if !self.is_full() {
            self.violations.push(violation);
        }
    }
}

/// Checks a value and what is below it.
pub(crate) fn check(node: &Node, value: &Value, at: &str, found: &mut Found) {
    if found.is_full() || (value.is_null() && node.nullable) {
        return;
    }
    if let Some(wanted) = node.wanted.filter(|wanted| !has_type(value, *wanted)) {
        return found.wrong(at, value, format!("must be {}", noun(wanted)));
    }
    if !node.words.is_empty() && !node.words.contains(value) {
        let words: Vec<_> = node.words.iter().map(Value::to_string).collect();
        found.wrong(at, value, format!("must be one of {}", words.join(", ")));
    }
    match value {
        Value::Object(map) => check_object(&node.object, value, map, at, found),
        Value::Array(items) => check_list(&node.list, value, items, at, found),
        Value::String(text) => check_text(&node.text, value, text, at, found),
        Value::Number(number) => check_number(&node.number, value, number, at, found),
        Value::Null | Value::Bool(_) => {}
    }
    check_branches(node, value, at, found);
}

fn has_type(value: &Value, wanted: Type) -> bool {
    match wanted {
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => is_whole(value),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
        Type::IntOrString => value.is_string() || is_whole(value),
    }
}

/// `1.0` is a whole number too.
fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn noun(wanted: Type) -> &'static str {
    match wanted {
        Type::Object => "an object",
        Type::Array => "a list",
        Type::String => "text",
        Type::Integer => "a whole number",
        Type::Number => "a number",
        Type::Boolean => "true or false",
        Type::IntOrString => "a whole number or text",
    }
}

fn check_object(rules: &ObjectRules, value: &Value, map: &Map<String, Value>, at: &str, found: &mut Found) {
    for name in rules.required.iter().filter(|name| !map.contains_key(*name)) {
        found.missing(place::field(at, name));
    }
    check_size(map.len(), rules.least, rules.most, "fields", value, at, found);
    for (name, value) in map {
        let below = match (rules.fields.get(name), &rules.rest) {
            (Some(field), _) => field,
            (None, Rest::Each(each)) => each,
            (None, Rest::Free | Rest::Unknown) => continue,
        };
        check(below, value, &place::field(at, name), found);
    }
}

fn check_list(rules: &ListRules, value: &Value, items: &[Value], at: &str, found: &mut Found) {
    check_size(items.len(), rules.least, rules.most, "items", value, at, found);
    if let Some(node) = &rules.item {
        for (index, item) in items.iter().enumerate() {
            check(node, item, &place::item(at, index), found);
        }
    }
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = || place::item(at, index);
        let identity = match &rules.unique {
            Unique::No => return,
            Unique::Items => item.to_string(),
            Unique::Keys(keys) => match keys.iter().find(|key| item.get(*key).is_none()) {
                Some(key) => {
                    found.missing(place::field(&at(), key));
                    continue;
                }
                None => keys.iter().map(|key| item[key].to_string()).collect::<Vec<_>>().join("\n"),
            },
        };
        if !seen.insert(identity) {
            let what =
                if let Unique::Keys(keys) = &rules.unique { keys.join(" and ") } else { "item".to_owned() };
            found.wrong(&at(), item, format!("there is one with the same {what} before it"));
        }
    }
}

fn check_text(rules: &TextRules, value: &Value, text: &str, at: &str, found: &mut Found) {
    if rules.least.is_some() || rules.most.is_some() {
        check_size(text.chars().count(), rules.least, rules.most, "characters", value, at, found);
    }
    if let Some(pattern) = rules.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        found.wrong(at, value, format!("must match {pattern}"));
    }
    if let Some(why) = rules.format.and_then(|format| format.refuse_text(text)) {
        found.wrong(at, value, why);
    }
}

fn check_size(
    size: usize,
    least: Option<usize>,
    most: Option<usize>,
    noun: &str,
    value: &Value,
    at: &str,
    found: &mut Found,
) {
    if let Some(least) = least.filter(|least| size < *least) {
        found.wrong(at, value, format!("must have at least {least} {noun}, has {size}"));
    }
    if let Some(most) = most.filter(|most| size > *most) {
        found.wrong(at, value, format!("must have at most {most} {noun}, has {size}"));
    }
}

fn check_number(rules: &NumberRules, value: &Value, number: &Number, at: &str, found: &mut Found) {
    let broken = |limit: &Option<Limit>, beyond: Ordering| {
        limit.clone().filter(|limit| {
            let order = compare(number, &limit.number);
            order == beyond || (limit.exclusive && order == Ordering::Equal)
        })
    };
    if let Some(Limit { number, exclusive }) = broken(&rules.least, Ordering::Less) {
        let words = if exclusive { "greater than" } else { "at least" };
        found.wrong(at, value, format!("must be {words} {number}"));
    }
    if let Some(Limit { number, exclusive }) = broken(&rules.most, Ordering::Greater) {
        let words = if exclusive { "less than" } else { "at most" };
        found.wrong(at, value, format!("must be {words} {number}"));
    }
    if let Some(step) = rules.multiple_of.as_ref().filter(|step| !is_multiple(number, step)) {
        found.wrong(at, value, format!("must be a multiple of {step}"));
    }
    if let Some(why) = rules.format.and_then(|format| format.refuse_number(number)) {
        found.wrong(at, value, why);
    }
}

/// Whole numbers exactly, others as floats.
fn compare(one: &Number, other: &Number) -> Ordering {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
    }
}

fn is_multiple(number: &Number, step: &Number) -> bool {
    match (number.as_i128(), step.as_i128()) {
        (Some(number), Some(step)) if step != 0 => number % step == 0,
        _ => {
            let (Some(number), Some(step)) = (number.as_f64(), step.as_f64()) else { return true };
            let times = number / step;
            (times - times.round()).abs() < 1e-9
        }
    }
}

fn check_branches(node: &Node, value: &Value, at: &str, found: &mut Found) {
    for branch in &node.branches.all {
        check(branch, value, at, found);
    }
    let fits = |branch: &Node| {
        let mut tried = Found::new(1);
        check(branch, value, at, &mut tried);
        tried.violations.is_empty()
    };
    if !node.branches.any.is_empty() && !node.branches.any.iter().any(fits) {
        found.wrong(at, value, "must fit at least one of the schemas in anyOf");
    }
    if !node.branches.one.is_empty() {
        let fitting = node.branches.one.iter().filter(|branch| fits(branch)).count();
        if fitting != 1 {
            found.wrong(at, value, format!("must fit exactly one of the schemas in oneOf, fits {fitting}"));
        }
    }
    if node.branches.not.as_deref().is_some_and(fits) {
        found.wrong(at, value, "must not fit the schema in not");
    }
}

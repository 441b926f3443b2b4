//! Selectors of labels, fields and tags, patterns of names, and macros.

use std::collections::BTreeMap;

use muster_expr::{NamePattern, Selector, Sequences};
use muster_types::label_selector::Test;
use muster_types::{FieldSelector, LabelSelector};

use crate::Target;

pub const LABELS: Target = Target {
    name: "label_selector",
    property: "what is written of a selector reads back as the same, and chooses the same labels",
    run: labels,
};
pub const FIELDS: Target = Target {
    name: "field_selector",
    property: "what is written of a selector reads back as the same, and chooses the same fields",
    run: fields,
};
pub const TAGS: Target = Target {
    name: "tag_selector",
    property: "what is written of a selector reads back as the same, and chooses the same tags",
    run: tags,
};
pub const NAMES: Target = Target {
    name: "name_pattern",
    property: "a name matches itself alone, a pattern matches whole names or none, and what is no macro stays as it is",
    run: names,
};

fn text(input: &[u8]) -> Option<&str> {
    str::from_utf8(input).ok()
}

fn labels(input: &[u8]) {
    let Some(Ok(selector)) = text(input).map(str::parse::<LabelSelector>) else { return };
    let written = selector.to_string();
    let read: LabelSelector = written.parse().unwrap_or_else(|error| panic!("{written:?}: {error}"));
    assert_eq!(read, selector, "{written:?}");
    assert_eq!(read.to_string(), written);
    // Labels that satisfy the first value of each requirement, and none at all.
    let mut labels = BTreeMap::new();
    for requirement in selector.requirements() {
        let value = match requirement.test() {
            Test::In(values) | Test::NotIn(values) => values[0].clone(),
            Test::GreaterThan(bound) | Test::LessThan(bound) => bound.to_string(),
            Test::Exists | Test::DoesNotExist => String::new(),
        };
        let alone = BTreeMap::from([(requirement.key().to_owned(), value.clone())]);
        let wanted = matches!(requirement.test(), Test::In(_) | Test::Exists);
        assert_eq!(
            requirement.test().holds(alone.get(requirement.key()).map(String::as_str)),
            wanted,
            "{requirement}"
        );
        labels.insert(requirement.key().to_owned(), value);
    }
    assert_eq!(read.matches(&labels), selector.matches(&labels));
    assert_eq!(read.matches(&BTreeMap::new()), selector.matches(&BTreeMap::new()));
    assert!(!selector.is_everything() || selector.matches(&labels));
}

fn fields(input: &[u8]) {
    let Some(Ok(selector)) = text(input).map(str::parse::<FieldSelector>) else { return };
    let written = selector.to_string();
    let read: FieldSelector = written.parse().unwrap_or_else(|error| panic!("{written:?}: {error}"));
    assert_eq!(read, selector, "{written:?}");
    let wanted: BTreeMap<_, _> =
        selector.requirements().iter().map(|wanted| (wanted.field.as_str(), wanted.value.as_str())).collect();
    let holds = |selector: &FieldSelector| selector.matches_with(|field| wanted.get(field).copied());
    assert_eq!(holds(&read), holds(&selector));
    if let Some(name) = selector.exact_name() {
        let matches =
            |found: &'static str| selector.matches_with(|field| (field == "metadata.name").then_some(found));
        assert!(name == "another" || !matches("another"), "{written:?}");
    }
}

fn tags(input: &[u8]) {
    let Some(Ok(selector)) = text(input).map(Selector::parse) else { return };
    let written = selector.to_string();
    let read = Selector::parse(&written).unwrap_or_else(|error| panic!("{written:?}: {error}"));
    assert_eq!(read, selector, "{written:?}");
    assert_eq!(read.to_string(), written);
    for number in 0..8_usize {
        let has = |category: &str, tag: Option<&str>| {
            (category.len() + tag.map_or(0, str::len) * 3 + number).count_ones().is_multiple_of(2)
        };
        assert_eq!(read.matches(has), selector.matches(has), "{written:?}");
    }
}

/// A line with a pattern; lines with names.
fn names(input: &[u8]) {
    let Some(text) = text(input) else { return };
    let mut sequences = Sequences::new();
    let expanded = sequences.expand(text);
    if !text.contains("${seq:") {
        assert_eq!(expanded, text);
    }
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let Ok(pattern) = NamePattern::parse(first) else { return };
    assert_eq!(pattern.as_str(), first);
    assert!(!pattern.matches(""), "the empty name is matched by nothing");
    if pattern.is_name() {
        assert_eq!(pattern.matches(first), !first.is_empty());
    }
    for name in lines {
        let matches = pattern.matches(name);
        assert!(
            !pattern.is_name() || matches == (name == first && !name.is_empty()),
            "{first:?} and {name:?}"
        );
        let again = NamePattern::parse(pattern.as_str()).expect("it was read before");
        assert_eq!(again.matches(name), matches);
        // Whatever is written twice beside each other chooses what one of the two chooses.
        if let Ok(either) = NamePattern::parse(&format!("({first})|({first})")) {
            assert!(!matches || either.matches(name), "{first:?} and {name:?}");
        }
    }
}

//! Ways to spoil a document.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Values that are easily got wrong.
fn value() -> impl Strategy<Value = Value> {
    let texts = vec![
        "",
        " ",
        "\0",
        "\u{e9}\u{1f600}",
        "a",
        "A",
        "-",
        "a/b/c",
        "null",
        "true",
        "~",
        "1",
        "-1",
        "0x10",
        "1e3",
        ".inf",
        "72h",
        "PT2M",
        "P1Y",
        "-5s",
        "1.5h",
        "9999999999h",
        "1ns",
        "2m2m",
        "P",
        "PT",
        "500m",
        "256Mi",
        "1e999999",
        "0.1n",
        "1E",
        "-1Ki",
        "9223372036854775808",
        "2026-11-15T14:00:00Z",
        "0000-00-00T00:00:00Z",
        "9999-12-31T23:59:60.9+23:59",
        "\"resourceVersion\":\"7",
        "{\"a\":",
        "- a\n- b",
        "a: b",
        "| \n",
        "#",
        "&a",
        "*a",
        "!!binary x",
        "%",
        "yes",
        "1_000",
        "foregroundDeletion",
        "orphan",
        "All",
        "Apply",
        "$patch",
        "~0~1",
        "/spec/-",
        "/spec/99999999999999999999",
    ];
    let numbers = vec![
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e308),
        json!(-0.0),
        json!(0.1),
        json!(4_294_967_296_u64),
        json!(2.0),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(numbers),
        prop::sample::select(texts).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[0-9]{1,20}(ns|us|ms|s|m|h|d)?".prop_map(Value::from),
        "-?[0-9]{0,20}(\\.[0-9]{0,20})?(n|u|m|k|Ki|M|Mi|G|Gi|E|Ei|e[0-9]{1,3})?".prop_map(Value::from),
        "P([0-9]{1,9}[YMWD]){0,3}(T([0-9]{1,9}[HMS]){0,3})?".prop_map(Value::from),
        "[a-z]{1,4}".prop_map(|text| Value::from(text.repeat(70))),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let known = vec![
        "kind",
        "apiVersion",
        "metadata",
        "spec",
        "status",
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generateName",
        "labels",
        "managedFields",
        "deletionTimestamp",
        "container",
        "timeout",
        "$patch",
        "$retainKeys",
        "op",
        "path",
        "from",
        "value",
        "propagationPolicy",
        "preconditions",
        "",
        "a.b",
        "f:a",
    ];
    prop_oneof![prop::sample::select(known).prop_map(str::to_owned), ".{0,6}"]
}

/// A change of a document that leaves it a document. Places are counted from the root, round and round.
#[derive(Debug, Clone)]
pub enum Edit {
    Replace(usize, Value),
    Insert(usize, String, Value),
    Remove(usize),
    Rename(usize, String),
    Wrap(usize, usize, bool),
    Copy(usize, usize),
    Repeat(usize, usize),
}

pub fn edit() -> impl Strategy<Value = Edit> {
    let place = || 0..200_usize;
    prop_oneof![
        4 => (place(), value()).prop_map(|(at, value)| Edit::Replace(at, value)),
        2 => (place(), key(), value()).prop_map(|(at, key, value)| Edit::Insert(at, key, value)),
        1 => place().prop_map(Edit::Remove),
        1 => (place(), key()).prop_map(|(at, key)| Edit::Rename(at, key)),
        1 => (place(), 0..140_usize, any::<bool>()).prop_map(|(at, depth, list)| Edit::Wrap(at, depth, list)),
        1 => (place(), place()).prop_map(|(from, to)| Edit::Copy(from, to)),
        1 => (place(), 0..4_usize).prop_map(|(at, times)| Edit::Repeat(at, times)),
    ]
}

impl Edit {
    pub fn apply(&self, document: &mut Value) {
        match self {
            Self::Replace(at, value) => *node(document, *at) = value.clone(),
            Self::Insert(at, key, value) => match node(document, *at) {
                Value::Object(map) => drop(map.insert(key.clone(), value.clone())),
                Value::Array(list) => list.push(value.clone()),
                other => *other = value.clone(),
            },
            Self::Remove(at) => match node(document, *at) {
                Value::Object(map) => drop(nth_key(map, *at).and_then(|key| map.remove(&key))),
                Value::Array(list) => drop(list.pop()),
                other => *other = Value::Null,
            },
            Self::Rename(at, key) => {
                if let Value::Object(map) = node(document, *at)
                    && let Some(value) = nth_key(map, *at).and_then(|key| map.remove(&key))
                {
                    map.insert(key.clone(), value);
                }
            }
            Self::Wrap(at, depth, list) => {
                let node = node(document, *at);
                for _ in 0..*depth {
                    let inner = node.take();
                    *node = if *list { json!([inner]) } else { json!({ "a": inner }) };
                }
            }
            Self::Copy(from, to) => {
                let copied = node(document, *from).clone();
                *node(document, *to) = copied;
            }
            Self::Repeat(at, times) => {
                if let Value::Array(list) = node(document, *at) {
                    let item = list.first().cloned().unwrap_or_default();
                    list.extend(std::iter::repeat_n(item, *times));
                }
            }
        }
    }
}

fn nth_key(map: &Map<String, Value>, at: usize) -> Option<String> {
    map.keys().nth(at % map.len().max(1)).cloned()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(map) => map.values().map(count).sum(),
        Value::Array(list) => list.iter().map(count).sum(),
        _ => 0,
    }
}

/// The value at a place, counted from the root.
fn node(document: &mut Value, at: usize) -> &mut Value {
    let mut at = at % count(document);
    let mut node = document;
    while at > 0 {
        at -= 1;
        let children: Vec<&mut Value> = match node {
            Value::Object(map) => map.values_mut().collect(),
            Value::Array(list) => list.iter_mut().collect(),
            _ => unreachable!("a place beyond the last value"),
        };
        let mut chosen = None;
        for child in children {
            let below = count(child);
            if at < below {
                chosen = Some(child);
                break;
            }
            at -= below;
        }
        node = chosen.expect("the count covers every value");
    }
    node
}

/// A change of a text that may leave it anything.
#[derive(Debug, Clone)]
pub enum Scar {
    Cut(usize),
    Insert(usize, Vec<u8>),
    Drop(usize, usize),
    Double(usize, usize),
    /// After one of the opening braces: doubles keys.
    AfterBrace(usize, &'static str),
}

pub fn scar() -> impl Strategy<Value = Scar> {
    let keys = vec![
        "\"kind\":\"Task\",",
        "\"metadata\":{},",
        "\"name\":\"b\",",
        "\"resourceVersion\":\"1\",",
        "\"\":0,",
        "\"op\":\"add\",",
        "\"spec\":null,",
    ];
    prop_oneof![
        any::<usize>().prop_map(Scar::Cut),
        (any::<usize>(), prop::collection::vec(any::<u8>(), 1..4))
            .prop_map(|(at, bytes)| Scar::Insert(at, bytes)),
        (any::<usize>(), 1..20_usize).prop_map(|(at, length)| Scar::Drop(at, length)),
        (any::<usize>(), 1..60_usize).prop_map(|(at, length)| Scar::Double(at, length)),
        (0..40_usize, prop::sample::select(keys)).prop_map(|(at, key)| Scar::AfterBrace(at, key)),
    ]
}

impl Scar {
    pub fn apply(&self, text: &mut Vec<u8>) {
        let place = |at: usize| at % (text.len() + 1);
        match self {
            Self::Cut(at) => text.truncate(place(*at)),
            Self::Insert(at, bytes) => {
                let at = place(*at);
                text.splice(at..at, bytes.iter().copied());
            }
            Self::Drop(at, length) => {
                let at = place(*at);
                let end = (at + length).min(text.len());
                text.drain(at..end);
            }
            Self::Double(at, length) => {
                let at = place(*at);
                let end = (at + length).min(text.len());
                let copied = text[at..end].to_vec();
                text.splice(end..end, copied);
            }
            Self::AfterBrace(nth, key) => {
                let braces: Vec<_> = (0..text.len()).filter(|at| text[*at] == b'{').collect();
                if let Some(brace) = braces.get(nth % braces.len().max(1)) {
                    let behind = brace + 1;
                    text.splice(behind..behind, key.bytes());
                }
            }
        }
    }
}

/// A spoiled body: a good document, edited, perhaps as YAML, perhaps scarred.
#[derive(Debug, Clone)]
pub struct Spoiled {
    pub edits: Vec<Edit>,
    pub scars: Vec<Scar>,
    pub yaml: bool,
}

pub fn spoiled() -> impl Strategy<Value = Spoiled> {
    let edits = prop::collection::vec(edit(), 0..4);
    let scars = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(scar(), 1..3)];
    (edits, scars, any::<bool>()).prop_map(|(edits, scars, yaml)| Spoiled { edits, scars, yaml })
}

impl Spoiled {
    pub fn apply(&self, good: &Value) -> Vec<u8> {
        let mut document = good.clone();
        self.edits.iter().for_each(|edit| edit.apply(&mut document));
        let mut text = if self.yaml {
            serde_saphyr::to_string(&document).unwrap_or_default().into_bytes()
        } else {
            document.to_string().into_bytes()
        };
        self.scars.iter().for_each(|scar| scar.apply(&mut text));
        text
    }
}

#[test]
fn every_value_of_a_document_has_a_place() {
    let document = json!({"a": [1, {"b": 2}], "c": 3});
    let places: Vec<_> =
        (0..count(&document)).map(|at| node(&mut document.clone(), at).to_string()).collect();
    assert_eq!(places, [r#"{"a":[1,{"b":2}],"c":3}"#, r#"[1,{"b":2}]"#, "1", r#"{"b":2}"#, "2", "3"]);
}

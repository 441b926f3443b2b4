//! What documents become and what is said about them.

use muster_schema::{Problem, StructuralSchema};
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema(schema: &Value) -> StructuralSchema {
    StructuralSchema::read(schema).expect("a schema")
}

/// A cluster as somebody might declare it.
fn cluster() -> StructuralSchema {
    schema(&json!({
        "type": "object",
        "required": ["region"],
        "properties": {
            "region": {"type": "string", "enum": ["eu", "us"]},
            "version": {"type": "string", "pattern": "^v[0-9]+$", "default": "v1"},
            "nodes": {"type": "integer", "minimum": 1, "maximum": 100},
            "load": {"type": "number", "exclusiveMaximum": 1.5, "multipleOf": 0.5},
            "port": {"x-kubernetes-int-or-string": true},
            "network": {"type": "object", "properties": {
                "cidr": {"type": "string", "default": "10.0.0.0/16"},
                "gateway": {"type": "string", "format": "ipv4"},
            }},
            "pools": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string", "minLength": 2, "maxLength": 5},
                    "size": {"type": "integer", "default": 3},
                }}},
            "zones": {"type": "array", "uniqueItems": true, "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
            "extra": {"type": "object"},
            "note": {"type": "string", "nullable": true},
        },
    }))
}

/// Where and what is wrong, a line each.
fn violations(schema: &StructuralSchema, document: &Value) -> Vec<String> {
    let found = schema.check(document, "spec").into_iter();
    found.map(|violation| format!("{}: {}", violation.at, violation.problem)).collect()
}

#[test]
fn a_good_document_has_nothing_wrong_with_it() {
    let good = json!({
        "region": "eu", "version": "v12", "nodes": 3, "load": 1.0, "port": "http", "network": {"gateway": "10.0.0.1"},
        "pools": [{"name": "aa"}, {"name": "bb", "size": 1}], "zones": ["a", "b"], "labels": {"a": "b"},
        "extra": {"any": ["thing", null]}, "note": null,
    });
    assert_eq!(violations(&cluster(), &good), Vec::<String>::new());
}

#[test]
fn every_rule_that_is_broken_is_told_with_its_place() {
    for (document, said) in [
        (json!({}), "spec.region: must be given"),
        (json!({"region": "mars"}), r#"spec.region: "mars": must be one of "eu", "us""#),
        (json!({"region": 1}), r#"spec.region: "1": must be text"#),
        (json!({"region": null}), r#"spec.region: "null": must be text"#),
        (json!({"region": "eu", "version": "1"}), r#"spec.version: "1": must match ^v[0-9]+$"#),
        (json!({"region": "eu", "nodes": 0}), r#"spec.nodes: "0": must be at least 1"#),
        (json!({"region": "eu", "nodes": 101}), r#"spec.nodes: "101": must be at most 100"#),
        (json!({"region": "eu", "nodes": 1.5}), r#"spec.nodes: "1.5": must be a whole number"#),
        (json!({"region": "eu", "nodes": "3"}), r#"spec.nodes: "3": must be a whole number"#),
        (json!({"region": "eu", "load": 1.5}), r#"spec.load: "1.5": must be less than 1.5"#),
        (json!({"region": "eu", "load": 0.7}), r#"spec.load: "0.7": must be a multiple of 0.5"#),
        (json!({"region": "eu", "port": true}), r#"spec.port: "true": must be a whole number or text"#),
        (json!({"region": "eu", "network": []}), r#"spec.network: "a list": must be an object"#),
        (
            json!({"region": "eu", "network": {"gateway": "gw"}}),
            r#"spec.network.gateway: "gw": must be an IPv4 address"#,
        ),
        (json!({"region": "eu", "pools": [{}]}), "spec.pools[0].name: must be given"),
        (
            json!({"region": "eu", "pools": [{"name": "a"}]}),
            r#"spec.pools[0].name: "a": must have at least 2 characters, has 1"#,
        ),
        (
            json!({"region": "eu", "pools": [{"name": "aa"}, {"name": "aa"}]}),
            r#"spec.pools[1]: "an object": there is one with the same name before it"#,
        ),
        (
            json!({"region": "eu", "pools": [{"name": "aa"}, {"name": "bb"}, {"name": "cc"}]}),
            r#"spec.pools: "a list": must have at most 2 items, has 3"#,
        ),
        (
            json!({"region": "eu", "zones": ["a", "a"]}),
            r#"spec.zones[1]: "a": there is one with the same item before it"#,
        ),
        (json!({"region": "eu", "labels": {"a.b": 1}}), r#"spec.labels["a.b"]: "1": must be text"#),
        (
            json!({"region": "eu", "labels": {"a": "", "b": "", "c": ""}}),
            r#"spec.labels: "an object": must have at most 2 fields, has 3"#,
        ),
    ] {
        assert_eq!(violations(&cluster(), &document)[0], said, "{document}");
    }
}

#[test]
fn a_long_value_is_not_said_back_whole() {
    let found = cluster().check(&json!({"region": "x".repeat(10_000)}), "spec");
    let Problem::Wrong { value, .. } = &found[0].problem else { panic!("{found:?}") };
    assert_eq!(value.chars().count(), 65);
}

#[test]
fn a_document_with_very_much_wrong_is_told_a_part_of_it() {
    let schema = schema(&json!({"properties": {"l": {"type": "array", "items": {"type": "string"}}}}));
    let document = json!({"l": vec![1; 10_000]});
    assert_eq!(schema.check(&document, "spec").len(), 64);
}

#[test]
fn what_is_left_open_is_filled_in_and_nulls_give_way() {
    let mut document = json!({
        "region": "eu", "version": null, "network": {}, "pools": [{"name": "aa"}], "note": null, "extra": {"a": null},
    });
    cluster().fill(&mut document);
    assert_eq!(
        document,
        json!({
            "region": "eu", "version": "v1", "network": {"cidr": "10.0.0.0/16"},
            "pools": [{"name": "aa", "size": 3}], "note": null, "extra": {"a": null},
        })
    );
}

#[test]
fn a_default_is_filled_in_like_what_a_user_wrote() {
    let schema = schema(&json!({"properties": {"network": {
        "type": "object", "default": {}, "properties": {"cidr": {"type": "string", "default": "10.0.0.0/16"}},
    }}}));
    let mut document = json!({});
    schema.fill(&mut document);
    assert_eq!(document, json!({"network": {"cidr": "10.0.0.0/16"}}));
}

#[test]
fn fields_that_are_not_declared_are_dropped_and_named() {
    let mut document = json!({
        "region": "eu", "nope": 1, "network": {"nope": 1}, "pools": [{"name": "aa", "nope": 1}],
        "labels": {"any": "x"}, "extra": {"any": {"thing": 1}},
    });
    let unknown = cluster().prune(&mut document, "spec");
    assert_eq!(unknown, ["spec.network.nope", "spec.nope", "spec.pools[0].nope"]);
    assert_eq!(
        document,
        json!({
            "region": "eu", "network": {}, "pools": [{"name": "aa"}], "labels": {"any": "x"},
            "extra": {"any": {"thing": 1}},
        })
    );
}

#[test]
fn branches_say_more_about_what_is_declared() {
    let schema = schema(&json!({
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "integer",
            "not": {"enum": [13]}, "anyOf": [{"maximum": 10}, {"minimum": 20}], "allOf": [{"multipleOf": 1}]}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    }));
    for (document, said) in [
        (json!({"a": "x"}), None),
        (json!({}), Some("must fit exactly one of the schemas in oneOf, fits 0")),
        (json!({"a": "x", "b": "x"}), Some("must fit exactly one of the schemas in oneOf, fits 2")),
        (json!({"a": "x", "n": 15}), Some("must fit at least one of the schemas in anyOf")),
        (json!({"a": "x", "n": 13}), Some("must not fit the schema in not")),
        (json!({"a": "x", "n": 20}), None),
    ] {
        let found = violations(&schema, &document);
        match said {
            None => assert!(found.is_empty(), "{document}: {found:?}"),
            Some(said) => assert!(found.iter().any(|line| line.contains(said)), "{document}: {found:?}"),
        }
    }
}

/// Any document of a few levels.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let name = prop_oneof![
            Just("region".to_owned()),
            Just("network".to_owned()),
            Just("pools".to_owned()),
            Just("name".to_owned()),
            Just("labels".to_owned()),
            "[a-z]{1,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_pruned_and_filled_stays_as_it_is(mut document in document()) {
        let schema = cluster();
        schema.prune(&mut document, "spec");
        schema.fill(&mut document);
        let once = document.clone();
        prop_assert!(schema.prune(&mut document, "spec").is_empty());
        schema.fill(&mut document);
        prop_assert_eq!(&document, &once);
        schema.check(&document, "spec");
    }
}

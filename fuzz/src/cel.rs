//! Expressions of adapters and types, alone and inside of templates.

use std::sync::LazyLock;

use muster_expr::cel::{Budget, Program, Scope, Template, Type, Value};
use serde_json::{Value as Json, json};

use crate::Target;

pub const EXPRESSION: Target = Target {
    name: "cel",
    property: "an expression is refused, or gives the same value each time, of the type that was found, within its budget",
    run: expression,
};
pub const TEMPLATE: Target = Target {
    name: "cel_template",
    property: "a template is refused, or renders the same document each time, within its budget; without expressions it is itself",
    run: template,
};

const NAMES: [(&str, Type); 8] = [
    ("resource", Type::Map),
    ("self", Type::Map),
    ("params", Type::Map),
    ("done", Type::List),
    ("available", Type::Bool),
    ("generationN", Type::Int),
    ("share", Type::Double),
    ("now", Type::Timestamp),
];
const TYPES: [Type; 9] = [
    Type::Any,
    Type::Null,
    Type::Bool,
    Type::Int,
    Type::Double,
    Type::Text,
    Type::List,
    Type::Map,
    Type::Timestamp,
];
/// As JSON, nothing that an expression may make is longer: its values are counted, their signs and escapes are not.
const MAX_JSON: usize = 128 << 20;

static DOCUMENT: LazyLock<Json> = LazyLock::new(|| {
    json!({
        "metadata": {"name": "x", "labels": {"zone": "a"}, "generation": 2, "creationTimestamp": "2026-11-15T14:00:00Z"},
        "spec": {"size": 3, "share": 0.5, "big": 18_446_744_073_709_551_615_u64, "small": i64::MIN, "zones": ["a", "b"],
                 "empty": null, "text": "äöü😀 a,b,c", "deep": {"a": {"b": [{"c": 1}]}}},
        "status": {"conditions": [{"type": "Available", "status": "True"}]},
        "items": [{"adapter": "dns", "data": {"zone": "z"}}, {"adapter": "x", "observed_generation": 2}],
    })
});

fn scope(budget: &Budget) -> Scope<'_> {
    static DONE: LazyLock<Json> = LazyLock::new(|| json!(["validation", "dns"]));
    let scope = Scope::default().within(budget);
    let scope =
        scope.with_json("resource", &DOCUMENT).with_json("self", &DOCUMENT).with_json("params", &DOCUMENT);
    let scope = scope.with_json("done", &DONE).with("available", Value::Bool(true));
    let scope = scope.with("generationN", Value::Int(2)).with("share", Value::Double(0.5));
    scope.with("now", Value::Timestamp(1_763_000_000_000))
}

fn expression(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let Ok(program) = Program::compile(text, &NAMES, Type::Any) else {
        for wanted in TYPES {
            assert!(
                Program::compile(text, &NAMES, wanted).is_err(),
                "it can be of type {wanted} and not of any"
            );
        }
        return;
    };
    assert_eq!(Program::compile(program.text(), &NAMES, Type::Any).as_ref(), Ok(&program));
    let evaluate = || {
        let budget = Budget::of_object();
        let value = program.evaluate_to_json(&scope(&budget));
        (value, budget.spent(), budget.is_exceeded())
    };
    let (value, spent, exceeded) = evaluate();
    assert_eq!(evaluate(), (value.clone(), spent, exceeded), "another value the second time");
    if let Ok(value) = &value {
        assert!(!exceeded, "a value although the budget was exceeded");
        assert!(value.to_string().len() <= MAX_JSON, "a value that is too large");
    }
    let budget = Budget::of_object();
    let scope = scope(&budget);
    if let Ok(holds) = program.holds(&scope) {
        assert_eq!(value.as_ref().ok(), Some(&Json::Bool(holds)));
    }
    check_type(text, &program);
    drop(program.evaluate_to_text(&scope));
}

/// A value is of a type that the expression was said to have.
fn check_type(text: &str, program: &Program) {
    let budget = Budget::of_object();
    let Ok(value) = program.evaluate(&scope(&budget)) else { return };
    let found = match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Bool,
        Value::Int(_) => Type::Int,
        Value::Double(_) => Type::Double,
        Value::Timestamp(_) => Type::Timestamp,
        _ => return,
    };
    assert!(
        Program::compile(text, &NAMES, found).is_ok(),
        "it gives {found}, and is refused where that is wanted"
    );
}

fn template(input: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Json>(input) else { return };
    let Ok(template) = Template::compile(&document, &NAMES) else { return };
    let render = || {
        let budget = Budget::of_object();
        template.render(&scope(&budget))
    };
    let rendered = render();
    assert_eq!(render(), rendered, "another document the second time");
    if !document.to_string().contains("{{") {
        assert_eq!(rendered.as_ref(), Ok(&document), "a document without expressions is itself");
    }
    if let Ok(rendered) = rendered {
        assert!(rendered.to_string().len() <= MAX_JSON);
    }
}

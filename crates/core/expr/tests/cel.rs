//! CEL: what expressions give, where mistakes are, and what they may cost.

use muster_expr::cel::{Budget, Cost, Program, Scope, Template, Type};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const NAMES: [(&str, Type); 5] = [
    ("resource", Type::Any),
    ("self", Type::Any),
    ("available", Type::Bool),
    ("generationN", Type::Int),
    ("now", Type::Timestamp),
];

fn document() -> Json {
    json!({
        "metadata": {"name": "x", "labels": {"zone": "a"}},
        "spec": {"size": 3, "share": 0.5, "zones": ["a", "b"], "empty": null, "big": 18_446_744_073_709_551_615_u64},
        "items": [
            {"observed_generation": 2, "conditions": [{"type": "Available", "status": "True"}]},
            {"observed_generation": 2, "conditions": [{"type": "Available", "status": "True"}]},
        ],
    })
}

fn evaluate(text: &str) -> Result<Json, String> {
    let document = document();
    let program = Program::compile(text, &NAMES, Type::Any).map_err(|error| error.to_string())?;
    let scope = Scope::default()
        .with_json("resource", &document)
        .with_json("self", &document)
        .with("available", muster_expr::cel::Value::Bool(true))
        .with("generationN", muster_expr::cel::Value::Int(2))
        .with("now", muster_expr::cel::Value::Timestamp(1_000_000));
    program.evaluate_to_json(&scope).map_err(|error| error.to_string())
}

#[test]
fn expressions_give_what_cel_says() {
    for (text, wanted) in [
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3 % 5", json!(4)),
        ("7 / 2", json!(3)),
        ("-7 / 2", json!(-3)),
        ("7.0 / 2.0", json!(3.5)),
        ("1 + 0.5", json!(1.5)),
        ("0x1F + 1u", json!(32)),
        ("1e3 > 999", json!(true)),
        ("--1", json!(1)),
        ("!!true", json!(true)),
        ("1 == 1.0", json!(true)),
        ("1 == dyn('1')", json!(false)),
        ("null == resource.spec.empty", json!(true)),
        ("resource.spec.size > 2 && resource.spec.size < 4", json!(true)),
        ("resource.spec.share * 2", json!(1.0)),
        ("resource.spec.big > 1", json!(true)),
        ("resource.metadata['name'] + '-' + string(resource.spec.size)", json!("x-3")),
        ("resource.spec.zones[1]", json!("b")),
        ("'a' in resource.spec.zones", json!(true)),
        ("'zone' in resource.metadata.labels", json!(true)),
        ("has(resource.spec.size) && !has(resource.spec.other)", json!(true)),
        ("available ? 'yes' : 'no'", json!("yes")),
        ("false ? 1 : true ? 2 : 3", json!(2)),
        ("resource.spec.zones.map(z, z + z)", json!(["aa", "bb"])),
        ("resource.spec.zones.map(z, z != 'a', z)", json!(["b"])),
        ("resource.spec.zones.filter(z, z > 'a')", json!(["b"])),
        ("resource.spec.zones.exists_one(z, z == 'a')", json!(true)),
        ("resource.metadata.labels.all(key, key == 'zone')", json!(true)),
        ("[1, 2].exists(i, [3, i].exists(j, j == i))", json!(true)),
        ("[1, 2] + [3] == [1, 2, 3]", json!(true)),
        ("{'a': [1], 'b': {'c': 2},} == {'b': {'c': 2.0}, 'a': [1]}", json!(true)),
        ("size(resource.spec.zones) + 'äb'.size() + {'a': 1}.size()", json!(5)),
        ("'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b')", json!(true)),
        ("'abc'.matches('^a.c$') && !matches('abc', 'x')", json!(true)),
        ("' A '.trim().lowerAscii() + 'b'.upperAscii()", json!("aB")),
        ("'a,b'.split(',').join('-') + ['c'].join()", json!("a-bc")),
        ("'a-b-c'.replace('-', '')", json!("abc")),
        ("int('7') + int(1.9) + int(now)", json!(9)),
        ("double('1.5') + double(1)", json!(2.5)),
        ("bool('true') && !bool('false')", json!(true)),
        ("string(timestamp('2026-11-15T14:00:00Z') + duration('90s'))", json!("2026-11-15T14:01:30Z")),
        ("now - timestamp('1970-01-01T00:00:00Z') > duration('500ms')", json!(true)),
        ("duration('1m') - duration('30s')", json!("30s")),
        ("string(duration('-1500ms'))", json!("-1.5s")),
        (r#"'\u00e4\n\x41\101' + r'\n' + """a"b""""#, json!("ä\nAA\\na\"b")),
        ("1 // a remark\n + 1", json!(2)),
        // One side that decides is enough.
        ("resource.spec.other == 1 || true", json!(true)),
        ("false && resource.spec.other == 1", json!(false)),
        ("[1, 'a'].exists(i, i == 1 || i.nope == 2)", json!(true)),
    ] {
        assert_eq!(evaluate(text), Ok(wanted), "{text}");
    }
}

#[test]
fn the_expressions_of_the_seed_compile_verbatim() {
    let available = "self.items.all(i, \n  i.observed_generation == self.items[0].observed_generation && \n  \
        i.conditions.exists(c, c.type == 'Available' && c.status == 'True')\n)";
    let ready = " available && self.items.all(i, i.observed_generation == generationN)";
    assert_eq!(evaluate(available), Ok(json!(true)));
    assert_eq!(evaluate(ready), Ok(json!(true)));
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    for (text, wanted) in [
        ("", "line 1, column 1: expected a value, found the end"),
        ("1 +", "line 1, column 4: expected a value, found the end"),
        ("1 2", "line 1, column 3: expected an operator or the end, found a number"),
        ("'ä' +\n  $", "line 2, column 3: '$' has no meaning here"),
        ("(1", "line 1, column 3: expected \")\", found the end"),
        ("'abc", "line 1, column 1: this string has no end"),
        ("'a\nb'", "line 1, column 1: this string has no end in its line; use three quotes"),
        (r"'\q'", r"line 1, column 2: is no escape; write \\ for a backslash, or r'…'"),
        ("99999999999999999999", "line 1, column 1: 99999999999999999999 is not a number that can be kept"),
        ("a.in", "line 1, column 3: expected a field or a function, found \"in\""),
        ("has(1)", "line 1, column 5: has() takes a field, as in has(resource.spec.size)"),
        (
            "[1].all(1, true)",
            "line 1, column 9: expected the name of an element, as in all(i, i > 0), found a number",
        ),
    ] {
        assert_eq!(evaluate(text).unwrap_err(), wanted, "{text}");
    }
    let error = evaluate("'a'.matches('(')").unwrap_err();
    assert!(error.starts_with("line 1, column 4: the pattern cannot be read"), "{error}");
}

#[test]
fn wrong_types_are_refused_before_anything_is_evaluated() {
    for (text, wanted) in [
        (
            "nope",
            "line 1, column 1: \"nope\" is not known here; known are resource, self, available, generationN, now",
        ),
        ("1 && true", "line 1, column 1: a part of && or || must be bool, not int"),
        ("available + 1", "line 1, column 1: bool + int has no meaning"),
        ("'a' < 1", "line 1, column 1: string < int has no meaning"),
        ("[1] < [2]", "line 1, column 1: list < list has no meaning"),
        ("!now", "line 1, column 2: what is negated must be bool, not timestamp"),
        ("-'a'", "line 1, column 2: string has no negative"),
        ("'a'.b", "line 1, column 1: what has fields must be map, not string"),
        ("[1]['a']", "line 1, column 5: the index of list must be int, not string"),
        ("1.5 % 2", "line 1, column 1: double % int has no meaning"),
        ("{1: 2}", "line 1, column 2: the key of a map must be string, not int"),
        ("1 in 'a'", "line 1, column 1: int in string has no meaning"),
        ("size()", "line 1, column 1: size() takes 1 arguments, not 0"),
        ("'a'.contains(1)", "line 1, column 14: an argument of contains() must be string, not int"),
        ("7.all(i, true)", "line 1, column 1: int has no elements"),
        ("1 ? 2 : 3", "line 1, column 1: the condition of ? : must be bool, not int"),
        ("[1].all(i, 1)", "line 1, column 12: the test of an element must be bool, not int"),
    ] {
        assert_eq!(evaluate(text).unwrap_err(), wanted, "{text}");
    }
    assert!(evaluate("foo(1)").unwrap_err().contains("there is no function \"foo\"; there are size, "));
    let error = Program::compile("1 + 1 == 2", &NAMES, Type::Text).unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 1: gives bool, where string is needed");
}

#[test]
fn what_has_no_value_says_why() {
    for (text, wanted) in [
        ("resource.spec.other", "line 1, column 14: there is no field \"other\"; ask with has() first"),
        ("resource.spec.size.deeper", "line 1, column 19: int has no fields, so not \"deeper\""),
        (
            "resource.spec.zones[2]",
            "line 1, column 20: there is no element at this place; ask with size() first",
        ),
        (
            "resource.spec.zones[-1]",
            "line 1, column 20: there is no element at this place; ask with size() first",
        ),
        ("resource.spec['no']", "line 1, column 14: there is no key \"no\"; ask with in first"),
        ("1 / 0", "line 1, column 1: divides by zero"),
        ("9223372036854775807 + 1", "line 1, column 1: the result is too large to be kept"),
        ("resource.spec.size && true", "line 1, column 14: is int, where bool is needed"),
        ("resource.spec.size + 'a'", "line 1, column 14: int + string has no meaning"),
        ("resource.spec.zones > 1", "line 1, column 14: list > int has no meaning"),
        ("int('x')", "line 1, column 1: this string cannot be read as int"),
        ("timestamp('x')", "line 1, column 1: this string cannot be read as timestamp"),
        ("duration('x')", "line 1, column 1: this string cannot be read as duration"),
        ("[1].map(i, i.a)", "line 1, column 13: int has no fields, so not \"a\""),
    ] {
        assert_eq!(evaluate(text).unwrap_err(), wanted, "{text}");
    }
}

#[test]
fn an_expression_that_takes_too_long_is_stopped() {
    let ten = "[1,2,3,4,5,6,7,8,9,0]";
    let text = format!(
        "{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, {ten}.all(f, a + b + c + d + e + f >= 0))))))"
    );
    let error = evaluate(&text).unwrap_err();
    assert!(error.contains(&format!("takes more than {} steps", Cost::OF_EXPRESSION.steps)), "{error}");
    let growing = "['aaaaaaaaaaaaaaaa'].map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a)\
        .map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a).map(a, a+a+a+a+a+a+a+a)";
    assert!(evaluate(growing).unwrap_err().contains("takes more than"));
}

/// What evaluating an expression to a document costs, with 400 KB in `resource`, and how it went.
fn cost_of(text: &str) -> (Cost, Result<Json, String>) {
    let document = json!({
        "l": (0..100).collect::<Vec<_>>(), "blob": "x".repeat(400_000), "wide": vec![0; 60_000], "deep": nested(60),
    });
    let program = Program::compile(text, &NAMES, Type::Any).expect("an expression");
    let budget = Budget::new(Cost::OF_OBJECT);
    let scope = Scope::default().with_json("resource", &document).within(&budget);
    let outcome = program.evaluate_to_json(&scope).map_err(|error| error.to_string());
    let is_limit = |why: &String| why.contains("more than") && !why.contains("one inside the other");
    assert_eq!(budget.is_exceeded(), outcome.as_ref().is_err_and(is_limit), "{text}");
    (budget.spent(), outcome)
}

fn nested(depth: usize) -> Json {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn steps_are_counted() {
    assert_eq!(cost_of("1 + 2 == 3"), (Cost { steps: 6, bytes: 0 }, Ok(json!(true))));
}

#[test]
fn copies_cost_the_memory_they_take() {
    for text in [
        "resource.blob",
        "string(resource.wide)",
        "resource.blob + 'a'",
        "resource.blob.replace('a', 'b')",
        "[resource.blob]",
        "{'a': resource.blob}",
        "resource.blob.split('y')",
        "[resource.blob].join()",
        "resource.blob.upperAscii()",
    ] {
        let (cost, outcome) = cost_of(text);
        assert!(outcome.is_ok() && cost.bytes >= 100_000, "{text} costs {cost:?}");
    }
    let (cost, _) = cost_of("resource.l.map(x, resource.blob).size()");
    assert!(cost.bytes < 10_000, "what is not copied costs no memory: {cost:?}");
}

#[test]
fn an_expression_that_makes_too_much_is_stopped_before_it_is_made() {
    for text in [
        "resource.l.map(x, resource)",
        "string(resource.l.map(x, resource))",
        "resource.l.map(x, resource.blob).join('')",
        "resource.blob.split('')",
        "resource.blob.replace('', resource.blob)",
        "resource.l.map(a, resource.l.map(b, resource.l))",
        "resource.blob.replace('x', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy')",
    ] {
        let (cost, outcome) = cost_of(text);
        assert!(outcome.unwrap_err().contains("more than"), "{text}");
        assert!(cost.bytes <= Cost::OF_OBJECT.bytes, "{text} costs {cost:?}");
    }
}

#[test]
fn whatever_looks_at_all_of_something_in_a_loop_is_stopped() {
    for text in [
        "resource.l.all(x, size(resource.blob) > 0)",
        "resource.l.all(x, resource.blob >= resource.blob)",
        "resource.l.all(x, !(1 in resource.wide))",
        "resource.l.all(x, resource.wide == resource.wide)",
        "resource.l.all(x, resource.wide.all(y, true))",
        "resource.l.all(x, !resource.blob.contains('y'))",
        "resource.l.all(x, !(resource.blob in {'a': 1}))",
        "resource.l.all(x, !resource.blob.matches('y'))",
        "resource.l.all(x, !'a'.matches(string(x)))",
        "resource.l.exists(x, int(resource.blob) == 1)",
    ] {
        let (_, outcome) = cost_of(text);
        assert!(outcome.unwrap_err().contains("more than"), "{text}");
    }
    // What is known without looking costs one step.
    assert_eq!(cost_of("resource.l.all(x, size(resource.wide) == 60000)").1, Ok(json!(true)));
}

#[test]
fn nobody_goes_on_after_a_limit_although_mistakes_are_forgiven() {
    let (_, outcome) = cost_of("resource.l.all(x, resource.wide.all(y, true)) || true");
    assert!(outcome.unwrap_err().contains("more than"));
}

#[test]
fn expressions_about_one_object_share_a_budget() {
    let document = json!({"wide": vec![0; 15_000]});
    let program = Program::compile("resource.wide.all(x, x == 0)", &NAMES, Type::Bool).unwrap();
    let budget = Budget::new(Cost::OF_OBJECT);
    let scope = Scope::default().with_json("resource", &document).within(&budget);
    let outcomes: Vec<_> =
        (0..100).map(|_| program.holds(&scope).map_err(|error| error.to_string())).collect();
    assert_eq!(outcomes[0], Ok(true));
    let mut errors = outcomes.into_iter().filter_map(Result::err);
    let error = errors.next().expect("it is exceeded");
    assert!(
        error.contains("the expressions about one object take more than 500000 steps together"),
        "{error}"
    );
    let error = errors.next().expect("nothing is evaluated from then on");
    assert!(error.contains("another expression about this object costs too much"), "{error}");
    assert!(budget.is_exceeded());
}

#[test]
fn a_value_that_becomes_a_document_is_not_too_deep() {
    assert!(cost_of("[resource.deep]").1.is_ok());
    let (_, outcome) = cost_of("[[[[[resource.deep]]]]]");
    assert!(outcome.unwrap_err().contains("more than 64 lists and maps one inside the other"));
}

#[test]
fn depth_and_length_are_limited() {
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    assert!(evaluate(&deep).unwrap_err().contains("brackets one inside the other"));
    let chain = format!("resource{}", ".a".repeat(500));
    assert!(evaluate(&chain).unwrap_err().contains("parts one inside the other"));
    let sum = vec!["1"; 500].join("+");
    assert!(evaluate(&sum).unwrap_err().contains("parts one inside the other"));
    assert_eq!(evaluate(&vec!["true"; 500].join("&&")), Ok(json!(true)));
    assert!(evaluate(&" ".repeat(5000)).unwrap_err().contains("at most 4096 bytes"));
    assert!(evaluate(&"!".repeat(4000)).is_err());
}

#[test]
fn texts_of_a_template_become_values() {
    let document = json!({
        "whole": "{{ resource.spec.zones }}",
        "text": "{{ resource.metadata.name }} has {{resource.spec.size}} of {{ {'a': 1} }}",
        "fixed": ["as it is", 1, null],
        "list": ["a", "{{ 1 + 1 }}"],
    });
    let template = Template::compile(&document, &NAMES).unwrap();
    let values = self::document();
    let rendered = template.render(&Scope::default().with_json("resource", &values)).unwrap();
    let wanted = json!({
        "whole": ["a", "b"], "text": "x has 3 of {\"a\":1}", "fixed": ["as it is", 1, null], "list": ["a", 2],
    });
    assert_eq!(rendered, wanted);
}

#[test]
fn fields_that_are_texts_stay_texts() {
    let document = json!({"data": "{{ 1 + 1 }}", "env": [{"value": "{{ 1 + 1 }}"}]});
    let template = Template::compile(&document, &NAMES).unwrap();
    let template = template.map_entries(|key, value| if key == "data" { value } else { value.into_text() });
    let rendered = template.render(&Scope::default()).unwrap();
    assert_eq!(rendered, json!({"data": 2, "env": [{"value": "2"}]}));
}

#[test]
fn mistakes_of_a_template_have_a_path() {
    let compile =
        |document: Json| Template::compile(&document, &NAMES).map_err(|error| (error.path, error.message));
    let (path, message) = compile(json!({"a": {"b": ["{{ nope }}"]}})).unwrap_err();
    assert_eq!(path, ".a.b[0]");
    assert!(message.contains("\"nope\" is not known here"), "{message}");
    assert_eq!(compile(json!("{{ 1")).unwrap_err().1, "\"{{\" has no \"}}\"");
    let late = Template::compile(&json!({"a": "{{ resource.no }}"}), &NAMES).unwrap();
    let values = document();
    let error = late.render(&Scope::default().with_json("resource", &values)).unwrap_err();
    assert_eq!((error.path.as_str(), error.message.contains("no field")), (".a", true));
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "1",
        "2.5",
        "'a'",
        "true",
        "null",
        "resource",
        "self",
        ".spec",
        ".items",
        "[0]",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "%",
        "==",
        "<",
        "in",
        "&&",
        "||",
        "!",
        ".all(i, ",
        ".map(x, ",
        "size(",
        "i",
        "x",
        ",",
        ".split('')",
        "has(",
        "string(",
        "matches('a','b')",
        " ",
        "\n",
        "ä",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_evaluated_or_refused(text in ".{0,80}") {
        let _outcome = evaluate(&text);
    }

    #[test]
    fn almost_expressions_are_evaluated_or_refused(text in pieces()) {
        let _outcome = evaluate(&text);
    }

    #[test]
    fn any_text_is_a_template_or_refused(text in "[a-z{} ']{0,40}") {
        let _outcome = Template::compile(&json!(text), &NAMES);
    }
}

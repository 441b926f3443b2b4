//! What selectors mean, how they are refused, and that they read back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in what tests share")]

use muster_expr::Selector;
use muster_expr::selector::{MAX_BYTES, MAX_NESTING};
use proptest::prelude::*;

/// Tags are written `Category=Tag`.
fn matches(selector: &str, tags: &[&str]) -> bool {
    let tags: Vec<_> = tags.iter().map(|tag| tag.split_once('=').unwrap()).collect();
    let has = |category: &str, tag: Option<&str>| {
        tags.iter()
            .any(|(its_category, its_tag)| *its_category == category && tag.is_none_or(|tag| tag == *its_tag))
    };
    Selector::parse(selector).unwrap().matches(has)
}

fn written(text: &str) -> String {
    Selector::parse(text).unwrap().to_string()
}

fn refused(text: &str) -> String {
    Selector::parse(text).unwrap_err().to_string()
}

#[test]
fn empty_text_matches_everything() {
    for text in ["", " ", "\t\r\n"] {
        assert!(matches(text, &[]), "{text:?}");
        assert!(matches(text, &["Language=Java"]), "{text:?}");
        assert_eq!(written(text), "");
        assert!(Selector::parse(text).unwrap().is_everything());
    }
    assert_eq!(Selector::default(), "".parse().unwrap());
}

#[test]
fn a_tag_matches_exactly() {
    assert!(matches("tag:Language=Java", &["Language=Java"]));
    assert!(matches("tag:Language=Java", &["Language=Go", "Language=Java"]));
    assert!(!matches("tag:Language=Java", &["Language=JavaScript"]));
    assert!(!matches("tag:Language=Java", &["Language=java"]));
    assert!(!matches("tag:Language=Java", &["Runtime=Java"]));
}

#[test]
fn a_category_alone_matches_any_of_its_tags() {
    assert!(matches("tag:Language", &["Language=Java"]));
    assert!(!matches("tag:Language", &["Runtime=Java"]));
}

#[test]
fn an_unknown_category_is_false_and_no_error() {
    assert!(!matches("tag:Nothing=Known", &["Language=Java"]));
    assert!(matches("!tag:Nothing", &["Language=Java"]));
}

#[test]
fn tags_may_have_signs() {
    for tag in ["C#", "C++", ".NET", "R&D", "a|b", "Yahoo!", "a=b", "F#!", "It's", "C:\\x", "ünï", "&", "|"]
    {
        assert!(matches(&format!("tag:Language={tag}"), &[&format!("Language={tag}")]), "{tag}");
        assert!(
            matches(&format!("(tag:Language={tag})&&!tag:X||tag:Y"), &[&format!("Language={tag}")]),
            "{tag}"
        );
    }
    assert!(!matches("tag:Language=C#", &["Language=C"]));
    assert!(!matches("tag:Language=C", &["Language=C#"]));
}

#[test]
fn a_term_that_is_the_start_of_another_is_another() {
    // Upstream replaced terms as text, the longest first, to get around this.
    assert!(matches(
        "tag:Language=Java && tag:Language=JavaScript",
        &["Language=Java", "Language=JavaScript"]
    ));
    assert!(!matches("tag:Language=Java && tag:Language=JavaScript", &["Language=JavaScript"]));
}

#[test]
fn a_parenthesis_ends_a_term() {
    // Upstream took `)` for a part of the tag.
    assert!(matches("(tag:Language=Java)", &["Language=Java"]));
    assert!(matches("(tag:Language)&&(tag:Language=Java)", &["Language=Java"]));
}

#[test]
fn quotes_hold_spaces_and_signs() {
    assert!(matches(r#"tag:Framework="Spring Boot""#, &["Framework=Spring Boot"]));
    assert!(matches(
        r#"tag:"Source Platform"="IBM (z/OS)" && tag:A"#,
        &["Source Platform=IBM (z/OS)", "A=b"]
    ));
    assert!(matches(r#"tag:A="a && b || \"c\" \\ d""#, &[r#"A=a && b || "c" \ d"#]));
    assert!(matches(r#"tag:"a"="b""#, &["a=b"]));
}

#[test]
fn not_binds_closer_than_and_and_and_closer_than_or() {
    assert!(matches("tag:A || tag:B && tag:C", &["A=1"]));
    assert!(!matches("(tag:A || tag:B) && tag:C", &["A=1"]));
    assert!(matches("!tag:A && tag:B", &["B=1"]));
    assert!(!matches("!(tag:A && tag:B) && tag:B", &["A=1", "B=1"]));
    assert!(matches("!!tag:A", &["A=1"]));
    assert!(matches("! ! ( tag:A )", &["A=1"]));
    assert!(matches("tag:A && tag:B || tag:C && tag:D", &["C=1", "D=1"]));
}

#[test]
fn blanks_between_parts_do_not_matter() {
    for text in
        ["tag:A=1&&tag:B||!tag:C", "  tag:A=1 &&\n tag:B\t||  ! tag:C  ", "(tag:A=1 &&(tag:B))||(!tag:C )"]
    {
        assert_eq!(written(text), "tag:A=1 && tag:B || !tag:C");
    }
}

#[test]
fn a_selector_is_written_in_one_form() {
    for (text, form) in [
        ("((tag:A))", "tag:A"),
        ("tag:A && (tag:B && tag:C)", "tag:A && tag:B && tag:C"),
        ("(tag:A || tag:B) || tag:C", "tag:A || tag:B || tag:C"),
        ("tag:A && (tag:B || tag:C)", "tag:A && (tag:B || tag:C)"),
        ("(tag:A && tag:B) || tag:C", "tag:A && tag:B || tag:C"),
        ("!(tag:A)", "!tag:A"),
        ("!(tag:A || tag:B)", "!(tag:A || tag:B)"),
        ("!!tag:A", "!!tag:A"),
        (r#"tag:"A"="b""#, "tag:A=b"),
        (r#"tag:"A!"="=b""#, r#"tag:"A!"="=b""#),
        (r#"tag:"a=b"="c d""#, r#"tag:"a=b"="c d""#),
        ("tag:A=b=c!", "tag:A=b=c!"),
    ] {
        assert_eq!(written(text), form, "{text}");
        assert_eq!(written(form), form, "{form}");
    }
}

#[test]
fn refusals_say_where_and_what() {
    const TERM: &str = "expected a term such as tag:Language=Java, '!' or '('";
    const QUOTES: &str = "text with spaces, parentheses or quotes needs double quotes around it";
    const TAG: &str = "expected a tag such as Java; without '=' any tag of the category matches";
    for (text, column, message) in [
        ("tag:A &&", 9, format!("found the end, {TERM}")),
        ("tag:A && ", 10, format!("found the end, {TERM}")),
        ("&& tag:A", 1, format!("found '&&', {TERM}")),
        ("tag:A || || tag:B", 10, format!("found '||', {TERM}")),
        ("Language=Java", 1, format!("found 'Language=Java', {TERM}")),
        ("true", 1, format!("found 'true', {TERM}")),
        ("tag", 1, format!("found 'tag', {TERM}")),
        ("tag :A", 1, format!("found 'tag', {TERM}")),
        (":A", 1, format!("found ':A', {TERM}")),
        ("()", 2, format!("found ')', {TERM}")),
        ("!", 2, format!("found the end, {TERM}")),
        ("platform:kind=cf", 1, "unknown predicate 'platform', expected 'tag'".to_owned()),
        ("tag:A || Tag:B", 10, "unknown predicate 'Tag', expected 'tag'".to_owned()),
        ("tag:", 5, "found the end, expected a category such as Language".to_owned()),
        ("tag: A", 5, "found a space, expected a category such as Language".to_owned()),
        ("tag:=A", 5, "found '=A', expected a category such as Language".to_owned()),
        ("tag:A=", 7, format!("found the end, {TAG}")),
        ("(tag:A=)", 8, format!("found ')', {TAG}")),
        ("tag:A==B", 7, format!("found '=B', {TAG}")),
        ("tag:A!=B", 6, "found '!=B', expected '='; to negate, put '!' before 'tag:'".to_owned()),
        ("tag:A=\"\"", 7, "a tag must not be empty".to_owned()),
        ("tag:\"\"", 5, "a category must not be empty".to_owned()),
        ("tag:A=\"b", 7, "these quotes are never closed".to_owned()),
        ("tag:A=\"b\\n\"", 10, "found 'n', expected '\"' or '\\' after '\\'".to_owned()),
        ("tag:A=\"b\\", 10, "found the end, expected '\"' or '\\' after '\\'".to_owned()),
        ("tag:A=Spring Boot", 14, format!("found 'Boot', expected '&&', '||' or the end; {QUOTES}")),
        ("tag:A = B", 7, format!("found '=', expected '&&', '||' or the end; {QUOTES}")),
        ("tag:A & tag:B", 7, format!("found '&', expected '&&', '||' or the end; {QUOTES}")),
        ("tag:A=b(c)", 8, format!("found '(', expected '&&', '||' or the end; {QUOTES}")),
        ("tag:A=5\"", 8, format!("found '\"', expected '&&', '||' or the end; {QUOTES}")),
        ("tag:A)", 6, format!("found ')', expected '&&', '||' or the end; {QUOTES}")),
        ("(tag:A", 7, format!("found the end, expected '&&', '||' or ')'; {QUOTES}")),
        ("(tag:A tag:B)", 8, format!("found 'tag:B', expected '&&', '||' or ')'; {QUOTES}")),
        ("tag:Ä=ö && ü", 12, format!("found 'ü', {TERM}")),
    ] {
        let error = Selector::parse(text).unwrap_err();
        assert_eq!((error.column, error.message.as_str()), (column, message.as_str()), "{text}");
    }
    assert_eq!(refused("tag:"), "at column 5: found the end, expected a category such as Language");
}

#[test]
fn a_long_text_is_shown_shortened() {
    assert!(refused(&"x".repeat(1000)).contains(&format!("found '{}…'", "x".repeat(32))));
}

#[test]
fn a_selector_that_is_too_long_is_refused() {
    let exact = format!("tag:{}", "x".repeat(MAX_BYTES - 4));
    assert_eq!(written(&exact), exact);
    assert_eq!(refused(&format!("{exact}x")), "at column 1: a selector has at most 4096 bytes");
    // It fits, but not with the spaces it is written with.
    let dense = vec!["tag:A"; MAX_BYTES / 7].join("&&");
    assert!(dense.len() <= MAX_BYTES);
    assert_eq!(refused(&dense), "at column 1: a selector has at most 4096 bytes");
}

#[test]
fn a_selector_that_is_nested_too_deep_is_refused() {
    let nested = |depth: usize| format!("{}tag:A{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(written(&nested(MAX_NESTING)), "tag:A");
    assert_eq!(
        refused(&nested(MAX_NESTING + 1)),
        "at column 65: at most 64 parentheses and '!' may be open at once"
    );
    let negated = |depth: usize| format!("{}tag:A", "!".repeat(depth));
    assert_eq!(written(&negated(MAX_NESTING)), negated(MAX_NESTING));
    assert_eq!(
        refused(&negated(MAX_NESTING + 1)),
        "at column 65: at most 64 parentheses and '!' may be open at once"
    );
    assert!(Selector::parse(&"(".repeat(MAX_BYTES)).is_err());
    // Side by side is not nested.
    assert!(Selector::parse(&vec!["(!tag:A)"; 300].join("||")).is_ok());
}

/// A selector as the tests see it.
#[derive(Debug, Clone)]
enum Model {
    Tag(String, Option<String>),
    Not(Box<Model>),
    And(Box<Model>, Box<Model>),
    Or(Box<Model>, Box<Model>),
}

impl Model {
    /// In parentheses and quotes wherever possible.
    fn text(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
        match self {
            Self::Tag(category, None) => format!("tag:{}", quoted(category)),
            Self::Tag(category, Some(tag)) => format!("tag:{}={}", quoted(category), quoted(tag)),
            Self::Not(one) => format!("!({})", one.text()),
            Self::And(one, two) => format!("({})&&({})", one.text(), two.text()),
            Self::Or(one, two) => format!("({})||({})", one.text(), two.text()),
        }
    }

    fn holds(&self, has: &dyn Fn(&str, Option<&str>) -> bool) -> bool {
        match self {
            Self::Tag(category, tag) => has(category, tag.as_deref()),
            Self::Not(one) => !one.holds(has),
            Self::And(one, two) => one.holds(has) && two.holds(has),
            Self::Or(one, two) => one.holds(has) || two.holds(has),
        }
    }
}

fn any_model() -> impl Strategy<Value = Model> {
    let text = "[ab]|[ab=!&|()\"\\\\ #é]{1,4}";
    let leaf = (text, prop::option::of(text)).prop_map(|(category, tag)| Model::Tag(category, tag));
    leaf.prop_recursive(6, 24, 2, |inner| {
        let pair = || (inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|one| Model::Not(Box::new(one))),
            pair().prop_map(|(one, two)| Model::And(Box::new(one), Box::new(two))),
            pair().prop_map(|(one, two)| Model::Or(Box::new(one), Box::new(two))),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ignored = Selector::parse(&text);
    }

    #[test]
    fn almost_selectors_read_back_or_are_refused_within_the_text(
        text in "(tag:|[ab]|&&|\\|\\||[ =!()&|\"\\\\é]|tag:a=b){0,30}",
    ) {
        match Selector::parse(&text) {
            Ok(selector) => prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector)),
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.column)),
        }
    }

    #[test]
    fn what_is_written_reads_back_and_means_the_same(model in any_model(), held in any::<u64>()) {
        let selector = Selector::parse(&model.text()).unwrap();
        prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector.clone()));
        // Any fixed answer per question will do.
        let has = |category: &str, tag: Option<&str>| {
            let bytes = category.bytes().chain([0]).chain(tag.unwrap_or("\u{1}").bytes());
            let bit = bytes.fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))) % 64;
            held >> bit & 1 == 1
        };
        prop_assert_eq!(selector.matches(has), model.holds(&has));
    }
}

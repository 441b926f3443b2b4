//! Which names a pattern means.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in what tests share")]

use muster_expr::NamePattern;
use muster_expr::name_pattern::MAX_BYTES;
use proptest::prelude::*;

fn matches(pattern: &str, name: &str) -> bool {
    NamePattern::parse(pattern).unwrap().matches(name)
}

fn refused(pattern: &str) -> String {
    NamePattern::parse(pattern).unwrap_err().to_string()
}

#[test]
fn a_name_matches_only_itself() {
    for name in ["analyzer", "A_b-9", "java.analyzer", "1.5", "...", "-"] {
        assert!(matches(name, name), "{name}");
        assert!(!matches(name, &format!("{name}x")), "{name}");
        assert!(NamePattern::parse(name).unwrap().is_name());
    }
    assert!(!matches("java.analyzer", "javaxanalyzer"));
    assert!(!matches("analyzer", "Analyzer"));
}

#[test]
fn nothing_matches_nothing() {
    assert!(!matches("", ""));
    assert!(!matches("", "analyzer"));
    assert!(!matches(".*", ""));
    assert_eq!(NamePattern::parse("").unwrap(), NamePattern::default());
}

#[test]
fn anything_else_is_a_regular_expression_of_the_whole_name() {
    assert!(matches("java-.*", "java-analyzer"));
    assert!(matches("analyzer|scanner", "scanner"));
    assert!(!matches("analyzer|scanner", "analyzer-x"));
    assert!(!matches("analyzer|scanner", "x-scanner"));
    assert!(!matches("java-.*", "not-java-x"));
    assert!(matches("^analyzer$", "analyzer"));
    assert!(!matches("^analyzer$", "analyzer\n"));
    assert!(matches("(?i)ANALYZER(s)?", "analyzers"));
    assert!(matches(r"\w+-\d{1,63}", "java-17"));
    assert!(!NamePattern::parse(".*").unwrap().is_name());
}

#[test]
fn alternatives_are_tried_until_one_fits_the_whole_name() {
    assert!(matches("java|java-analyzer|(x)", "java-analyzer"));
}

#[test]
fn a_bad_expression_is_refused_with_its_text_and_the_reason() {
    for (pattern, why) in [
        ("a(", "unclosed group"),
        ("*", "repetition operator missing expression"),
        ("[a", "unclosed character class"),
        ("a)|(b", "unopened group"),
        ("a{5,2}", "invalid repetition count range, the start must be <= the end"),
        (r"\p{Greek}", "Unicode not allowed here"),
        ("(?x)a # b", "unclosed group"),
    ] {
        assert_eq!(refused(pattern), format!("{pattern:?} is not a name or a regular expression: {why}"));
    }
}

#[test]
fn an_expression_has_limits() {
    assert!(refused(&"(a)".repeat(MAX_BYTES)).ends_with("it has more than 1024 bytes"));
    assert!(
        refused("((a{100}){100}){100}").ends_with("it takes up too much memory; use shorter repetitions")
    );
    assert!(NamePattern::parse(&"(".repeat(MAX_BYTES)).is_err());
    assert!(NamePattern::parse(&format!("{}{}", "(".repeat(65), ")".repeat(65))).is_err());
    assert!(NamePattern::parse(&"a".repeat(MAX_BYTES)).is_ok());
}

#[test]
fn a_pattern_is_written_as_it_was_read() {
    assert_eq!(NamePattern::parse("a|b").unwrap().to_string(), "a|b");
    assert_eq!(NamePattern::parse("a|b").unwrap().as_str(), "a|b");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(pattern in ".{0,60}", name in ".{0,20}") {
        if let Ok(pattern) = NamePattern::parse(&pattern) {
            pattern.matches(&name);
        }
    }

    #[test]
    fn almost_expressions_match_whole_names_only(pattern in "([ab.]|[()|*+?]|\\[ab\\]){0,12}", name in "[ab]{1,6}") {
        if let Ok(pattern) = NamePattern::parse(&pattern)
            && !pattern.is_name()
        {
            let whole = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
            prop_assert_eq!(pattern.matches(&name), whole.is_match(&name));
        }
    }
}

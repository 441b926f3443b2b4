//! Which texts may name things: the rules of Kubernetes, with its words where a rule is broken.
//!
//! Each function answers for one text and returns the sentence a user should see. None of them allocates when
//! the text is good.

use crate::metadata::StringMap;

/// Longest DNS-1123 subdomain.
pub const MAX_SUBDOMAIN: usize = 253;
/// Longest DNS-1123 label, label value and name part of a qualified name.
pub const MAX_LABEL: usize = 63;
/// Characters the server adds to `generateName`.
pub const SUFFIX: usize = 5;
/// Bytes that the keys and values of all annotations may have together.
pub const MAX_ANNOTATIONS: usize = 256 * 1024;
/// Longest path.
const MAX_PATH: usize = 1024;
/// Longest part of a path.
const MAX_SEGMENT: usize = 255;

const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
    validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
    validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', \
    '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
    '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Names of most objects: `my-task`, `example.com`.
pub fn dns1123_subdomain(text: &str) -> Result<(), String> {
    at_most(MAX_SUBDOMAIN, text)?;
    if text.split('.').all(is_dns1123) { Ok(()) } else { Err(SUBDOMAIN_RULE.to_owned()) }
}

/// Names of namespaces: `default`.
pub fn dns1123_label(text: &str) -> Result<(), String> {
    at_most(MAX_LABEL, text)?;
    if is_dns1123(text) { Ok(()) } else { Err(LABEL_RULE.to_owned()) }
}

/// Keys of labels: `app`, `example.com/app`.
pub fn qualified_name(text: &str) -> Result<(), String> {
    let name = match text.split_once('/') {
        None => text,
        Some(("", _)) => return Err("prefix part must be non-empty".to_owned()),
        Some((prefix, name)) if !name.contains('/') => {
            dns1123_subdomain(prefix).map_err(|rule| format!("prefix part {rule}"))?;
            name
        }
        Some(_) => {
            return Err(format!(
                "a qualified name {QUALIFIED_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
    };
    if name.is_empty() {
        return Err("name part must be non-empty".to_owned());
    }
    at_most(MAX_LABEL, name).map_err(|rule| format!("name part {rule}"))?;
    if is_label(name) { Ok(()) } else { Err(format!("name part {QUALIFIED_RULE}")) }
}

/// Values of labels; empty is a value.
pub fn label_value(text: &str) -> Result<(), String> {
    at_most(MAX_LABEL, text)?;
    if text.is_empty() || is_label(text) { Ok(()) } else { Err(LABEL_VALUE_RULE.to_owned()) }
}

/// Names of finalizers: `example.com/cleanup`, or one of the few without a domain such as `orphan`.
pub fn finalizer_name(text: &str) -> Result<(), String> {
    qualified_name(text)
}

/// Keys of annotations: as for labels, but the domain may have upper case.
pub fn annotation_key(text: &str) -> Result<(), String> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        qualified_name(&text.to_ascii_lowercase())
    } else {
        qualified_name(text)
    }
}

/// How much all annotations of an object may hold together.
pub fn annotations_size(annotations: &StringMap) -> Result<(), String> {
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size <= MAX_ANNOTATIONS {
        return Ok(());
    }
    Err(format!("annotations have {size} bytes together, may not be more than {MAX_ANNOTATIONS} bytes"))
}

/// What may stand in `generateName`: the beginning of a DNS-1123 subdomain, which may end with a dash.
pub fn generate_name(prefix: &str) -> Result<(), String> {
    match prefix.strip_suffix('-') {
        // A dash at the end will have characters after it, so whatever stands before it may end like that too.
        Some(before) if !before.is_empty() => {
            at_most(MAX_SUBDOMAIN, prefix)?;
            dns1123_subdomain(before.trim_end_matches('-'))
        }
        _ => dns1123_subdomain(prefix),
    }
}

/// The name made from a valid prefix and the characters the server chose, cut so that it fits a label.
pub fn generated_name(prefix: &str, suffix: &str) -> String {
    let room = MAX_LABEL.saturating_sub(suffix.len().max(SUFFIX));
    let end = (0..=room.min(prefix.len())).rev().find(|end| prefix.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{suffix}", &prefix[..end])
}

/// Paths that lie below the directory they are looked up in: `a.log`, `a/b.log`. Names joined by `/`, none of them empty, `.` or
/// `..`, and nothing unprintable.
pub fn path_below(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_PATH {
        return Err("it is too long");
    }
    if text.starts_with('/') {
        return Err("it begins with a slash");
    }
    for segment in text.split('/') {
        match segment {
            "" => return Err("a part of it is empty"),
            "." | ".." => return Err("`.` and `..` name no file"),
            _ if segment.len() > MAX_SEGMENT => return Err("a part of it is longer than 255 bytes"),
            _ if segment.chars().any(char::is_control) => return Err("it contains a control character"),
            _ => {}
        }
    }
    Ok(())
}

fn at_most(limit: usize, text: &str) -> Result<(), String> {
    if text.len() <= limit { Ok(()) } else { Err(format!("must be no more than {limit} characters")) }
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_dns1123(text: &str) -> bool {
    is_between_ends(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), b"-")
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_label(text: &str) -> bool {
    is_between_ends(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Both ends are of one sort; between them further bytes may stand.
fn is_between_ends(text: &str, end: impl Fn(u8) -> bool, between: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|first| end(*first))
        && bytes.last().is_some_and(|last| end(*last))
        && bytes.iter().all(|byte| end(*byte) || between.contains(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn object_names_are_subdomains() {
        for good in ["a", "a1", "my-task", "example.com", "1.2.3", &"a".repeat(253)] {
            assert_eq!(dns1123_subdomain(good), Ok(()), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a..b", ".a", "a_b", "a b", "é"] {
            assert_eq!(dns1123_subdomain(bad), Err(SUBDOMAIN_RULE.to_owned()), "{bad}");
        }
        assert_eq!(
            dns1123_subdomain(&"a".repeat(254)),
            Err("must be no more than 253 characters".to_owned())
        );
    }

    #[test]
    fn namespaces_are_labels() {
        assert_eq!(dns1123_label("default"), Ok(()));
        assert_eq!(dns1123_label("a.b"), Err(LABEL_RULE.to_owned()));
        assert_eq!(dns1123_label(&"a".repeat(64)), Err("must be no more than 63 characters".to_owned()));
    }

    #[test]
    fn paths_lead_below_where_they_begin() {
        for good in ["a", "a/b.log", "..a/b..", "ä b"] {
            assert_eq!(path_below(good), Ok(()), "{good}");
        }
        for bad in ["", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a\0", "a\n", &"a".repeat(256)] {
            assert!(path_below(bad).is_err(), "{bad}");
        }
        assert_eq!(path_below(&"a/".repeat(600)), Err("it is too long"));
    }

    #[test]
    fn label_keys_are_qualified_names() {
        for good in ["a", "A_b.c-D", "example.com/app", "1/2"] {
            assert_eq!(qualified_name(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "name part must be non-empty"),
            ("a/", "name part must be non-empty"),
            ("/a", "prefix part must be non-empty"),
            ("a/b/c", "a qualified name must consist of"),
            ("A.com/b", "prefix part a lowercase RFC 1123 subdomain"),
            ("-a", "name part must consist of"),
            ("a=b", "name part must consist of"),
            (&"a".repeat(64), "name part must be no more than 63 characters"),
        ] {
            assert!(qualified_name(bad).is_err_and(|error| error.starts_with(why)), "{bad}");
        }
        assert_eq!(finalizer_name("example.com/cleanup"), Ok(()));
        assert_eq!(annotation_key("Example.com/Key"), Ok(()));
        assert!(annotation_key("a b").is_err());
    }

    #[test]
    fn label_values_may_be_empty() {
        for good in ["", "a", "A_b.c-D"] {
            assert_eq!(label_value(good), Ok(()), "{good}");
        }
        for bad in ["-", "a b", "a/b", "é", &"a".repeat(64)] {
            assert!(label_value(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn annotations_have_a_total_limit() {
        let mut annotations = StringMap::from([("a".to_owned(), "x".repeat(MAX_ANNOTATIONS - 1))]);
        assert_eq!(annotations_size(&annotations), Ok(()));
        annotations.insert("b".to_owned(), String::new());
        assert!(annotations_size(&annotations).is_err());
    }

    #[test]
    fn generate_name_may_end_with_a_dash() {
        for good in ["a", "analyze-", "a.b-", "a--"] {
            assert_eq!(generate_name(good), Ok(()), "{good}");
        }
        for bad in ["", "-", "--", "-a", "A-", "a.-", "a."] {
            assert!(generate_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_long_prefix_is_cut_so_that_the_name_fits() {
        assert_eq!(generated_name("analyze-", "x7k2p"), "analyze-x7k2p");
        assert_eq!(generated_name(&"a".repeat(253), "x7k2p"), format!("{}x7k2p", "a".repeat(58)));
    }

    proptest! {
        #[test]
        fn any_text_is_judged(text in ".{0,300}", suffix in ".{0,80}") {
            let _ignored = dns1123_subdomain(&text);
            let _ignored = dns1123_label(&text);
            let _ignored = qualified_name(&text);
            let _ignored = label_value(&text);
            let _ignored = finalizer_name(&text);
            let _ignored = annotation_key(&text);
            let _ignored = generate_name(&text);
            let _ignored = generated_name(&text, &suffix);
        }

        #[test]
        fn rules_agree_with_the_published_expressions(text in "[-a-cA-C0-1_./]{0,8}") {
            let matches = |expression: &str| Regex::new(expression).unwrap().is_match(&text);
            prop_assert_eq!(
                dns1123_subdomain(&text).is_ok(),
                matches(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
            );
            prop_assert_eq!(dns1123_label(&text).is_ok(), matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
            prop_assert_eq!(label_value(&text).is_ok(), matches("^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"));
        }

        #[test]
        fn names_from_a_valid_prefix_are_valid(
            prefix in "([a-c0-1]([-a-c]{0,9}[a-c])?[.]){0,8}[a-c]{1,9}-{0,3}",
            suffix in "[a-z0-9]{5}",
        ) {
            prop_assert_eq!(generate_name(&prefix), Ok(()));
            let name = generated_name(&prefix, &suffix);
            prop_assert_eq!(dns1123_subdomain(&name), Ok(()));
            prop_assert!(name.len() <= MAX_LABEL);
        }
    }
}

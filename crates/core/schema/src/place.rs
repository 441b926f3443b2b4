//! Where in a document something stands, as people write it: `spec.pools[0].size`, `spec.labels["a.b"]`.

/// The place of a field.
pub(crate) fn field(at: &str, name: &str) -> String {
    let plain =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_$".contains(&byte));
    match (plain, at.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{at}.{name}"),
        (false, _) => format!("{at}[{name:?}]"),
    }
}

/// The place of an item.
pub(crate) fn item(at: &str, index: usize) -> String {
    format!("{at}[{index}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_read_as_places_are_quoted() {
        assert_eq!(field("spec", "region"), "spec.region");
        assert_eq!(field("", "region"), "region");
        assert_eq!(field("spec", "a.b"), "spec[\"a.b\"]");
        assert_eq!(field("spec", ""), "spec[\"\"]");
        assert_eq!(item("spec.pools", 2), "spec.pools[2]");
    }
}

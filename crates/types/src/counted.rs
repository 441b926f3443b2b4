//! Numbers and their nouns in sentences for people.

/// A number with the words for one or for many: `1 robot matches`, `2 robots match`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

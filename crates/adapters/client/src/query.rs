//! Paths and queries, percent-encoded.

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The query of a URL.
#[derive(Debug, Default)]
pub struct Query(String);

impl Query {
    /// Adds a parameter.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(name);
        self.0.push('=');
        encode(value, &mut self.0);
        self
    }

    /// Adds a parameter that has a value.
    pub fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) if !value.is_empty() => self.with(name, value),
            _ => self,
        }
    }

    /// Adds a parameter if it is wanted.
    pub fn with_if(self, wanted: bool, name: &str, value: &str) -> Self {
        if wanted { self.with(name, value) } else { self }
    }

    /// The text with its question mark, or nothing.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One segment of a path.
pub fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    encode(text, &mut out);
    out
}

fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_segment() {
        assert_eq!(segment("a/../b?c#d"), "a%2F..%2Fb%3Fc%23d");
        assert_eq!(segment("é"), "%C3%A9");
    }

    #[test]
    fn only_parameters_with_a_value_are_sent() {
        let query = Query::default()
            .with_some("labelSelector", Some("a in (b,c)"))
            .with_some("fieldSelector", None)
            .with_if(true, "force", "true")
            .with_if(false, "dryRun", "All");
        assert_eq!(query.as_str(), "?labelSelector=a%20in%20%28b%2Cc%29&force=true");
    }
}

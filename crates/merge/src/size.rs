//! How many bytes a value takes as JSON, without writing it.

use std::io;

use serde_json::Value;

/// The length of the value as compact JSON.
pub(crate) fn byte_len(value: &Value) -> usize {
    let mut counter = Counter(0);
    // Writing a `Value` cannot fail; if it ever does, the value is too large for every limit.
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_length_is_that_of_the_text() {
        let value = json!({"a": [1, "\u{1}é\"", null], "b": {}});
        assert_eq!(byte_len(&value), value.to_string().len());
    }
}

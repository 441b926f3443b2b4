//! Which field of a JSON text a place in it belongs to.
//!
//! A reader that keeps the path while it reads costs every reading; this one goes over the text once more, when there is something to
//! tell.

use std::fmt::Write as _;

use serde_json::Error;

/// The path of the field in which reading stopped, such as `spec.env[2].name`; empty for the document itself.
pub fn field_path(json: &[u8], error: &Error) -> String {
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let mut walk = Walk::default();
    walk.go_on(&json[..(before + error.column()).min(json.len())]);
    walk.path()
}

/// The paths of the fields whose values begin at some places of valid JSON, given in its order.
pub fn paths_at(json: &[u8], places: &[usize]) -> Vec<String> {
    let (mut walk, mut at) = (Walk::default(), 0);
    let path = |place: &usize| {
        walk.go_on(json.get(at..*place).unwrap_or_default());
        at = *place;
        walk.path()
    };
    places.iter().map(path).collect()
}

/// Inside what reading is.
enum Frame<'a> {
    /// An object, and its key once that was read.
    Object(Option<&'a [u8]>),
    /// A list, and the place in it.
    List(usize),
}

/// A way through a text.
#[derive(Default)]
struct Walk<'a>(Vec<Frame<'a>>);

impl<'a> Walk<'a> {
    /// Over what comes next in the text. It may end between two values, or for good.
    fn go_on(&mut self, text: &'a [u8]) {
        let frames = &mut self.0;
        let mut rest = text;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'{' => frames.push(Frame::Object(None)),
                b'[' => frames.push(Frame::List(0)),
                b'}' | b']' => drop(frames.pop()),
                b',' => match frames.last_mut() {
                    Some(Frame::Object(key)) => *key = None,
                    Some(Frame::List(place)) => *place += 1,
                    None => {}
                },
                b'"' => {
                    let text;
                    (text, rest) = split_text(after);
                    if let Some(Frame::Object(key @ None)) = frames.last_mut() {
                        *key = Some(text);
                    }
                }
                _ => {}
            }
        }
    }

    /// Where this is.
    fn path(&self) -> String {
        let mut path = String::new();
        for frame in &self.0 {
            match frame {
                Frame::Object(Some(key)) => {
                    let dot = if path.is_empty() { "" } else { "." };
                    // Writing to a text cannot fail.
                    write!(path, "{dot}{}", String::from_utf8_lossy(key)).ok();
                }
                Frame::Object(None) => {}
                Frame::List(place) => drop(write!(path, "[{place}]")),
            }
        }
        path
    }
}

/// The text up to the quote that ends it, as it is written, and what comes behind.
fn split_text(json: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    while let Some(byte) = json.get(end) {
        match byte {
            b'"' => return (&json[..end], &json[end + 1..]),
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    (json, &[])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Outer {
        #[allow(dead_code, reason = "only reading it matters")]
        number: u8,
        #[allow(dead_code, reason = "only reading it matters")]
        list: Vec<Inner>,
        #[allow(dead_code, reason = "only reading it matters")]
        map: BTreeMap<String, Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[allow(dead_code, reason = "only reading it matters")]
        name: String,
        #[serde(default)]
        #[allow(dead_code, reason = "only reading it matters")]
        inner: Option<Box<Inner>>,
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        for (json, path) in [
            (r#"{"number": "x"}"#, "number"),
            (r#"{"number": {"a": 1}}"#, "number"),
            (r#"{"number": [1]}"#, "number"),
            (r#"{"number": 300, "list": []}"#, "number"),
            (r#"{"list": [{"name": "a"}, {"name": 1}]}"#, "list[1].name"),
            (r#"{"list": [{"name": "a, \"} ]"}, {"name": true}]}"#, "list[1].name"),
            (r#"{"list": [{"name": "a"}, {}]}"#, "list[1]"),
            (r#"{"list": [{"name": "a", "inner": {}}]}"#, "list[0].inner"),
            ("{\n \"map\": {\n  \"a\": {\"name\": \"x\"},\n  \"b\": {\"name\": 7}\n}}", "map.b.name"),
            (r#"{"list": {"name": 1}}"#, "list"),
            ("7", ""),
            ("", ""),
        ] {
            let error = serde_json::from_str::<Outer>(json).unwrap_err();
            assert_eq!(field_path(json.as_bytes(), &error), path, "{json}: {error}");
        }
    }

    #[test]
    fn text_that_is_no_json_has_a_path_as_well() {
        for json in [
            &b"{\"number\":\"\\"[..],
            b"\xff\xfe",
            b"]]]]",
            b"{\"a\":[[[{\"",
            b"\n\n\n",
            b"{\"number\": 1,,}",
        ] {
            if let Err(error) = serde_json::from_slice::<Outer>(json) {
                field_path(json, &error);
            }
        }
    }

    #[test]
    fn fields_are_named_by_where_their_values_begin() {
        let json = r#"{"a": {"b, \"": 1, "c": [{"d": [2]}, {"e": {"x": 0}, "f": 4}]}, "g": 5}"#;
        let places: Vec<_> =
            ["1, ", "[2]", "{\"x\"", "4}", "5}"].map(|value| json.find(value).unwrap()).into();
        let expected = [r#"a.b, \""#, "a.c[0].d", "a.c[1].e", "a.c[1].f", "g"];
        assert_eq!(paths_at(json.as_bytes(), &places), expected);
    }
}

//! Where a column of `kubectl get` finds its value: `.spec.region`, `.spec.pools[0].size`,
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

/// Longest path.
const MAX_BYTES: usize = 256;

/// A path that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnPath(Vec<Step>);

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Item(usize),
    /// The first item whose field has this text.
    Where(String, String),
}

impl ColumnPath {
    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("may be {MAX_BYTES} bytes long"));
        }
        if !text.starts_with('.') {
            return Err("must start with a dot, as .spec.region does".to_owned());
        }
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, behind) = if let Some(named) = rest.strip_prefix('.') {
                let end = named.find(['.', '[']).unwrap_or(named.len());
                (Step::Field(named[..end].to_owned()), &named[end..])
            } else if let Some(inside) = rest.strip_prefix('[') {
                let end = closing(inside).ok_or("has a [ without its ]")?;
                (bracket(&inside[..end])?, &inside[end + 1..])
            } else {
                return Err(format!("cannot be read from {rest:?} on"));
            };
            if step == Step::Field(String::new()) {
                return Err("has a dot without a name behind it".to_owned());
            }
            steps.push(step);
            rest = behind;
        }
        Ok(Self(steps))
    }

    /// The first field it goes into.
    pub fn root(&self) -> &str {
        match self.0.first() {
            Some(Step::Field(name)) => name,
            _ => "",
        }
    }

    /// The value in a document, if there is one.
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Item(index) => value.get(index),
            Step::Where(field, text) => {
                value.as_array()?.iter().find(|item| item.get(field).and_then(Value::as_str) == Some(text))
            }
        })
    }
}

/// The end of a bracket; one inside quotes does not count.
fn closing(inside: &str) -> Option<usize> {
    let mut quote = None;
    inside.char_indices().find_map(|(at, letter)| match (quote, letter) {
        (None, ']') => Some(at),
        (None, '\'' | '"') => {
            quote = Some(letter);
            None
        }
        (Some(open), _) if open == letter => {
            quote = None;
            None
        }
        _ => None,
    })
}

fn bracket(inside: &str) -> Result<Step, String> {
    if let Some(name) = unquoted(inside) {
        return Ok(Step::Field(name.to_owned()));
    }
    if let Ok(index) = inside.parse() {
        return Ok(Step::Item(index));
    }
    let condition = inside.strip_prefix("?(@.").and_then(|rest| rest.strip_suffix(')'));
    let (field, text) = condition
        .and_then(|condition| condition.split_once("=="))
        .ok_or_else(|| format!("has [{inside}]; use [0], ['name'] or [?(@.field==\"text\")]"))?;
    let text = unquoted(text.trim()).ok_or("compares with text alone, which stands in quotes")?;
    Ok(Step::Where(field.trim().to_owned(), text.to_owned()))
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_finds_its_value_or_nothing() {
        let document = json!({
            "spec": {"region": "eu", "pools": [{"size": 3}], "a.b": {"c]": true}},
            "status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]},
        });
        for (path, value) in [
            (".spec.region", json!("eu")),
            (".spec.pools[0].size", json!(3)),
            (".spec['a.b'][\"c]\"]", json!(true)),
            (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
            (".status.conditions[?(@.type=='Ready')].status", json!("True")),
        ] {
            assert_eq!(ColumnPath::parse(path).unwrap().find(&document), Some(&value), "{path}");
        }
        for path in
            [".spec.nope", ".spec.region.deeper", ".spec.pools[1]", ".status.conditions[?(@.type=='No')]"]
        {
            assert_eq!(ColumnPath::parse(path).unwrap().find(&document), None, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused_with_a_reason() {
        for (path, word) in [
            ("", "start with a dot"),
            ("spec", "start with a dot"),
            (".", "without a name"),
            (".spec..a", "without a name"),
            (".spec[0", "without its ]"),
            (".spec[*]", "use [0]"),
            (".spec[?(@.a==1)]", "quotes"),
            (".spec[0]a", "from \"a\" on"),
        ] {
            let said = ColumnPath::parse(path).unwrap_err();
            assert!(said.contains(word), "{path}: {said}");
        }
        assert!(ColumnPath::parse(&".a".repeat(200)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_path_panics(path in ".*", tail in r"\.?\[[^a-z]*\]?") {
            drop(ColumnPath::parse(&path));
            drop(ColumnPath::parse(&format!(".a{tail}")));
        }
    }
}

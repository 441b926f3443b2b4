//! Objects as JSON or YAML: one by itself, or many as a `List`.
//!
//! The parts of a list are rendered as they come, so a long list is never held whole.

use serde_json::Value;

/// The language of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// JSON, indented.
    Json,
    /// YAML.
    Yaml,
}

/// A `List` that is being printed.
#[derive(Debug)]
pub struct List {
    language: Language,
    any: bool,
}

impl List {
    /// A list of which nothing is printed yet.
    pub fn new(language: Language) -> Self {
        Self { language, any: false }
    }

    /// The text of one more item.
    pub fn item(&mut self, object: &Value) -> String {
        let first = !std::mem::replace(&mut self.any, true);
        let text = render(self.language, object);
        match self.language {
            Language::Json => {
                let before = if first { LIST_JSON } else { ",\n" };
                let text = indent(text.trim_end(), "        ", "        ");
                format!("{before}{}", text.trim_end())
            }
            Language::Yaml => {
                let before = if first { LIST_YAML } else { "" };
                format!("{before}{}", indent(&text, "- ", "  "))
            }
        }
    }

    /// What stands behind the last item.
    pub fn end(&self) -> &'static str {
        match (self.language, self.any) {
            (Language::Json, true) => "\n    ]\n}\n",
            (Language::Json, false) => {
                "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"List\",\n    \"metadata\": {},\n    \"items\": []\n}\n"
            }
            (Language::Yaml, true) => "",
            (Language::Yaml, false) => "apiVersion: v1\nkind: List\nmetadata: {}\nitems: []\n",
        }
    }
}

const LIST_JSON: &str =
    "{\n    \"apiVersion\": \"v1\",\n    \"kind\": \"List\",\n    \"metadata\": {},\n    \"items\": [\n";
const LIST_YAML: &str = "apiVersion: v1\nkind: List\nmetadata: {}\nitems:\n";

/// One document with a newline at its end.
pub fn render(language: Language, value: &Value) -> String {
    match language {
        Language::Json => {
            let mut text = Vec::new();
            let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
            let mut serializer = serde_json::Serializer::with_formatter(&mut text, formatter);
            // A Value can always be written.
            drop(serde::Serialize::serialize(value, &mut serializer));
            text.push(b'\n');
            String::from_utf8(text).unwrap_or_default()
        }
        Language::Yaml => {
            let mut text = serde_saphyr::to_string(value).unwrap_or_else(|_| format!("{value}\n"));
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text
        }
    }
}

/// Puts something before each line; lines without text stay empty.
pub fn indent(text: &str, first: &str, others: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for (index, line) in text.lines().enumerate() {
        let before = if index == 0 { first } else { others };
        if !line.is_empty() {
            out.push_str(before);
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Removes who owns which field: of interest to few, and long.
pub fn hide_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(language: Language, objects: &[Value]) -> String {
        let mut list = List::new(language);
        let items: String = objects.iter().map(|object| list.item(object)).collect();
        items + list.end()
    }

    fn objects() -> Vec<Value> {
        vec![
            json!({"kind": "Task", "metadata": {"name": "a"}, "spec": {"text": "two\n\nlines\n", "list": [{"a": 1}]}}),
            json!({"kind": "Task", "metadata": {"name": "b"}, "spec": {"yes": "no", "empty": {}}}),
        ]
    }

    #[test]
    fn lists_can_be_read_back() {
        let expected =
            |items: &[Value]| json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
        for items in [&objects()[..], &objects()[..1], &[]] {
            let json: Value = serde_json::from_str(&list(Language::Json, items)).unwrap();
            assert_eq!(json, expected(items));
            let yaml: Value = serde_saphyr::from_str(&list(Language::Yaml, items)).unwrap();
            assert_eq!(yaml, expected(items));
        }
    }

    #[test]
    fn a_list_in_yaml_looks_as_people_write_it() {
        let text = list(Language::Yaml, &[json!({"kind": "Task", "metadata": {"name": "a"}})]);
        assert_eq!(
            text,
            "apiVersion: v1\nkind: List\nmetadata: {}\nitems:\n- kind: Task\n  metadata:\n    name: a\n"
        );
    }

    #[test]
    fn a_list_in_json_is_indented_as_a_whole() {
        let text = list(Language::Json, &[json!({"kind": "Task"})]);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["items"][0]["kind"], "Task");
        assert!(
            text.contains("\n        {\n            \"kind\": \"Task\"\n        }\n    ]\n}\n"),
            "{text}"
        );
    }

    #[test]
    fn managed_fields_can_be_hidden() {
        let mut object = json!({"metadata": {"name": "a", "managedFields": [1]}});
        hide_managed_fields(&mut object);
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }
}

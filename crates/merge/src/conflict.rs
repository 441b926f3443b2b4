//! A field that a config would change and somebody else owns.
//!
//! What is reported is bounded: a small config can conflict over very many fields with very long names.

use std::fmt::{self, Display, Formatter};
use std::ops::ControlFlow;

use crate::field_set::FieldSet;
use crate::managed_fields::{ManagedFields, Operation};

/// The most conflicts reported at once.
const MAX_CONFLICTS: usize = 1000;

/// The longest path reported, in bytes; longer ones are cut.
const MAX_PATH: usize = 1024;

/// One field somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: String,
    /// How it wrote the field.
    pub operation: Operation,
    /// The API version it wrote in.
    pub api_version: String,
    /// The subresource it wrote to.
    pub subresource: Option<String>,
    /// When it last wrote.
    pub time: Option<String>,
    /// The field, as in `.spec.containers[name="x"].image`.
    pub path: String,
}

/// Says with whom the conflict is, in the words of Kubernetes; the path is told apart from it.
impl Display for Conflict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "conflict with {:?}", self.manager)?;
        if let Some(subresource) = &self.subresource {
            write!(f, " with subresource {subresource:?}")?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
            if let Some(time) = &self.time {
                write!(f, " at {time}")?;
            }
        }
        Ok(())
    }
}

/// The fields of a write that others own, or the first of very many.
pub(crate) fn conflicts_with(others: &ManagedFields, changed: &FieldSet) -> Vec<Conflict> {
    let mut out = Vec::new();
    for entry in others.entries() {
        let writer = &entry.writer;
        let mut report = |path: &str| {
            if out.len() >= MAX_CONFLICTS {
                return ControlFlow::Break(());
            }
            out.push(Conflict {
                manager: writer.manager.clone(),
                operation: writer.operation,
                api_version: writer.api_version.clone(),
                subresource: writer.subresource.clone(),
                time: entry.time.clone(),
                path: cut(path),
            });
            ControlFlow::Continue(())
        };
        if entry.fields.touched_by(changed).visit_paths(&mut String::new(), &mut report).is_break() {
            break;
        }
    }
    out
}

fn cut(path: &str) -> String {
    if path.len() <= MAX_PATH {
        return path.to_owned();
    }
    format!("{}…", path.get(..path.floor_char_boundary(MAX_PATH)).unwrap_or_default())
}

/// All conflicts in one line.
pub(crate) fn summary(conflicts: &[Conflict]) -> String {
    let list: Vec<_> = conflicts.iter().map(|conflict| format!("{conflict}: {}", conflict.path)).collect();
    let noun = if list.len() == 1 { "conflict" } else { "conflicts" };
    format!("{} {noun}: {}", list.len(), list.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed_fields::{Entry, Writer};

    fn conflict(operation: Operation, subresource: Option<&str>, time: Option<&str>) -> Conflict {
        Conflict {
            manager: "hpa".into(),
            operation,
            api_version: "v1".into(),
            subresource: subresource.map(Into::into),
            time: time.map(Into::into),
            path: ".spec.replicas".into(),
        }
    }

    #[test]
    fn conflicts_read_as_kubernetes_words_them() {
        assert_eq!(conflict(Operation::Apply, None, Some("T")).to_string(), "conflict with \"hpa\"");
        assert_eq!(conflict(Operation::Update, None, None).to_string(), "conflict with \"hpa\" using v1");
        assert_eq!(
            conflict(Operation::Update, Some("scale"), Some("T")).to_string(),
            "conflict with \"hpa\" with subresource \"scale\" using v1 at T"
        );
    }

    #[test]
    fn the_summary_counts_and_lists() {
        let one = conflict(Operation::Apply, None, None);
        assert_eq!(summary(std::slice::from_ref(&one)), "1 conflict: conflict with \"hpa\": .spec.replicas");
        assert!(summary(&[one.clone(), one]).starts_with("2 conflicts: "));
    }

    #[test]
    fn very_many_conflicts_with_very_long_names_stay_reportable() {
        let long = format!("f:{}", "é".repeat(2000));
        let leaves: serde_json::Map<_, _> =
            (0..5000).map(|number| (format!("f:{number}"), serde_json::json!({}))).collect();
        let fields = serde_json::json!({ long: leaves });
        let fields = FieldSet::from_fields_v1(&fields).unwrap();
        let writer = Writer {
            manager: "m".into(),
            operation: Operation::Apply,
            api_version: "v1".into(),
            subresource: None,
        };
        let mut others = ManagedFields::default();
        others.add(Entry { writer, time: None, fields: fields.clone() });
        let conflicts = conflicts_with(&others, &fields);
        assert_eq!(conflicts.len(), MAX_CONFLICTS);
        assert!(conflicts.iter().all(|conflict| conflict.path.len() <= MAX_PATH + "…".len()));
    }
}

//! What of a status may be written through the `status` subresource.
//!
//! A status says what was observed and decided. The engine writes it to the store, each state through the transition function,
//! and never comes by here. Reports have subresources and rights of their own: `tasks/report` takes what an attempt says of its
//! work, `statuses` what an adapter says of a managed resource. What is left for `status` itself is what nothing here decides
//! by. A change of anything else is refused by its name, whatever the role of the user is.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::refusal::Causes;

/// What users may write of the status of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusRule {
    /// Everything: a client of this API keeps the status of this kind.
    Open,
    /// These fields and no others; of the others, who writes them and what to do instead.
    Only(&'static [&'static str], &'static str),
}

impl StatusRule {
    /// The rule of kinds whose status the engine alone writes.
    pub const ENGINE: Self =
        Self::Only(&[], "only the engine writes it; change the spec to ask for something else");

    /// Says what of a changed status may not be written.
    pub fn check<T: Serialize>(self, old: &T, new: &T, causes: &mut Causes) {
        let Self::Only(open, why) = self else { return };
        let (old, new) = (fields(old), fields(new));
        let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
        for name in names.filter(|name| old.get(*name) != new.get(*name) && !open.contains(&name.as_str())) {
            causes.forbidden(format!("status.{name}"), why);
        }
    }
}

fn fields<T: Serialize>(status: &T) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn blamed(rule: StatusRule, old: &Value, new: &Value) -> String {
        let mut causes = Causes::default();
        rule.check(old, new, &mut causes);
        format!("{causes:?}")
    }

    #[test]
    fn each_field_that_changed_is_named_and_those_that_are_open_are_not() {
        let rule = StatusRule::Only(&["conditions"], "ask the engine");
        let old = json!({"state": "Succeeded", "attempt": 1, "message": "m"});
        let new = json!({"state": "Ready", "attempt": 1, "conditions": [], "pod": "p"});
        let said = blamed(rule, &old, &new);
        for field in ["status.state", "status.message", "status.pod", "ask the engine"] {
            assert!(said.contains(field), "{said}");
        }
        assert!(!said.contains("status.attempt") && !said.contains("status.conditions"), "{said}");
    }

    #[test]
    fn a_status_that_did_not_change_is_taken() {
        let same = json!({"state": "Running"});
        assert_eq!(blamed(StatusRule::ENGINE, &same, &same), blamed(StatusRule::Open, &same, &json!({})));
    }
}

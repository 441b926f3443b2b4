//! What `kubectl apply` remembers in an annotation, before and after it learned to apply server-side.
//!
//! Fields that it set client-side belong to whoever owned the object before the first apply. To its server-side
//! successor they are its own, so taking them is no conflict; and while the annotation is there it is kept true,
//! so that the old way still works. Both as in Kubernetes, and for the manager `kubectl` alone.

use serde_json::Value;

use crate::collect::fields_of;
use crate::compare::compare_objects;
use crate::field_set::FieldSet;
use crate::schema::Schema;

const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of `live` that client-side apply set and that nobody changed since.
pub(crate) fn inherited(manager: &str, live: &Value, schema: &Schema) -> FieldSet {
    if manager != MANAGER {
        return FieldSet::default();
    }
    let config = annotation(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some((config, fields)) = config.and_then(|config| {
        let fields = fields_of(&config, schema).ok()?;
        (config.get("apiVersion") == live.get("apiVersion")).then_some((config, fields))
    }) else {
        return FieldSet::default();
    };
    let comparison = compare_objects(&config, live, schema);
    let lost = fields.touched_by(&comparison.changed).union(&fields.touched_by(&comparison.gone));
    fields.difference(&lost)
}

/// Keeps the annotation true after `config` was applied, if there is one.
pub(crate) fn remember(manager: &str, config: &Value, object: &mut Value) {
    if manager != MANAGER || annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    object["metadata"]["annotations"][ANNOTATION] = Value::String(format!("{config}\n"));
}

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(spec: Value) -> Value {
        let config = json!({"apiVersion": "v1", "metadata": {"name": "a"}, "spec": {"n": 1, "m": 1}});
        let annotations = json!({ANNOTATION: config.to_string()});
        json!({"apiVersion": "v1", "metadata": {"name": "a", "annotations": annotations}, "spec": spec})
    }

    #[test]
    fn fields_that_were_applied_and_not_changed_since_are_inherited() {
        let inherited = |manager, spec| inherited(manager, &live(spec), &Schema::free_form()).paths();
        assert_eq!(inherited("kubectl", json!({"n": 1, "m": 2, "o": 3})), [".spec", ".spec.n"]);
        assert_eq!(inherited("kubectl", json!({"m": 1})), [".spec", ".spec.m"]);
        assert_eq!(inherited("somebody", json!({"n": 1})), [""; 0]);
    }

    #[test]
    fn an_annotation_that_cannot_be_read_gives_nothing() {
        let mut live = live(json!({"n": 1}));
        live["metadata"]["annotations"][ANNOTATION] = json!("{");
        assert!(inherited("kubectl", &live, &Schema::free_form()).is_empty());
    }

    #[test]
    fn the_annotation_is_kept_true_where_there_is_one() {
        let config = json!({"apiVersion": "v1", "spec": {"n": 2}});
        let mut object = live(json!({"n": 2}));
        remember("kubectl", &config, &mut object);
        assert_eq!(annotation(&object), Some("{\"apiVersion\":\"v1\",\"spec\":{\"n\":2}}\n"));
        let mut bare = json!({"metadata": {}});
        remember("kubectl", &config, &mut bare);
        assert_eq!(bare, json!({"metadata": {}}));
    }
}

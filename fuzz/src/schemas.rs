//! Schemas of kinds that users declare, and documents held against them.

use muster_schema::StructuralSchema;
use serde_json::Value;

use crate::Target;

pub const SCHEMA: Target = Target {
    name: "schema",
    property: "filling in and pruning a document twice is doing it once, a good document stays good, and a pruned one has no unknown field",
    run: schema,
};

/// A list of a schema and documents.
fn schema(input: &[u8]) {
    let Ok(Value::Array(list)) = serde_json::from_slice::<Value>(input) else { return };
    let Some((schema, documents)) = list.split_first() else { return };
    let Ok(schema) = StructuralSchema::read(schema) else { return };
    assert!(schema.published().is_object(), "{}", schema.published());
    for document in documents {
        let good = schema.check(document, "spec").is_empty();
        let mut pruned = document.clone();
        let unknown = schema.prune(&mut pruned, "spec");
        if unknown.is_empty() {
            assert_eq!(&pruned, document, "nothing is unknown, and something was dropped");
        }
        let mut again = pruned.clone();
        let left = schema.prune(&mut again, "spec");
        assert_eq!((left, &again), (Vec::new(), &pruned), "pruning twice is pruning once");
        let mut filled = pruned.clone();
        schema.fill(&mut filled);
        let mut again = filled.clone();
        schema.fill(&mut again);
        assert_eq!(again, filled, "filling in twice is filling in once");
        if good && unknown.is_empty() {
            let found = schema.check(&filled, "spec");
            assert!(found.is_empty(), "{document} is good, and {filled} is not: {found:?}");
        }
    }
}

//! The Application: what most tasks are about, known by its tags.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metadata::null_is_default;
use crate::names::Names;
use crate::object::{NoStatus, Object, Resource};

/// Something tasks are about.
pub type Application = Object<ApplicationSpec>;

impl Resource for ApplicationSpec {
    type Status = NoStatus;
    const NAMES: Names = Names::muster("Application", "applications", "application", &["mapp"]);
    const ABOUT: &'static str =
        "Application is something tasks are about. Its tags decide which addons and extensions are selected.";

    object_text!();
}

/// What is known of the application.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationSpec {
    /// Tags that selectors of addons and extensions look at.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["category", "tag"]))]
    pub tags: Vec<Tag>,
    /// Any document that describes the application; not used by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Value>,
}

/// One tag, for example Language and Java.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Tag {
    /// Category of the tag, for example Language.
    pub category: String,
    /// The tag itself, for example Java.
    pub tag: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_reads_and_writes_back() {
        let example = json!({
            "tags": [{"category": "Language", "tag": "C#"}], "properties": {"owner": "ada"},
        });
        let spec: ApplicationSpec = serde_json::from_value(example.clone()).unwrap();
        assert_eq!(serde_json::to_value(&spec).unwrap(), example);
    }
}

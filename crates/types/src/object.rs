//! The shape every kind has: `apiVersion`, `kind`, `metadata`, `spec`, `status`.
//!
//! [`Resource`] is implemented by a spec type and makes it a kind; [`Object`] adds the rest. The API version and
//! kind are not data: they follow from the type, are written from it, and are checked against it when read.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::decode_text::decode_text;
use crate::json_text::JsonText;
use crate::metadata::{Metadata, is_default, null_is_default};
use crate::names::Names;

/// A spec type that is a served kind.
pub trait Resource:
    Clone + fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// What the server and its workers report; `()`-like kinds use [`NoStatus`].
    type Status: Clone
        + fmt::Debug
        + Default
        + PartialEq
        + Serialize
        + DeserializeOwned
        + JsonSchema
        + Send
        + Sync
        + 'static;
    /// What the kind is called.
    const NAMES: Names;
    /// One paragraph for `kubectl explain`.
    const ABOUT: &'static str;

    /// Reads an object; use [`JsonText::read`]. `object_text!()` makes this and the next one.
    fn read_object(json: &[u8]) -> serde_json::Result<(Object<Self>, Vec<usize>)>;

    /// Writes an object; use [`JsonText::to_json`].
    fn write_object(object: &Object<Self>) -> serde_json::Result<Vec<u8>>;
}

/// An object of the kind whose spec is `S`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(bound = "", rename_all = "camelCase")]
pub struct Object<S: Resource> {
    api_version: ApiVersion<S>,
    kind: KindName<S>,
    /// Names, labels, owners and the like.
    #[serde(default, deserialize_with = "null_is_default")]
    pub metadata: Metadata,
    /// What the user asks for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub spec: S,
    /// What was observed.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "is_default")]
    pub status: S::Status,
}

impl<S: Resource> Object<S> {
    /// A new object with a name, as a client would write it.
    pub fn new(namespace: &str, name: &str, spec: S) -> Self {
        Self {
            metadata: Metadata {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                ..Metadata::default()
            },
            spec,
            ..Self::default()
        }
    }
}

impl<S: Resource> JsonText for Object<S> {
    fn read(json: &[u8]) -> serde_json::Result<(Self, Vec<usize>)> {
        S::read_object(json)
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        S::write_object(self)
    }
}

/// The status of kinds that have none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoStatus {}

impl<S: Resource> JsonSchema for Object<S> {
    fn schema_name() -> Cow<'static, str> {
        S::NAMES.kind.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let metadata = generator.subschema_for::<Metadata>();
        let spec = generator.subschema_for::<S>();
        let status = generator.subschema_for::<S::Status>();
        schemars::json_schema!({
            "type": "object",
            "description": S::ABOUT,
            "properties": {
                "apiVersion": { "type": "string", "description": "Version of the schema of this object." },
                "kind": { "type": "string", "description": "The kind this object is of." },
                "metadata": metadata,
                "spec": spec,
                "status": status,
            },
        })
    }
}

/// Declares a marker that encodes as a constant of `S` and refuses any other text.
macro_rules! constant_of_kind {
    ($name:ident, $what:literal, $text:path) => {
        struct $name<S>(PhantomData<fn() -> S>);

        impl<S> Clone for $name<S> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<S> Copy for $name<S> {}
        impl<S> Default for $name<S> {
            fn default() -> Self {
                Self(PhantomData)
            }
        }
        impl<S> PartialEq for $name<S> {
            fn eq(&self, _: &Self) -> bool {
                true
            }
        }
        impl<S> fmt::Debug for $name<S> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
        impl<S: Resource> Serialize for $name<S> {
            fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
                serializer.collect_str(&$text(S::NAMES))
            }
        }
        impl<'de, S: Resource> Deserialize<'de> for $name<S> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                decode_text(deserializer, concat!("the ", $what, " of this kind"), |found| {
                    let expected = $text(S::NAMES);
                    if expected.is(found) {
                        return Ok(Self::default());
                    }
                    Err(format!(
                        "the {} in the data ({found}) does not match the expected {} ({expected})",
                        $what, $what
                    ))
                })
            }
        }
    };
}

constant_of_kind!(ApiVersion, "apiVersion", ApiVersionText);
constant_of_kind!(KindName, "kind", KindText);

struct ApiVersionText(Names);

impl ApiVersionText {
    fn is(&self, text: &str) -> bool {
        match text.split_once('/') {
            Some((group, version)) => group == self.0.group && version == self.0.version && !group.is_empty(),
            None => self.0.group.is_empty() && text == self.0.version,
        }
    }
}

impl fmt::Display for ApiVersionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.group.is_empty() {
            write!(f, "{}/", self.0.group)?;
        }
        f.write_str(self.0.version)
    }
}

struct KindText(Names);

impl KindText {
    fn is(&self, text: &str) -> bool {
        text == self.0.kind
    }
}

impl fmt::Display for KindText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::application::{Application, ApplicationSpec};

    #[test]
    fn an_object_of_another_kind_is_refused_with_words() {
        let read = |api_version: &str, kind: &str| {
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            serde_json::from_value::<Application>(object).map_err(|error| error.to_string())
        };
        assert!(read("muster.dev/v1alpha1", "Application").is_ok());
        assert_eq!(
            read("muster.dev/v1alpha1", "Task").unwrap_err(),
            "the kind in the data (Task) does not match the expected kind (Application)"
        );
        assert_eq!(
            read("v1", "Application").unwrap_err(),
            "the apiVersion in the data (v1) does not match the expected apiVersion (muster.dev/v1alpha1)"
        );
    }

    #[test]
    fn a_missing_kind_is_refused() {
        let error =
            serde_json::from_value::<Application>(json!({"apiVersion": "muster.dev/v1alpha1"})).unwrap_err();
        assert_eq!(error.to_string(), "missing field `kind`");
    }

    #[test]
    fn nulls_are_read_as_absent() {
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "a", "labels": null, "finalizers": null, "creationTimestamp": null},
            "spec": null,
            "status": null,
        });
        let application: Application = serde_json::from_value(object).unwrap();
        assert_eq!(application, Application::new("", "a", ApplicationSpec::default()));
    }
}

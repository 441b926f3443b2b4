//! Stored objects and the changes that made them.
//!
//! The JSON of an object is produced once, by the writer of the change, and shared by all readers. It contains
//! its own revision, which is known only when the change is ordered: a [`Draft`] marks the place for it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use triomphe::ThinArc;

use super::key::{Key, ResourceName};
use crate::clock::Millis;

/// A point in the global order of changes. Also `metadata.resourceVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// Before the first change.
    pub const ZERO: Self = Self(0);

    /// The revision after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"resourceVersion\":\""));

/// JSON with a marked place where the revision goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    json: Vec<u8>,
    splice: u32,
}

impl Draft {
    /// `splice` is the offset in `json` at which the digits of the revision are inserted. `None` if it lies outside.
    pub fn new(json: Vec<u8>, splice: usize) -> Option<Self> {
        let offset = u32::try_from(splice).ok()?;
        (splice <= json.len()).then_some(Self { json, splice: offset })
    }

    /// A draft whose revision goes between two texts.
    pub fn joined(before: &str, after: &str) -> Self {
        // The limit is beyond what any log takes as one object.
        let splice = u32::try_from(before.len()).unwrap_or(u32::MAX);
        Self { json: [before.as_bytes(), after.as_bytes()].concat(), splice }
    }

    /// What comes before the revision and what after it.
    pub fn around_revision(&self) -> (&[u8], &[u8]) {
        self.json.split_at((self.splice as usize).min(self.json.len()))
    }

    /// How long the JSON is without its revision.
    pub(super) fn len(&self) -> usize {
        self.json.len()
    }

    /// The draft of an object encoded with an empty `metadata.resourceVersion`. `None` if there is no place for it.
    ///
    /// Everything that is encoded before that field is a validated name, so the first match is the right one.
    pub fn of_object(json: Vec<u8>) -> Option<Self> {
        let splice = MARK.find(&json)? + MARK.needle().len();
        Self::new(json, splice)
    }
}

/// One object at one revision: its head and its JSON in one piece of memory. A copy is a reference.
#[derive(Debug, Clone)]
pub struct Stored(ThinArc<Head, u8>);

/// What is known of an object without its JSON.
#[derive(Debug)]
pub struct Head {
    /// The change that made this version.
    pub revision: Revision,
    /// `namespace/name`.
    pub path: Arc<str>,
    splice: u32,
}

impl Deref for Stored {
    type Target = Head;

    fn deref(&self) -> &Head {
        &self.0.header.header
    }
}

impl Stored {
    pub(super) fn from_draft(path: Arc<str>, draft: &Draft, revision: Revision) -> Self {
        let (head, tail) = draft.around_revision();
        Self::joined(path, revision, head, tail)
    }

    pub(super) fn from_row(path: Arc<str>, revision: Revision, splice: u32, json: &[u8]) -> Self {
        Self(ThinArc::from_header_and_slice(Head { revision, path, splice }, json))
    }

    /// The same object shown at another revision: how a deletion shows the last state.
    #[must_use]
    pub fn restamped(&self, revision: Revision) -> Self {
        let json = self.json();
        let at = (self.splice as usize).min(json.len());
        let rest = (at + decimal_digits(self.revision.0)).min(json.len());
        Self::joined(self.path.clone(), revision, &json[..at], &json[rest..])
    }

    /// With the digits of the revision between two pieces of its JSON.
    fn joined(path: Arc<str>, revision: Revision, head: &[u8], tail: &[u8]) -> Self {
        // The limit is beyond what any log takes as one object.
        let splice = u32::try_from(head.len()).unwrap_or(u32::MAX);
        let json = [head, revision.to_string().as_bytes(), tail].concat();
        Self::from_row(path, revision, splice, &json)
    }

    /// The whole object as JSON, its revision included.
    pub fn json(&self) -> &[u8] {
        &self.0.slice
    }

    /// The metadata, or what a type takes of it, without reading what comes after. `None` if it cannot be read as that.
    pub fn metadata<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        read_metadata(self.json())
    }

    /// Where in the JSON the digits of the revision start.
    pub fn splice(&self) -> u32 {
        self.splice
    }

    /// The namespace part of the path.
    pub fn namespace(&self) -> &str {
        self.path.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name part of the path.
    pub fn name(&self) -> &str {
        self.path.split_once('/').map_or(&self.path, |(_, name)| name)
    }
}

/// Reads `metadata` of an object and stops there: it comes early, and most of an object is something else.
fn read_metadata<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    struct UpToMetadata<'t, T>(&'t mut Option<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for UpToMetadata<'_, T> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
            while let Some(field) = fields.next_key::<Cow<'de, str>>()? {
                if field == "metadata" {
                    *self.0 = Some(fields.next_value()?);
                    break;
                }
                fields.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }

    let mut found = None;
    // That the rest was not read is no fault.
    drop(serde_json::Deserializer::from_slice(json).deserialize_map(UpToMetadata(&mut found)));
    found
}

impl AsRef<[u8]> for Stored {
    fn as_ref(&self) -> &[u8] {
        self.json()
    }
}

/// One committed write.
#[derive(Debug)]
pub struct Change {
    /// When it was committed.
    pub at: Millis,
    /// The kind of the object.
    pub resource: ResourceName,
    /// The new version, or the last one if it was deleted.
    pub object: Stored,
    /// The version before, if there was one.
    pub previous: Option<Stored>,
    /// True if the object is gone.
    pub deleted: bool,
}

impl Change {
    /// The position of this change in the global order.
    pub fn revision(&self) -> Revision {
        self.object.revision
    }

    /// Which object changed.
    pub fn key(&self) -> Key {
        Key { resource: self.resource.clone(), path: self.object.path.clone() }
    }
}

fn decimal_digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_gets_its_revision_at_the_marked_place() {
        let draft = Draft::new(br#"{"v":""}"#.to_vec(), 6).unwrap();
        let stored = Stored::from_draft("a/b".into(), &draft, Revision(9));
        assert_eq!(stored.json(), br#"{"v":"9"}"#);
        let gone = stored.restamped(Revision(1234));
        assert_eq!(gone.json(), br#"{"v":"1234"}"#);
        assert_eq!(gone.restamped(Revision(7)).json(), br#"{"v":"7"}"#);
    }

    #[test]
    fn metadata_is_read_without_what_comes_after() {
        #[derive(Deserialize)]
        struct Name<'a> {
            name: Cow<'a, str>,
        }
        let name = |json: &str| {
            let stored = Stored::from_row("a/b".into(), Revision(1), 0, json.as_bytes());
            stored.metadata::<Name<'_>>().map(|found| found.name.into_owned())
        };
        let whole = r#"{"kind":"K","metadata":{"labels":{},"name":"b"},"spec":{"metadata":{"name":"c"}}}"#;
        assert_eq!(name(whole).as_deref(), Some("b"));
        assert_eq!(name(r#"{"metadata":{"name":"b"},"spec":broken"#).as_deref(), Some("b"));
        for without in [r#"{"spec":{"metadata":{"name":"c"}}}"#, r#"{"metadata":{"name":7}}"#, "[]", ""] {
            assert_eq!(name(without), None, "{without}");
        }
    }

    #[test]
    fn a_draft_with_the_place_outside_is_refused() {
        assert!(Draft::new(vec![1, 2], 3).is_none());
    }
}

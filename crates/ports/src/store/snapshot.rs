//! All objects of a kind at one moment.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::object::{Change, Revision, Stored};

/// Objects by path, in a persistent map: a copy is a reference, whatever the size.
pub(super) type Objects = OrdMap<Arc<str>, Stored>;

/// All objects of one kind at one revision.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The store's revision when it was taken.
    pub revision: Revision,
    pub(super) objects: Objects,
}

impl Snapshot {
    /// The object at a path.
    pub fn get(&self, path: &str) -> Option<&Stored> {
        self.objects.get(path)
    }

    /// True if this is surely what the other one is: nothing of the kind was written in between.
    pub fn is_same(&self, other: &Self) -> bool {
        self.objects.ptr_eq(&other.objects)
    }

    /// As it was at an earlier revision, before these changes: all of the kind since then, in order.
    pub(super) fn before(mut self, changes: &[Arc<Change>], revision: Revision) -> Self {
        // The first change of an object says what was there before all of them: it is undone last.
        for change in changes.iter().rev() {
            match &change.previous {
                Some(previous) => drop(self.objects.insert(previous.path.clone(), previous.clone())),
                None => drop(self.objects.remove(&change.object.path)),
            }
        }
        Self { revision, ..self }
    }

    /// Number of objects, over all namespaces.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// True if there is no object of the kind.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Objects in order of path, behind `after` if given, in one namespace if given.
    pub fn range(&self, namespace: Option<&str>, after: Option<&str>) -> impl Iterator<Item = &Stored> {
        let prefix = namespace.map(|namespace| format!("{namespace}/"));
        let start = match (after, prefix.as_deref()) {
            (Some(after), Some(prefix)) if after < prefix => Bound::Included(prefix),
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(prefix)) => Bound::Included(prefix),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range::<_, str>((start, Bound::Unbounded))
            .take_while(move |(path, _)| {
                prefix.as_ref().is_none_or(|prefix| path.starts_with(prefix.as_str()))
            })
            .map(|(_, stored)| stored)
    }
}

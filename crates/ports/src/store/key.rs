//! How objects are addressed.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The plural and group of a kind, for example `tasks.muster.dev`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceName(Arc<str>);

impl ResourceName {
    /// Wraps a name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// One object of one kind. The path is `namespace/name`, with an empty namespace for cluster-wide kinds; objects
/// are ordered by it, so that those of one namespace lie together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The kind.
    pub resource: ResourceName,
    /// `namespace/name`.
    pub path: Arc<str>,
}

impl Key {
    /// The key of `name` in `namespace`.
    pub fn new(resource: &ResourceName, namespace: &str, name: &str) -> Self {
        Self { resource: resource.clone(), path: format!("{namespace}/{name}").into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource.as_str(), self.path)
    }
}

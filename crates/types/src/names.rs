//! What a kind is called: group, version, plural, short names and scope.

/// The API group of Muster's own kinds.
pub const GROUP: &str = "muster.dev";
/// The API group of managed resources, whose kinds are declared by ResourceTypes.
pub const RESOURCES_GROUP: &str = "resources.muster.dev";
/// The version all kinds are served at.
pub const VERSION: &str = "v1alpha1";
/// The category that holds every kind of ours (`kubectl get muster`).
pub const CATEGORY: &str = "muster";

/// Whether objects of a kind live in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects live in a namespace.
    Namespaced,
    /// Objects are global.
    Cluster,
}

/// Everything a kind is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// API group, for example `muster.dev`.
    pub group: &'static str,
    /// Version, for example `v1alpha1`.
    pub version: &'static str,
    /// CamelCase kind, for example `Task`.
    pub kind: &'static str,
    /// Lower-case plural, used in paths.
    pub plural: &'static str,
    /// Lower-case singular.
    pub singular: &'static str,
    /// Short names; none may clash with a core Kubernetes kind.
    pub short_names: &'static [&'static str],
    /// Namespaced or cluster-wide.
    pub scope: Scope,
}

impl Names {
    /// Names of a namespaced kind in Muster's own group.
    pub const fn muster(
        kind: &'static str,
        plural: &'static str,
        singular: &'static str,
        short_names: &'static [&'static str],
    ) -> Self {
        Self { group: GROUP, version: VERSION, kind, plural, singular, short_names, scope: Scope::Namespaced }
    }

    /// `group/version`, or the bare version of the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

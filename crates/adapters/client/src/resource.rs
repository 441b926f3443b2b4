//! A resource that the server serves, and where its objects are.

use crate::query::segment;

/// A kind of object at one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// CamelCase kind.
    pub kind: String,
    /// Lower-case plural.
    pub plural: String,
    /// Lower-case singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories it belongs to.
    pub categories: Vec<String>,
    /// True if its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// Whose objects are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// Those of one namespace; resources without namespaces ignore it.
    Namespace(&'a str),
    /// Those of all namespaces.
    All,
}

impl Resource {
    /// Tasks, which most verbs are about.
    pub fn tasks() -> Self {
        Self::known::<muster_types::TaskSpec>()
    }

    /// A kind that this program knows without asking the server.
    pub fn known<R: muster_types::Resource>() -> Self {
        let names = R::NAMES;
        Self {
            group: names.group.to_owned(),
            version: names.version.to_owned(),
            kind: names.kind.to_owned(),
            plural: names.plural.to_owned(),
            singular: names.singular.to_owned(),
            short_names: names.short_names.iter().map(|name| (*name).to_owned()).collect(),
            categories: Vec::new(),
            namespaced: true,
            verbs: Vec::new(),
        }
    }

    /// `group/version`, or the bare version of the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `singular.group/name`, as results are printed and scripts read them.
    pub fn name_of(&self, name: &str) -> String {
        let singular =
            if self.singular.is_empty() { self.kind.to_lowercase() } else { self.singular.clone() };
        if self.group.is_empty() {
            format!("{singular}/{name}")
        } else {
            format!("{singular}.{}/{name}", self.group)
        }
    }

    /// `plural.group`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// True if the verb can be used on it.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// The path of a collection.
    pub fn collection(&self, scope: Scope<'_>) -> String {
        let base =
            if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", segment(&self.group)) };
        let version = segment(&self.version);
        let plural = segment(&self.plural);
        match scope {
            Scope::Namespace(namespace) if self.namespaced => {
                format!("{base}/{version}/namespaces/{}/{plural}", segment(namespace))
            }
            Scope::Namespace(_) | Scope::All => format!("{base}/{version}/{plural}"),
        }
    }

    /// The path of an object.
    pub fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(Scope::Namespace(namespace)), segment(name))
    }
}

#[cfg(test)]
pub(crate) fn sample(group: &str, kind: &str, plural: &str, short: &str) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: plural.into(),
        singular: kind.to_lowercase(),
        short_names: vec![short.into()],
        categories: vec!["muster".into()],
        namespaced: true,
        verbs: vec!["get".into(), "list".into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_namespaced_kind_have_a_namespace_in_their_path() {
        let task = sample("muster.dev", "Task", "tasks", "mtask");
        assert_eq!(task.object("a", "b/c"), "/apis/muster.dev/v1/namespaces/a/tasks/b%2Fc");
        assert_eq!(task.collection(Scope::All), "/apis/muster.dev/v1/tasks");
        assert_eq!(task.name_of("b"), "task.muster.dev/b");
    }

    #[test]
    fn tasks_are_known_without_asking() {
        let tasks = Resource::tasks();
        assert_eq!(tasks.object("a", "b"), "/apis/muster.dev/v1alpha1/namespaces/a/tasks/b");
        assert_eq!(tasks.name_of("b"), "task.muster.dev/b");
    }

    #[test]
    fn kinds_of_the_core_group_have_no_group_in_path_and_name() {
        let mut namespace = sample("", "Namespace", "namespaces", "ns");
        namespace.namespaced = false;
        assert_eq!(namespace.object("ignored", "a"), "/api/v1/namespaces/a");
        assert_eq!(namespace.name_of("a"), "namespace/a");
    }
}

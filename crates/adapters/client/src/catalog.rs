//! The resources of a server, found by the names people use.
//!
//! A word may be a plural, a singular, a short name or a kind, with `.group` behind it if need be, or a category. Where
//! several groups have the word, Muster's own comes first: this is Muster's command line.

use kube::client::{APIGroupDiscovery, APIGroupDiscoveryList, APIResourceDiscovery};
use muster_types::names::{CATEGORY, GROUP};

use crate::error::ClientError;
use crate::resource::Resource;

/// The group of resources that users declare.
const MANAGED_GROUP: &str = "resources.muster.dev";

/// Everything that a server serves.
#[derive(Debug, Default)]
pub struct Catalog {
    /// In the server's order of preference.
    resources: Vec<Resource>,
}

impl Catalog {
    /// Reads discovery documents.
    pub fn new(documents: impl IntoIterator<Item = APIGroupDiscoveryList>) -> Self {
        let groups = documents.into_iter().flat_map(|document| document.items);
        Self { resources: groups.flat_map(resources_of).collect() }
    }

    /// The resources a word stands for: one, or those of a category.
    pub fn find(&self, word: &str) -> Result<Vec<&Resource>, ClientError> {
        let named = self.find_named(word).into_iter().collect::<Vec<_>>();
        if !named.is_empty() {
            return Ok(named);
        }
        let mut members: Vec<&Resource> = Vec::new();
        for resource in self.resources.iter().filter(|resource| resource.can("list")) {
            let known = members.iter().any(|member| member.qualified() == resource.qualified());
            if !known && resource.categories.iter().any(|category| category == word) {
                members.push(resource);
            }
        }
        if members.is_empty() {
            return Err(ClientError::NoSuchResource { word: word.to_owned(), known: self.known() });
        }
        Ok(members)
    }

    /// The one resource a word stands for.
    pub fn find_one(&self, word: &str) -> Result<&Resource, ClientError> {
        match self.find(word)?.as_slice() {
            [one] => Ok(one),
            several => {
                let plurals: Vec<_> = several.iter().map(|resource| resource.plural.as_str()).collect();
                Err(ClientError::BadObject(format!(
                    "\"{word}\" stands for several resources ({}); name one of them",
                    plurals.join(", ")
                )))
            }
        }
    }

    /// The resource of an object.
    pub fn find_kind(&self, api_version: &str, kind: &str) -> Result<&Resource, ClientError> {
        let found = self
            .resources
            .iter()
            .find(|resource| resource.kind == kind && resource.api_version() == api_version);
        found.ok_or_else(|| ClientError::NoSuchKind {
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
            known: self.known_kinds(api_version, kind),
        })
    }

    fn find_named(&self, word: &str) -> Option<&Resource> {
        let word = word.to_lowercase();
        let (name, group) = match word.split_once('.') {
            Some((name, group)) => (name, Some(group)),
            None => (word.as_str(), None),
        };
        let matches = self.resources.iter().filter(|resource| {
            let in_group = group.is_none_or(|group| {
                resource.group == group || format!("{}.{}", resource.version, resource.group) == group
            });
            in_group && is_called(resource, name)
        });
        // The first of those that rank the same, which is the preferred version.
        matches.min_by_key(|resource| match resource.group.as_str() {
            GROUP => 0,
            MANAGED_GROUP => 1,
            _ => 2,
        })
    }

    /// What to offer to somebody who asked for something else.
    fn known(&self) -> String {
        let mut plurals: Vec<_> = self
            .resources
            .iter()
            .filter(|resource| resource.categories.iter().any(|category| category == CATEGORY))
            .map(|resource| resource.plural.as_str())
            .collect();
        plurals.sort_unstable();
        plurals.dedup();
        if plurals.is_empty() {
            "none of Muster's; is it a Muster server?".to_owned()
        } else {
            plurals.join(", ")
        }
    }

    fn known_kinds(&self, api_version: &str, kind: &str) -> String {
        let listed = |of: &dyn Fn(&Resource) -> Option<String>| {
            let mut found: Vec<String> = self.resources.iter().filter_map(of).collect();
            found.sort_unstable();
            found.dedup();
            found.join(", ")
        };
        let kinds = listed(&|one| (one.api_version() == api_version).then(|| one.kind.clone()));
        if !kinds.is_empty() {
            return kinds;
        }
        let versions = listed(&|one| (one.kind == kind).then(|| one.api_version()));
        if versions.is_empty() {
            return format!("kinds in {}", listed(&|one| Some(one.api_version())));
        }
        format!("{kind} in {versions}")
    }
}

fn is_called(resource: &Resource, name: &str) -> bool {
    resource.plural == name
        || resource.singular == name
        || resource.kind.eq_ignore_ascii_case(name)
        || resource.short_names.iter().any(|short| short == name)
}

fn resources_of(group: APIGroupDiscovery) -> Vec<Resource> {
    let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
    let mut found = Vec::new();
    for version in group.versions {
        let number = version.version.unwrap_or_default();
        found.extend(version.resources.into_iter().map(|resource| entry(&name, &number, resource)));
    }
    found
}

fn entry(group: &str, version: &str, found: APIResourceDiscovery) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: found.response_kind.and_then(|kind| kind.kind).unwrap_or_default(),
        plural: found.resource.unwrap_or_default(),
        singular: found.singular_resource.unwrap_or_default(),
        short_names: found.short_names,
        categories: found.categories,
        namespaced: found.scope.as_deref() == Some("Namespaced"),
        verbs: found.verbs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::sample;

    fn catalog() -> Catalog {
        let mut foreign = sample("batch", "Job", "jobs", "j");
        foreign.categories = vec!["all".into()];
        let resources = vec![
            foreign,
            sample("muster.dev", "Job", "jobs", "mjob"),
            sample("muster.dev", "Task", "tasks", "mtask"),
        ];
        Catalog { resources }
    }

    fn found(word: &str) -> String {
        let catalog = catalog();
        let found = catalog.find(word).map(|all| all.iter().map(|one| one.qualified()).collect::<Vec<_>>());
        found.map_or_else(|error| error.to_string(), |all| all.join(" "))
    }

    #[test]
    fn all_names_of_a_resource_find_it() {
        for word in ["tasks", "task", "Task", "TASKS", "mtask", "tasks.muster.dev", "task.v1.muster.dev"] {
            assert_eq!(found(word), "tasks.muster.dev", "{word}");
        }
    }

    #[test]
    fn own_resources_come_before_others_of_the_same_name() {
        assert_eq!(found("jobs"), "jobs.muster.dev");
        assert_eq!(found("jobs.batch"), "jobs.batch");
        assert_eq!(found("j"), "jobs.batch");
    }

    #[test]
    fn a_category_stands_for_its_members() {
        assert_eq!(found("muster"), "jobs.muster.dev tasks.muster.dev");
        let error = catalog().find_one("muster").unwrap_err().to_string();
        assert_eq!(error, "\"muster\" stands for several resources (jobs, tasks); name one of them");
    }

    #[test]
    fn an_unknown_word_is_answered_with_what_there_is() {
        assert_eq!(found("tsks"), "the server has no resource \"tsks\"; it has jobs, tasks");
        assert_eq!(found("tasks.batch"), "the server has no resource \"tasks.batch\"; it has jobs, tasks");
    }

    #[test]
    fn an_unknown_kind_is_answered_with_those_of_its_version_or_with_the_versions() {
        let catalog = catalog();
        assert_eq!(catalog.find_kind("muster.dev/v1", "Task").unwrap().plural, "tasks");
        let said = |version: &str| catalog.find_kind(version, "Tsk").map(|_| ()).unwrap_err().to_string();
        assert_eq!(said("muster.dev/v1"), "the server has no kind Tsk in muster.dev/v1; it has Job, Task");
        assert_eq!(
            catalog.find_kind("muster.dev/v2", "Task").map(|_| ()).unwrap_err().to_string(),
            "the server has no kind Task in muster.dev/v2; it has Task in muster.dev/v1"
        );
        assert_eq!(
            said("muster.dev/v2"),
            "the server has no kind Tsk in muster.dev/v2; it has kinds in batch/v1, muster.dev/v1"
        );
    }
}

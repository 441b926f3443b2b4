//! What the words behind a verb stand for: whole collections, or objects by name.

use muster_client::{Catalog, ClientError, Resource};

use crate::usage::UsageError;

/// What is asked for, in the user's words.
#[derive(Debug, PartialEq, Eq)]
pub enum Targets {
    /// Resources or categories.
    Collections(Vec<String>),
    /// Objects: resource and name.
    Objects(Vec<(String, String)>),
}

impl Targets {
    /// Reads `RESOURCE[,RESOURCE] [NAME…]` or `RESOURCE/NAME…`.
    pub fn parse(verb: &'static str, words: &[String]) -> Result<Self, UsageError> {
        let refuse = |message: String| Err(UsageError::new(verb, message));
        if words.iter().any(|word| word.contains('/')) {
            let mut objects = Vec::new();
            for word in words {
                match word.split_once('/') {
                    Some((resource, name)) if !resource.is_empty() && !name.is_empty() => {
                        objects.push((resource.to_owned(), name.to_owned()));
                    }
                    _ => return refuse(format!("\"{word}\" is not RESOURCE/NAME, as the other words are")),
                }
            }
            return Ok(Self::Objects(objects));
        }
        let Some((resources, names)) = words.split_first() else {
            return refuse("no RESOURCE was given, such as tasks".to_owned());
        };
        let resources: Vec<_> = resources.split(',').map(str::to_owned).collect();
        if resources.iter().chain(names).any(String::is_empty) {
            return refuse("a resource or name is empty".to_owned());
        }
        if names.is_empty() {
            return Ok(Self::Collections(resources));
        }
        let pairs =
            resources.iter().flat_map(|resource| names.iter().map(|name| (resource.clone(), name.clone())));
        Ok(Self::Objects(pairs.collect()))
    }
}

/// The resources that words stand for, each once.
pub fn find_all<'a>(catalog: &'a Catalog, words: &[String]) -> Result<Vec<&'a Resource>, ClientError> {
    let mut found: Vec<&Resource> = Vec::new();
    for word in words {
        for resource in catalog.find(word)? {
            if !found.contains(&resource) {
                found.push(resource);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Targets, String> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        Targets::parse("get", &words).map_err(|error| error.to_string())
    }

    fn objects(all: &[(&str, &str)]) -> Targets {
        Targets::Objects(all.iter().map(|(resource, name)| ((*resource).into(), (*name).into())).collect())
    }

    #[test]
    fn a_word_alone_is_a_collection() {
        assert_eq!(parse("tasks").unwrap(), Targets::Collections(vec!["tasks".into()]));
        assert_eq!(
            parse("tasks,addons").unwrap(),
            Targets::Collections(vec!["tasks".into(), "addons".into()])
        );
    }

    #[test]
    fn objects_are_named_behind_their_resource_or_with_it() {
        assert_eq!(parse("task a b").unwrap(), objects(&[("task", "a"), ("task", "b")]));
        assert_eq!(parse("task/a addon/b").unwrap(), objects(&[("task", "a"), ("addon", "b")]));
        assert_eq!(parse("task,addon a").unwrap(), objects(&[("task", "a"), ("addon", "a")]));
    }

    #[test]
    fn the_two_ways_are_not_mixed() {
        assert_eq!(parse("task a/b").unwrap_err(), "\"task\" is not RESOURCE/NAME, as the other words are");
        assert!(parse("task/").is_err() && parse("/a").is_err() && parse("tasks,").is_err());
    }
}

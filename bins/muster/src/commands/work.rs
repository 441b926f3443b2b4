//! Jobs and groups as people name them: `job/NAME`, `taskgroup/NAME`.

use std::ops::ControlFlow;

use muster_client::Resource;
use muster_client::client::Form;
use muster_types::job::JobSpec;
use muster_types::task_group::TaskGroupSpec;
use serde_json::Value;

use super::session::Session;
use super::tracking::{Seen, Tracking};
use crate::cli::state_of;
use crate::usage::UsageError;

/// A job or a group.
#[derive(Debug, Clone)]
pub struct Work {
    /// What it is.
    pub resource: Resource,
    /// Its name.
    pub name: String,
}

impl Work {
    /// Reads a word; `None` if it is neither a job nor a group.
    pub fn parse(word: &str) -> Option<Self> {
        let (resource, name) = word.split_once('/')?;
        let known = [Resource::known::<JobSpec>(), Resource::known::<TaskGroupSpec>()];
        let is_it = |known: &Resource| {
            let qualified = |plain: &str| format!("{plain}.{}", known.group);
            let short = known.short_names.iter().any(|short| short == resource);
            let plain = [&known.plural, &known.singular];
            short || plain.into_iter().any(|plain| resource == plain || resource == qualified(plain))
        };
        let resource = known.into_iter().find(is_it)?;
        Some(Self { resource, name: name.to_owned() })
    }

    /// Reads all words; `None` if they are tasks. The two are not mixed.
    pub fn parse_all(verb: &'static str, words: &[String]) -> Result<Option<Vec<Self>>, UsageError> {
        let named: Vec<Self> = words.iter().filter_map(|word| Self::parse(word)).collect();
        if named.is_empty() {
            return Ok(None);
        }
        if named.len() < words.len() {
            let message = "tasks and jobs cannot be named together; ask for one after the other".to_owned();
            return Err(UsageError::new(verb, message));
        }
        Ok(Some(named))
    }

    /// The object as it is.
    pub async fn get(&self, session: &Session) -> anyhow::Result<Value> {
        let (client, namespace) = (&session.client, session.namespace());
        client.get(&self.resource, namespace, &self.name, Form::Objects).await.map_err(|error| {
            if error.is_not_found() {
                let (singular, plural) = (&self.resource.singular, &self.resource.plural);
                return anyhow::anyhow!(
                    "there is no {singular} \"{}\" in namespace {namespace}; `muster get {plural}` shows those there are",
                    self.name
                );
            }
            error.into()
        })
    }

    /// Its changes.
    pub fn track<'a>(&self, session: &'a Session) -> Tracking<'a> {
        Tracking::one_of(&session.client, session.namespace(), self.resource.clone(), &self.name)
    }

    /// The object when it has ended.
    pub async fn wait_for_end(&self, session: &Session) -> anyhow::Result<Value> {
        let mut ended = Value::Null;
        self.track(session)
            .run(|seen| {
                match seen {
                    Seen::Task(object) if state_of(object).is_terminal() => ended = object.clone(),
                    Seen::Gone(name) => anyhow::bail!("{name} was deleted"),
                    Seen::Task(_) | Seen::Listed => return Ok(ControlFlow::Continue(())),
                }
                Ok(ControlFlow::Break(()))
            })
            .await?;
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_groups_are_told_from_tasks() {
        for word in ["job/a", "jobs/a", "mjob/a", "jobs.muster.dev/a"] {
            let work = Work::parse(word).unwrap();
            assert_eq!((work.resource.kind.as_str(), work.name.as_str()), ("Job", "a"), "{word}");
        }
        assert_eq!(Work::parse("mtg/a").unwrap().resource.kind, "TaskGroup");
        assert!(Work::parse("task/a").is_none() && Work::parse("a").is_none());
        let words = ["job/a", "b"].map(str::to_owned);
        assert!(Work::parse_all("wait", &words).is_err());
        assert!(Work::parse_all("wait", &words[1..]).unwrap().is_none());
    }
}

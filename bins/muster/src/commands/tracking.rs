//! Seeing every change of some tasks, from how they are now.

use std::collections::HashSet;
use std::ops::ControlFlow;

use muster_client::client::{Form, PageRequest, Selectors};
use muster_client::follow::{Change, Depth, Follow, News};
use muster_client::{Client, Resource, Scope};
use serde_json::Value;

use super::listing::each_page;
use crate::output::streams;

/// What is seen.
pub enum Seen<'a> {
    /// A task as it is.
    Task(&'a Value),
    /// A task of this name is gone.
    Gone(&'a str),
    /// All that are there were shown; what follows are changes.
    Listed,
}

/// Which tasks.
pub struct Tracking<'a> {
    /// The server.
    pub client: &'a Client,
    /// Where they are.
    pub namespace: &'a str,
    /// What they are.
    pub resource: Resource,
    /// Which ones.
    pub selectors: Selectors,
}

impl<'a> Tracking<'a> {
    /// One task.
    pub fn one(client: &'a Client, namespace: &'a str, name: &str) -> Self {
        Self::one_of(client, namespace, Resource::tasks(), name)
    }

    /// One object of a resource.
    pub fn one_of(client: &'a Client, namespace: &'a str, resource: Resource, name: &str) -> Self {
        let fields = Some(format!("metadata.name={name}"));
        Self { client, namespace, resource, selectors: Selectors { labels: None, fields } }
    }

    /// The tasks of a selector; none is all.
    pub fn selected(client: &'a Client, namespace: &'a str, labels: Option<String>) -> Self {
        let resource = Resource::tasks();
        Self { client, namespace, resource, selectors: Selectors { labels, fields: None } }
    }

    /// Now, as a place in the changes.
    pub async fn now(&self) -> anyhow::Result<String> {
        let page = PageRequest { limit: 1, from: None };
        let scope = Scope::Namespace(self.namespace);
        let page = self.client.list(&self.resource, scope, &self.selectors, Form::Metadata, page).await?;
        Ok(page.revision)
    }

    /// Shows the tasks that are there, then every change, until `see` has seen enough.
    pub async fn run(
        &self,
        mut see: impl FnMut(Seen<'_>) -> anyhow::Result<ControlFlow<()>>,
    ) -> anyhow::Result<()> {
        let mut alive = HashSet::new();
        match self.list(&mut alive, &mut see).await? {
            None => Ok(()),
            Some(revision) => self.follow(revision, alive, Depth::Whole, see).await,
        }
    }

    /// Shows every change after a place, and of each task no more than its name and state.
    pub async fn outline_from(
        &self,
        revision: String,
        see: impl FnMut(Seen<'_>) -> anyhow::Result<ControlFlow<()>>,
    ) -> anyhow::Result<()> {
        self.follow(revision, HashSet::new(), Depth::Outline, see).await
    }

    async fn follow(
        &self,
        revision: String,
        mut alive: HashSet<String>,
        depth: Depth,
        mut see: impl FnMut(Seen<'_>) -> anyhow::Result<ControlFlow<()>>,
    ) -> anyhow::Result<()> {
        let scope = Scope::Namespace(self.namespace);
        let selectors = self.selectors.clone();
        let mut follow = Follow::new(self.client, &self.resource, scope, selectors, Form::Objects, revision)
            .reading(depth);
        loop {
            let seen = match follow.next().await? {
                News::Changed(Change::Present, task) => {
                    if !alive.contains(name_of(&task)) {
                        alive.insert(name_of(&task).to_owned());
                    }
                    see(Seen::Task(&task))?
                }
                News::Changed(Change::Deleted, task) => {
                    alive.remove(name_of(&task));
                    see(Seen::Gone(name_of(&task)))?
                }
                News::Lost(error) => {
                    streams::note(format!("{error}; trying again"));
                    ControlFlow::Continue(())
                }
                News::Back => ControlFlow::Continue(()),
                News::Expired => match self.list(&mut alive, &mut see).await? {
                    None => ControlFlow::Break(()),
                    Some(revision) => {
                        follow.resume_at(revision);
                        ControlFlow::Continue(())
                    }
                },
            };
            if seen.is_break() {
                return Ok(());
            }
        }
    }

    /// Shows all there are, and that those are gone which are not. `None` if that was enough.
    async fn list(
        &self,
        alive: &mut HashSet<String>,
        see: &mut impl FnMut(Seen<'_>) -> anyhow::Result<ControlFlow<()>>,
    ) -> anyhow::Result<Option<String>> {
        let before = std::mem::take(alive);
        let mut enough = false;
        let scope = Scope::Namespace(self.namespace);
        let listed =
            each_page(self.client, &self.resource, scope, &self.selectors, Form::Objects, None, |page| {
                let items = page.document["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                for task in items {
                    alive.insert(name_of(task).to_owned());
                    enough = enough || see(Seen::Task(task))?.is_break();
                }
                Ok(())
            })
            .await?;
        for gone in before.difference(alive) {
            enough = enough || see(Seen::Gone(gone))?.is_break();
        }
        enough = enough || see(Seen::Listed)?.is_break();
        Ok((!enough).then_some(listed.revision))
    }
}

/// The name of an object.
pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

//! What the server has to tell, as events: every task or robot, then every change, for as long as anybody listens.
//!
//! A server that does not answer is told and tried again, without end.

use std::convert::Infallible;
use std::time::Duration;

use muster_client::client::{Form, Selectors};
use muster_client::follow::{Change, Follow, News};
use muster_client::{Client, ClientError, Resource, Scope};
use muster_types::names::GROUP;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::super::listing::each_page;
use super::event::Event;
use super::robot::Robot;
use super::row::{Id, Row};

/// Time before a server that does not answer is asked for everything again.
const PAUSE: Duration = Duration::from_secs(1);
/// The same for what is not that important.
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// A collection that is followed.
pub struct Feed {
    client: Client,
    namespace: Option<String>,
    selectors: Selectors,
    events: Sender<Event>,
}

/// What is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Tasks,
    Robots,
}

impl What {
    fn listing(self) -> Event {
        match self {
            Self::Tasks => Event::Listing,
            Self::Robots => Event::ListingRobots,
        }
    }

    fn present(self, objects: &[Value]) -> Event {
        match self {
            Self::Tasks => Event::Tasks(objects.iter().map(Row::read).collect()),
            Self::Robots => Event::Robots(objects.iter().map(Robot::read).collect()),
        }
    }

    fn gone(self, object: &Value) -> Event {
        match self {
            Self::Tasks => Event::Gone(Id::of(object)),
            Self::Robots => Event::RobotGone(Id::of(object)),
        }
    }
}

impl Feed {
    /// What is in a namespace, or in all; of tasks those that are selected.
    pub fn new(
        client: Client,
        namespace: Option<String>,
        selectors: Selectors,
        events: Sender<Event>,
    ) -> Self {
        Self { client, namespace, selectors, events }
    }

    /// Tells of tasks.
    pub async fn follow_tasks(self) {
        loop {
            let Err(error) = self.follow(What::Tasks, &Resource::tasks()).await;
            if self.events.send(Event::Lost(format!("{error:#}"))).await.is_err() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Tells of robots, if the server knows any such thing.
    pub async fn follow_robots(self) {
        while !self.events.is_closed() {
            match self.find_robots().await {
                Ok(None) => return,
                Ok(Some(robots)) => drop(self.follow(What::Robots, &robots).await),
                Err(_) => {}
            }
            tokio::time::sleep(LONG_PAUSE).await;
        }
    }

    async fn find_robots(&self) -> Result<Option<Resource>, ClientError> {
        match self.client.catalog().await?.find_one(&format!("robots.{GROUP}")) {
            Ok(robots) => Ok(Some(robots.clone())),
            Err(ClientError::NoSuchResource { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Follows a collection until that fails.
    async fn follow(&self, what: What, resource: &Resource) -> anyhow::Result<Infallible> {
        let revision = self.list(what, resource).await?;
        let selectors = self.selectors_of(what);
        let mut follow =
            Follow::new(&self.client, resource, self.scope(), selectors, Form::Objects, revision);
        loop {
            let event = match follow.next().await? {
                News::Changed(Change::Present, object) => what.present(&[object]),
                News::Changed(Change::Deleted, object) => what.gone(&object),
                News::Expired => {
                    follow.resume_at(self.list(what, resource).await?);
                    continue;
                }
                // Tasks speak for the server.
                News::Lost(_) | News::Back if what != What::Tasks => continue,
                News::Lost(error) => Event::Lost(error.to_string()),
                News::Back => Event::Back,
            };
            self.events.send(event).await?;
        }
    }

    /// Tells of all there are; the revision at which that was so.
    async fn list(&self, what: What, resource: &Resource) -> anyhow::Result<String> {
        self.events.send(what.listing()).await?;
        let selectors = self.selectors_of(what);
        let mut late = Vec::new();
        let listed =
            each_page(&self.client, resource, self.scope(), &selectors, Form::Objects, None, |page| {
                let items = page.document["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                // Whoever draws is not waited for while the server is held up; it is all in brief.
                if late.is_empty() {
                    let full = self.events.try_send(what.present(items)).err();
                    late.extend(full.map(TrySendError::into_inner));
                } else {
                    late.push(what.present(items));
                }
                Ok(())
            })
            .await?;
        for event in late {
            self.events.send(event).await?;
        }
        if what == What::Tasks {
            self.events.send(Event::Listed).await?;
        }
        Ok(listed.revision)
    }

    fn scope(&self) -> Scope<'_> {
        self.namespace.as_deref().map_or(Scope::All, Scope::Namespace)
    }

    fn selectors_of(&self, what: What) -> Selectors {
        match what {
            What::Tasks => self.selectors.clone(),
            What::Robots => Selectors::default(),
        }
    }
}

//! From a committed change to the messages that tell of it.
//!
//! The same change gives the same messages with the same ids, whoever asks and whenever. An object without an earlier version
//! gives all transitions it must have had: that is also how those are told whose changes were forgotten.

use std::borrow::Cow;
use std::sync::Arc;

use muster_types::event_sink::Profile;
use muster_types::metadata::StringMap;
use muster_types::{Message, Millis};
use serde::Deserialize;

use crate::kube_job::{self, KUBE_JOBS, KeptJob};
use crate::managed::{self, SeenManaged};
use crate::step::{Step, Subject};
use crate::task::{self, SeenTask};
use crate::wants::Wants;
use crate::work::{self, SeenWork};
use crate::{cds, cloud_event};

/// The group of managed resources.
const MANAGED: &str = ".resources.muster.dev";

/// One change, as it was committed.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// Plural and group, such as `tasks.muster.dev`.
    pub resource: &'a str,
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Its place in the order of changes.
    pub revision: u64,
    /// When it was committed.
    pub at: Millis,
    /// The version before, if there was one and it is known.
    pub before: Option<&'a [u8]>,
    /// The version after, or the last one.
    pub after: &'a [u8],
    /// The object is gone.
    pub deleted: bool,
}

/// An object that cannot be read. It is left out; everything else goes on.
#[derive(Debug, thiserror::Error)]
#[error("the object cannot be read, nothing is told about it: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

/// How transitions of a kind are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Task,
    State,
    Schedule,
    Robot,
    Managed,
    KubeJob,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Labeled {
    metadata: Labels,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    labels: StringMap,
}

/// The messages that a sink gets about a change, in order.
pub fn classify(wants: &Wants, change: &Observed<'_>) -> Result<Vec<Message>, Unreadable> {
    let is_near = |sort: &Sort| match sort {
        Sort::KubeJob => wants.kube_jobs_of(change.namespace),
        Sort::Task | Sort::State | Sort::Schedule | Sort::Robot | Sort::Managed => {
            wants.namespace(change.namespace)
        }
    };
    let Some(sort) = sort_of(wants.profile, change.resource).filter(is_near) else {
        return Ok(Vec::new());
    };
    let steps = steps_of(wants, sort, change)?;
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    let head: Head<'_> = serde_json::from_slice(change.after)?;
    let (kind, plural, namespace) = match sort {
        Sort::KubeJob => ("KubeJob", "jobs", &*head.metadata.namespace),
        _ => (&*head.kind, change.resource.split('.').next().unwrap_or_default(), change.namespace),
    };
    if !wants.kind(kind) || !wants_labels(wants, change.after)? {
        return Ok(Vec::new());
    }
    let subject = Subject {
        plural: plural.to_owned(),
        namespace: namespace.to_owned(),
        api_version: head.api_version.into_owned(),
        kind: head.kind.into_owned(),
        name: head.metadata.name.into_owned(),
        uid: Arc::from(&*head.metadata.uid),
    };
    let render = |step: &Step| match wants.profile {
        Profile::Cds => cds::render(&subject, step.cds.as_ref()?, change.revision),
        Profile::CloudEvents => cloud_event::render(&subject, step, wants.mode, change.revision, change.at),
    };
    Ok(steps.iter().filter_map(render).filter(|message| wants.transition(&message.topic)).collect())
}

fn wants_labels(wants: &Wants, json: &[u8]) -> Result<bool, Unreadable> {
    Ok(wants.any_labels() || wants.labels(&serde_json::from_slice::<Labeled>(json)?.metadata.labels))
}

fn sort_of(profile: Profile, resource: &str) -> Option<Sort> {
    let sort = match resource {
        "tasks.muster.dev" => Sort::Task,
        "jobs.muster.dev" | "taskgroups.muster.dev" => Sort::State,
        "schedules.muster.dev" => Sort::Schedule,
        "robots.muster.dev" => Sort::Robot,
        KUBE_JOBS => Sort::KubeJob,
        other if other.ends_with(MANAGED) => Sort::Managed,
        _ => return None,
    };
    (profile == Profile::CloudEvents || matches!(sort, Sort::Task | Sort::KubeJob)).then_some(sort)
}

fn steps_of(wants: &Wants, sort: Sort, change: &Observed<'_>) -> Result<Vec<Step>, Unreadable> {
    let deleted = change.deleted;
    Ok(match sort {
        Sort::Task => {
            let (before, after) = both::<SeenTask<'_>>(change)?;
            task::steps(before.as_ref(), &after, deleted)
        }
        Sort::Managed => {
            let (before, after) = both::<SeenManaged<'_>>(change)?;
            managed::steps(before.as_ref(), &after, deleted)
        }
        // That a job is gone is no transition of it.
        Sort::KubeJob if deleted => Vec::new(),
        Sort::KubeJob => {
            let (before, after) = both::<KeptJob>(change)?;
            kube_job::steps(before.as_ref(), &after, wants.on_expired)
        }
        Sort::State | Sort::Schedule | Sort::Robot => {
            let (before, after) = both::<SeenWork<'_>>(change)?;
            let steps = match sort {
                Sort::Schedule => work::steps_of_schedule,
                Sort::Robot => work::steps_of_robot,
                Sort::State | Sort::Task | Sort::Managed | Sort::KubeJob => work::steps_of_state,
            };
            steps(before.as_ref(), &after, deleted)
        }
    })
}

fn both<'a, T: Deserialize<'a>>(change: &Observed<'a>) -> Result<(Option<T>, T), Unreadable> {
    let before = change.before.map(serde_json::from_slice).transpose()?;
    Ok((before, serde_json::from_slice(change.after)?))
}

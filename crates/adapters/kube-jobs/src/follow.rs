//! Two watches, of jobs and of pods, as one row of news. Each is taken up where it ended, until the cluster has forgotten that.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{StreamExt as _, pin_mut};
use kube::ResourceExt as _;
use kube::api::{Api, WatchEvent, WatchParams};
use muster_ports::kube_jobs::{KubeError, KubeNews, KubePlace, KubeWatch};
use muster_ports::publisher::Boxed;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cluster_jobs::JOB_LABEL;
use crate::errors::{read_error, read_status};
use crate::objects::{Job, Pod};
use crate::views::{view_job, view_pod};

/// News that wait to be taken.
const QUEUE: usize = 1024;
/// The server ends a watch after some five minutes; a connection that is silent for longer is dead.
const SILENCE: Duration = Duration::from_secs(330);

/// Both watches.
pub struct Follow {
    news: Receiver<Result<KubeNews, KubeError>>,
    /// What ended a watch, told when all that came before it was taken.
    trouble: Option<KubeError>,
    /// They end with this.
    _watches: JoinSet<()>,
}

/// Makes news of an object, its version, and whether it is gone.
type Read<K> = fn(&K, String, bool) -> Option<KubeNews>;

impl Follow {
    /// Follows from a place.
    pub fn new(jobs: Api<Job>, pods: Api<Pod>, from: &KubePlace) -> Self {
        let (sender, news) = channel(QUEUE);
        let mut watches = JoinSet::new();
        let (all, of_jobs) = (WatchParams::default(), WatchParams::default().labels(JOB_LABEL));
        let read: Read<Job> = |job, version, gone| Some(read_job(job, version, gone));
        watches.spawn(follow(jobs, all, from.jobs.clone(), read, KubeNews::JobsUpTo, sender.clone()));
        watches.spawn(follow(pods, of_jobs, from.pods.clone(), read_pod, KubeNews::PodsUpTo, sender));
        Self { news, trouble: None, _watches: watches }
    }
}

fn read_job(job: &Job, version: String, gone: bool) -> KubeNews {
    KubeNews::Job { job: Box::new(view_job(job)), version, gone }
}

fn read_pod(pod: &Pod, version: String, gone: bool) -> Option<KubeNews> {
    view_pod(pod).map(|pod| KubeNews::Pod { pod: Box::new(pod), version, gone })
}

impl KubeWatch for Follow {
    fn next(&mut self) -> Boxed<'_, Result<Vec<KubeNews>, KubeError>> {
        Box::pin(async {
            if let Some(trouble) = self.trouble.take() {
                return Err(trouble);
            }
            let ended = || Err(KubeError::Unreachable("the watch ended".to_owned()));
            let mut all = vec![self.news.recv().await.unwrap_or_else(ended)?];
            // Whatever is there is taken at once.
            while let Ok(one) = self.news.try_recv() {
                match one {
                    Ok(one) => all.push(one),
                    Err(error) => {
                        self.trouble = Some(error);
                        break;
                    }
                }
            }
            Ok(all)
        })
    }
}

/// Passes on news until the cluster says no, or nobody wants them.
async fn follow<K>(
    api: Api<K>,
    asked: WatchParams,
    mut place: String,
    read: Read<K>,
    up_to: fn(String) -> KubeNews,
    sender: Sender<Result<KubeNews, KubeError>>,
) where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    loop {
        let events = match api.watch(&asked, &place).await {
            Ok(events) => events,
            Err(error) => return drop(sender.send(Err(read_error(&error))).await),
        };
        pin_mut!(events);
        let mut is_first = true;
        while let Ok(Some(event)) = timeout(SILENCE, events.next()).await {
            let version = |object: &K| object.resource_version().unwrap_or_default();
            let news = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    place = version(&object);
                    read(&object, place.clone(), false)
                }
                Ok(WatchEvent::Deleted(object)) => {
                    place = version(&object);
                    read(&object, place.clone(), true)
                }
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    place = bookmark.metadata.resource_version;
                    Some(up_to(place.clone()))
                }
                Ok(WatchEvent::Error(status)) => {
                    return drop(sender.send(Err(read_status(&status))).await);
                }
                // Cut at once is trouble; cut later is taken up again.
                Err(error) if is_first => return drop(sender.send(Err(read_error(&error))).await),
                Err(error) => {
                    tracing::debug!(%error, "a watch of jobs was cut");
                    break;
                }
            };
            is_first = false;
            if let Some(news) = news
                && sender.send(Ok(news)).await.is_err()
            {
                return;
            }
        }
    }
}

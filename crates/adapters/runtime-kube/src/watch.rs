//! The one watch over all pods of this server.
//!
//! Lists once, then follows changes from there; a stream that ends is taken up where it ended. Only when the cluster has
//! forgotten that place is everything listed anew.

use std::time::Duration;

use futures_util::{StreamExt as _, pin_mut};
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::desk::Message;
use crate::manifest::SERVER_LABEL;
use crate::pause::Pause;
use crate::pod::Pod;
use crate::pod_view::PodView;
use crate::refusal::{Refusal, read_refusal};

/// Pods in one page of a list.
const PAGE: u32 = 500;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Passes on what changes, until nobody wants to know.
pub(crate) async fn watch_pods(cluster: Cluster, desk: UnboundedSender<Message>) {
    let api: Api<Pod> = match &cluster.settings.namespace {
        Some(namespace) => cluster.pods(namespace),
        None => Api::all(cluster.client.clone()),
    };
    let selector = format!("{SERVER_LABEL}={}", cluster.settings.server);
    let mut pause = Pause::new(Duration::from_millis(500), LONGEST_PAUSE);
    let mut place = None;
    while !desk.is_closed() {
        let from = match place.take() {
            Some(from) => Ok(from),
            None => list(&api, &selector, &desk).await,
        };
        let followed = match from {
            Ok(from) => follow(&api, &selector, from, &desk, &mut pause).await,
            Err(error) => Err(error),
        };
        match followed {
            Ok(last) => place = last,
            Err(error) => {
                if pause.is_first() {
                    tracing::warn!(%error, "pods cannot be watched; trying again");
                }
                if let Refusal::Permanent { message, .. } = read_refusal(&error) {
                    drop(desk.send(Message::Unseen(message)));
                }
                sleep(pause.next()).await;
            }
        }
    }
}

/// Passes on all pods there are. Returns the place to follow from.
async fn list(
    api: &Api<Pod>,
    selector: &str,
    desk: &UnboundedSender<Message>,
) -> Result<String, kube::Error> {
    let mut views = Vec::new();
    let mut asked = ListParams::default().labels(selector).limit(PAGE);
    loop {
        let page = api.list(&asked).await?;
        views.extend(page.items.iter().filter_map(PodView::read));
        let Some(more) = page.metadata.continue_.filter(|more| !more.is_empty()) else {
            drop(desk.send(Message::Listed(views)));
            return Ok(page.metadata.resource_version.unwrap_or_default());
        };
        asked = asked.continue_token(&more);
    }
}

/// Passes on changes until the stream ends. Returns the place to go on from, if the cluster still knows it.
async fn follow(
    api: &Api<Pod>,
    selector: &str,
    from: String,
    desk: &UnboundedSender<Message>,
    pause: &mut Pause,
) -> Result<Option<String>, kube::Error> {
    let mut place = from;
    let events = api.watch(&WatchParams::default().labels(selector), &place).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        pause.reset();
        let message = match event {
            Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => {
                place = pod.metadata.resource_version.clone().unwrap_or(place);
                PodView::read(&pod).map(|view| Message::Seen(Box::new(view)))
            }
            Ok(WatchEvent::Deleted(pod)) => {
                place = pod.metadata.resource_version.clone().unwrap_or(place);
                PodView::read(&pod).map(|view| Message::Gone(Box::new(view)))
            }
            Ok(WatchEvent::Bookmark(bookmark)) => {
                place = bookmark.metadata.resource_version;
                None
            }
            // Too old a place, or another reason to look at everything again.
            Ok(WatchEvent::Error(error)) => {
                tracing::info!(%error, "pods are listed anew");
                return Ok(None);
            }
            // The connection was cut.
            Err(error) => {
                tracing::debug!(%error, "the watch of pods was cut");
                return Ok(Some(place));
            }
        };
        if message.is_some_and(|message| desk.send(message).is_err()) {
            return Ok(None);
        }
    }
    Ok(Some(place))
}

//! Follows one object of the cluster, for ever: how it is now, and whenever it changes.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{StreamExt as _, pin_mut};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Passes on the object, or nothing while there is none, until nobody wants to know. What fails is tried again, less and less
/// often.
pub(crate) async fn watch_one<K>(api: Api<K>, name: String, seen: UnboundedSender<Option<K>>)
where
    K: Clone + DeserializeOwned + Debug,
{
    let mut pause = FIRST_PAUSE;
    while !seen.is_closed() {
        match follow(&api, &name, &seen).await {
            // The cluster ends every watch after some minutes.
            Ok(()) => pause = FIRST_PAUSE,
            Err(error) => {
                tracing::warn!(name, %error, "an object of the cluster cannot be watched; trying again");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

async fn follow<K>(api: &Api<K>, name: &str, seen: &UnboundedSender<Option<K>>) -> Result<(), kube::Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let field = format!("metadata.name={name}");
    let mut list = api.list(&ListParams::default().fields(&field)).await?;
    let from = list.metadata.resource_version.take().unwrap_or_default();
    drop(seen.send(list.items.pop()));
    let events = api.watch(&WatchParams::default().fields(&field), &from).await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let news = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Some(object),
            Ok(WatchEvent::Deleted(_)) => None,
            Ok(WatchEvent::Bookmark(_)) => continue,
            Ok(WatchEvent::Error(_)) | Err(_) => return Ok(()),
        };
        if seen.send(news).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

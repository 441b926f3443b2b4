//! Tokens that expired are removed an hour later: until then their holders can be told that they expired.

use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::{Clock, Millis};
use muster_ports::publisher::Boxed;
use muster_ports::store::{ResourceName, Store, WatchScope};

use crate::tokens::{RESOURCE, Tokens};

/// How long a token is kept after it expired.
const KEPT: i64 = 60 * 60 * 1000;
/// Longest sleep: the clock may have been set meanwhile.
const LONGEST: i64 = 10 * 60 * 1000;
/// Pause after the store refused.
const REFUSED: i64 = 10_000;

/// Removes tokens in their time, until the store closes.
pub fn remove(store: Store, clock: Arc<dyn Clock>) -> Boxed<'static, ()> {
    Box::pin(async move {
        let tokens = Tokens::new(store.clone());
        while let Ok(mut changes) =
            store.watch(WatchScope::Resource(ResourceName::new(RESOURCE)), store.revision())
        {
            let now = clock.now();
            let pause = match tokens.remove_expired(Millis(now.0 - KEPT)).await {
                Ok(next) => next.map(|next| (next.0 + KEPT - now.0).clamp(1, LONGEST)),
                Err(error) => {
                    tracing::warn!(%error, "expired tokens could not be removed; it is tried again");
                    Some(REFUSED)
                }
            };
            let pause = pause.map(|millis| Duration::from_millis(u64::try_from(millis).unwrap_or(1)));
            tokio::select! {
                // However it ends, tokens are looked at anew.
                _ = changes.next(1) => {}
                () = sleep(pause) => {}
            }
        }
    })
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

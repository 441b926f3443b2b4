//! Pages that are made anew while they are looked at: at most twice a second, once for all who look at the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use muster_ports::pages::Reply;
use muster_ports::store::{WatchError, WatchScope};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::console::admit;
use crate::pages;
use crate::reply::stream as stream_of;
use crate::site::Visit;

/// Shortest time between two versions of a page.
const PACE: Duration = Duration::from_millis(500);
/// How often a browser hears that the connection lives.
const BEAT: Duration = Duration::from_secs(15);
/// Time after which what depends on the clock alone is made anew.
const STALE: Duration = Duration::from_secs(5);
/// Changes that are passed over at once.
const SLICE: usize = 4096;

/// Everybody who looks at the same page with the same rights sees the same.
type Which = (String, String, &'static str);

/// The pages that are looked at.
#[derive(Default, Clone)]
pub struct Live(Arc<Mutex<HashMap<Which, watch::Receiver<Arc<str>>>>>);

impl Live {
    /// A stream of versions of the page, the newest first.
    pub fn follow(&self, visit: Visit) -> Reply {
        let versions = self.versions(visit.clone());
        let state = (versions, true);
        let chunks = stream::unfold((state, visit), |((mut versions, first), visit)| async move {
            if !first {
                let beat = tokio::time::sleep(BEAT);
                tokio::select! {
                    changed = versions.changed() => changed.ok()?,
                    () = beat => return Some((Bytes::from_static(b": still here\n\n"), ((versions, first), visit))),
                    () = visit.door.closing() => return None,
                }
            }
            // Whoever lost their token sees nothing more.
            admit(&*visit.door, &visit.secret).ok()?;
            let html = versions.borrow_and_update().clone();
            let text = if html.is_empty() { String::from(": wait\n\n") } else { message(&html) };
            Some((Bytes::from(text), ((versions, false), visit)))
        });
        stream_of("text/event-stream", chunks)
    }

    fn versions(&self, visit: Visit) -> watch::Receiver<Arc<str>> {
        let role = match (visit.may_administer(), visit.may_write()) {
            (true, _) => "admin",
            (false, true) => "writer",
            (false, false) => "reader",
        };
        let which = (visit.path.clone(), visit.query.with("", ""), role);
        let mut all = self.0.lock();
        if let Some(known) = all.get(&which).filter(|known| known.has_changed().is_ok()) {
            return known.clone();
        }
        let (sender, receiver) = watch::channel(Arc::from(""));
        all.retain(|_, known| known.has_changed().is_ok());
        all.insert(which.clone(), receiver.clone());
        let live = self.clone();
        tokio::spawn(async move {
            keep_fresh(&visit, &sender).await;
            drop(sender);
            live.0.lock().remove(&which);
        });
        receiver
    }
}

/// Renders until nobody looks.
async fn keep_fresh(visit: &Visit, sender: &watch::Sender<Arc<str>>) {
    let store = &visit.site.store;
    loop {
        let began = Instant::now();
        let Ok(mut news) = store.watch(WatchScope::All, store.revision()) else { return };
        let html = pages::live(visit).await;
        sender.send_if_modified(|known| {
            let is_new = **known != *html;
            if is_new {
                *known = html.into();
            }
            is_new
        });
        tokio::time::sleep_until(began + PACE).await;
        // The hub itself holds one receiver.
        if sender.receiver_count() <= 1 {
            return;
        }
        let stale = tokio::time::sleep_until(began + STALE);
        tokio::select! {
            seen = news.next(SLICE) => if matches!(seen, Err(WatchError::Closed)) { return },
            () = stale => {}
        }
    }
}

fn message(html: &str) -> String {
    format!("event: page\ndata: {}\n\n", json!(html))
}

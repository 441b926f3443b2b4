//! Tasks that others brought to a server that was started for one command.
//!
//! Another `muster run` on the same directory submits its task here. The server must not go before that one has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_ports::store::{Change, Store, Watch, WatchScope};
use serde::Deserialize;

use super::super::signals::Signals;
use crate::output::streams;

/// Where tasks are kept.
const TASKS: &str = "tasks.muster.dev";
/// Changes taken in at once.
const CHANGES: usize = 256;

/// The tasks that were made since the server started.
pub struct Guests {
    changes: Watch,
    open: BTreeMap<Arc<str>, String>,
}

#[derive(Deserialize)]
struct Seen {
    metadata: Named,
    #[serde(default)]
    spec: Wanted,
    #[serde(default)]
    status: Stated,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize, Default)]
struct Wanted {
    #[serde(default)]
    suspend: bool,
}

#[derive(Deserialize, Default)]
struct Stated {
    #[serde(default)]
    state: muster_types::State,
}

impl Guests {
    /// Looks at what comes from now on.
    pub fn new(store: &Store) -> anyhow::Result<Self> {
        Ok(Self { changes: store.watch(WatchScope::All, store.revision())?, open: BTreeMap::new() })
    }

    /// Waits until all but the host's own task have ended, or the user does not want to.
    pub async fn see_off(&mut self, own: &str, signals: &mut Signals) {
        // What is behind the horizon of the store was long ago.
        while let Ok(changes) = self.changes.poll_page(CHANGES) {
            if changes.is_empty() {
                break;
            }
            for change in changes {
                self.observe(&change, own);
            }
        }
        if self.open.is_empty() {
            return;
        }
        let (who, they) = match self.open.len() {
            1 => ("1 other runs".to_owned(), "it has"),
            count => (format!("{count} others run"), "they have"),
        };
        streams::note(format!("{who} here too; leaving when {they} ended, or at once with Ctrl-C"));
        while !self.open.is_empty() {
            tokio::select! {
                changes = self.changes.next(CHANGES) => match changes {
                    Ok(changes) => changes.iter().for_each(|change| self.observe(change, own)),
                    Err(_) => return,
                },
                _ = signals.next() => return,
            }
        }
    }

    fn observe(&mut self, change: &Change, own: &str) {
        if change.resource.as_str() != TASKS {
            return;
        }
        let path = change.object.path.clone();
        let seen = serde_json::from_slice::<Seen>(change.object.json()).ok();
        let Some(seen) = seen.filter(|seen| !change.deleted && seen.metadata.name != own) else {
            self.open.remove(&path);
            return;
        };
        let is_new = change.previous.is_none();
        if seen.status.state.is_terminal() || seen.spec.suspend {
            self.open.remove(&path);
        } else if is_new {
            self.open.insert(path, seen.metadata.name);
        }
    }
}

//! Members that leave: a group that goes on deletes them in the commit that counts them; what left a group that has ended or
//! is gone is deleted as it is.

use std::sync::{Arc, LazyLock};

use futures_util::future::join_all;
use memchr::memmem::Finder;
use muster_ports::clock::Millis;
use muster_ports::store::{Batch, Key, Precondition, Store, Stored, Write};
use muster_types::{Counts, JsonText, Task};
use muster_workflows::departure::{COUNTED, Leaving};

use super::entries::OpenGroup;
use super::{Due, Names, SLICE, Workflows};
use crate::writes::put;

static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(COUNTED));

/// True if a stored task waits for its group to be deleted.
pub fn is_leaving(stored: &Stored) -> bool {
    MARK.find(stored.json()).is_some() && Leaving::read(stored.json()).is_some()
}

/// Members that are deleted with the next write of their group.
#[derive(Debug, Default)]
pub struct Departures {
    /// Their places.
    pub places: Vec<u32>,
    /// Their deletion.
    pub writes: Vec<Write>,
    /// How they ended.
    ended: Counts,
}

impl Departures {
    /// The members of a group that nothing else holds back.
    pub fn of(open: &OpenGroup, store: &Store, names: &Names) -> Self {
        let mut departures = Self::default();
        for place in open.leaving.iter().copied() {
            let Some(state) = open.members.state(place).filter(|state| state.is_terminal()) else { continue };
            let key = open.member_key(&names.tasks, place);
            let Some(stored) = store.get(&key) else { continue };
            if Leaving::read(stored.json()) != Some(Leaving::Group) {
                continue;
            }
            departures.places.push(place);
            departures.writes.push(Write::Delete { key, expect: Precondition::At(stored.revision) });
            *departures.ended.of(state) += 1;
            if departures.places.len() >= SLICE as usize {
                break;
            }
        }
        departures
    }

    /// Those that were gone before, and these.
    pub fn added_to(&self, mut gone: Counts) -> Counts {
        gone.succeeded += self.ended.succeeded;
        gone.failed += self.ended.failed;
        gone.canceled += self.ended.canceled;
        gone
    }
}

impl Workflows {
    /// Lets go of tasks whose group no longer counts.
    pub(super) async fn let_go(&mut self, paths: Vec<Arc<str>>, now: Millis) {
        let store = &self.store;
        let tasks = &self.names.tasks;
        let commits = paths.into_iter().filter_map(|path| {
            let batch = release(store, &Key { resource: tasks.clone(), path: path.clone() })?;
            Some(async move { (path, store.commit(batch).await) })
        });
        for (path, outcome) in join_all(commits).await {
            if let Err(error) = outcome {
                self.try_again(&error, Due::LetGo(path), now);
            }
        }
    }
}

/// Takes away what held a task for its group; `None` if nothing does.
fn release(store: &Store, key: &Key) -> Option<Batch> {
    let stored = store.get(key)?;
    let expect = Precondition::At(stored.revision);
    match Leaving::read(stored.json())? {
        Leaving::Group => Some(Batch::of(Write::Delete { key: key.clone(), expect })),
        Leaving::Others => {
            let mut task = Task::from_json(stored.json()).ok()?;
            task.metadata.finalizers.retain(|name| name != COUNTED);
            put(key.clone(), expect, &mut task).map(Batch::of)
        }
    }
}

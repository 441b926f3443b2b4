//! The loop of managed resources: it decides pulses, lets adapters answer them, and writes down how resources stand.
//!
//! What an adapter makes is written in one batch with the status that says so; calls go out after that commit. Decisions are
//! those of `muster-resources`.
//!
//! A resource costs nothing until it changed or is due: times lie in an index, and tasks lead to their resource by name.

mod changes;
mod entry;
mod intake;
mod live;
mod look;
mod outgoing;
mod types;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use futures_util::future::join_all;
use muster_ports::clock::{Clock, Millis};
use muster_ports::outbound::{Outbound, OutboundAnswer};
use muster_ports::store::{
    CommitError, Committed, ResourceName, Revision, Store, Watch, WatchError, WatchScope,
};
use muster_resources::plan::CallState;
use muster_types::LabelSelector;
use serde_json::Value as Json;

use crate::intake::Intake as _;
use crate::refusals::Refusals;
use entry::{Entry, Place};
pub use live::run;
use look::Looked;
use types::{Adapters, Types};

/// Resources looked at in one cycle.
const SLICE: usize = 512;
/// Steps that expressions take in one cycle; what is left is looked at in the next.
const MOST_STEPS: u64 = 1_000_000;
/// Time after which what the store refused is tried again.
const REFUSED_PAUSE: i64 = 1000;

/// What the loop needs besides the store.
#[derive(Clone, Default)]
pub struct Settings {
    /// Variables that adapters may read.
    pub env: BTreeMap<String, String>,
    /// The resources this server sees to; several servers can share them by their labels.
    pub selector: LabelSelector,
}

/// Where things are kept.
struct Names {
    types: ResourceName,
    adapters: ResourceName,
    tasks: ResourceName,
}

/// The loop's state.
pub struct Resources {
    store: Store,
    clock: Arc<dyn Clock>,
    outbound: Option<Arc<dyn Outbound>>,
    settings: Settings,
    env: Json,
    names: Names,
    watch: Watch,
    types: Types,
    adapters: Adapters,
    entries: HashMap<Place, Entry>,
    by_uid: HashMap<String, Place>,
    /// Whose task it is, by its path.
    by_task: HashMap<Arc<str>, Place>,
    /// What belongs to a resource, by its uid.
    children: HashMap<String, BTreeSet<Place>>,
    /// Calls of this server, by uid and adapter.
    calls: HashMap<String, BTreeMap<String, CallState>>,
    due: BTreeSet<(Millis, Place)>,
    order: VecDeque<Place>,
    /// Those whose expressions cost too much the last time: they come after all others.
    last: VecDeque<Place>,
    refusals: Refusals,
}

impl Resources {
    /// Reads what is stored.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        outbound: Option<Arc<dyn Outbound>>,
        settings: Settings,
    ) -> Result<Self, WatchError> {
        let name = |plural: &str| ResourceName::new(&format!("{plural}.muster.dev"));
        let names = Names { types: name("resourcetypes"), adapters: name("adapters"), tasks: name("tasks") };
        let mut resources = Self {
            watch: store.watch(WatchScope::All, store.revision())?,
            store,
            clock,
            outbound,
            env: settings.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            settings,
            names,
            types: Types::default(),
            adapters: Adapters::default(),
            entries: HashMap::new(),
            by_uid: HashMap::new(),
            by_task: HashMap::new(),
            children: HashMap::new(),
            calls: HashMap::new(),
            due: BTreeSet::new(),
            order: VecDeque::new(),
            last: VecDeque::new(),
            refusals: Refusals::of("managed resources"),
        };
        resources.read_all();
        Ok(resources)
    }

    /// One whole cycle. Returns when to look again even if nothing happens.
    pub async fn step(&mut self) -> Result<Option<Millis>, WatchError> {
        self.take_in()?;
        let now = self.clock.now();
        self.take_due(now);
        let (mut looked, mut steps) = (Vec::new(), 0);
        for _ in 0..SLICE {
            if steps >= MOST_STEPS {
                break;
            }
            let Some(place) = self.order.pop_front().or_else(|| self.last.pop_front()) else { break };
            if let Some(entry) = self.entries.get_mut(&place) {
                entry.dirty = false;
            }
            let found = self.look_at(&place, now);
            steps += found.as_ref().map_or(0, |found| found.steps);
            looked.extend(found);
        }
        self.commit(looked, now).await;
        self.refusals.tell(now);
        Ok(if self.order.is_empty() && self.last.is_empty() {
            self.due.first().map(|(at, _)| *at)
        } else {
            Some(now)
        })
    }

    /// Takes in what came of a call.
    pub fn answer(&mut self, answer: OutboundAnswer) {
        let OutboundAnswer { ticket, answer } = answer;
        if let Some(place) = self.by_uid.get(&ticket.uid).cloned() {
            let state = CallState::Answered { number: ticket.number, answer };
            self.calls.entry(ticket.uid).or_default().insert(ticket.adapter, state);
            self.mark(&place);
        }
    }

    fn take_due(&mut self, now: Millis) {
        while let Some((at, place)) = self.due.pop_first() {
            if at > now {
                self.due.insert((at, place));
                break;
            }
            if let Some(entry) = self.entries.get_mut(&place) {
                entry.due = None;
            }
            self.mark(&place);
        }
    }

    /// Asks for a look at a resource.
    fn mark(&mut self, place: &Place) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        if entry.aside_until.is_some_and(|until| self.clock.now() < until) {
            self.set_due(place, None);
            return;
        }
        if !entry.dirty {
            entry.dirty = true;
            let queue = if entry.too_costly > 0 { &mut self.last } else { &mut self.order };
            queue.push_back(place.clone());
        }
    }

    /// When it is looked at next. What is set aside is not looked at before its time, and is then.
    fn set_due(&mut self, place: &Place, at: Option<Millis>) {
        let Some(entry) = self.entries.get_mut(place) else { return };
        let at = entry.aside_until.map_or(at, |until| Some(at.map_or(until, |at| at.max(until))));
        if let Some(old) = entry.due.take() {
            self.due.remove(&(old, place.clone()));
        }
        if let Some(at) = at {
            entry.due = Some(at);
            self.due.insert((at, place.clone()));
        }
    }

    /// Commits what was decided. Resources are independent of each other, so one that fails harms only itself.
    async fn commit(&mut self, looked: Vec<Looked>, now: Millis) {
        let commits = looked.into_iter().map(|looked| {
            let store = self.store.clone();
            async move {
                let outcome = match looked.batch.clone() {
                    Some(batch) => store.commit(batch).await.map(Some),
                    None => Ok(None),
                };
                (looked, outcome)
            }
        });
        for (looked, outcome) in join_all(commits).await {
            // A look that wrote nothing says nothing about the store.
            if looked.batch.is_some() {
                self.refusals.observe(&outcome);
            }
            if let Some(entry) = self.entries.get_mut(&looked.place) {
                entry.note_cost(looked.too_costly, now);
            }
            match outcome {
                Ok(committed) => self.follow_up(looked, committed),
                Err(CommitError::Conflict { .. }) => self.mark(&looked.place),
                Err(error) => {
                    tracing::debug!(place = %looked.place, %error, "a decision could not be committed");
                    self.set_due(&looked.place, Some(Millis(now.0 + REFUSED_PAUSE)));
                }
            }
        }
    }

    /// What was committed is known at once, so that it brings no news; then what is to be done outside is done.
    fn follow_up(&mut self, looked: Looked, committed: Option<Committed>) {
        // The resource itself is the first of what was written.
        let own =
            committed.filter(|_| looked.changed).and_then(|it| it.objects.first().map(|own| own.revision));
        if let Some(entry) = self.entries.get_mut(&looked.place) {
            entry.seen = entry.seen.max(own.unwrap_or(Revision::ZERO));
        }
        self.set_due(&looked.place, looked.wake_at);
        for task in &looked.tasks {
            self.by_task.insert(task.clone(), looked.place.clone());
        }
        for (adapter, state) in looked.taken {
            if let Some(now) = self.calls.get_mut(&looked.uid).and_then(|calls| calls.get_mut(&adapter))
                && *now == state
            {
                *now = CallState::Taken;
            }
        }
        for call in looked.calls {
            self.make_call(&looked.uid, call);
        }
    }
}

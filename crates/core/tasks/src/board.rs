//! The board: every task that has not ended, indexed so that the next one to start is found without looking at the others.
//!
//! Fed by [`Board::observe`] and [`Board::forget`] with each committed change, and by nothing else; the same changes in the
//! same order always give the same board. [`Board::plan`] decides what starts. What it decided counts as done from then on,
//! until a change says otherwise.
//!
//! Rules (design 4.2), where they live, and what they cost:
//! - order and escalation: `Group::head` and the lent priority of a group, O(log n) per change;
//! - Unique: a group with an active task offers none;
//! - Dependency: a group offers none while a group it depends on, on the same subject, has members;
//! - Preempted: a resting task is in no group's queue until its time has come;
//! - Absent: neither is one that names something that does not exist, until that appears ([`crate::absent`]);
//! - Isolated, capacity: checked in order of rank when a pass looks at what is offered.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use muster_types::State;
use muster_types::placement::Demand;
use muster_types::task::Runtime;

use crate::absent::Awaited;
use crate::capacity::{Capacity, Load, Rooms};
use crate::group::{Group, GroupId, GroupKey, Rank, Slot};
use crate::kinds::KindGraph;
use crate::lanes::{Lane, Lanes};
use crate::names::Names;
use crate::no_node::{NeedsId, NoNode, PlacementNeeds};
use crate::places::Unplaced;
use crate::plan::Hold;
use crate::quota::{NamespaceId, Quotas};
use crate::set_back::NoNodeSince;
use crate::settings::{Rule, Settings};
use crate::stuck::Stuck;
use crate::view::{Need, TaskView};

/// A task on the board.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub uid: u128,
    pub path: Arc<str>,
    pub phase: Phase,
    pub since: i64,
    pub priority: i32,
    pub group: GroupId,
    pub runtime: Runtime,
    /// The namespace in which its pod is created, if it is run as one.
    pub namespace: Option<NamespaceId>,
    pub need: Need,
    pub isolated: bool,
    pub preempt_enabled: bool,
    pub preempt_exempt: bool,
    /// Its attempt was told to end.
    pub stopping: bool,
    /// It is deleted.
    pub deleted: bool,
    /// Its attempt may wait at the runtime for a slot: no rule but order and slots can hold it back.
    pub may_prefetch: bool,
    /// Its attempt was asked for again.
    pub recalled: bool,
    /// Its kind, by number.
    pub kind: u32,
    /// What it asks of a robot.
    pub demand: Option<Arc<Demand>>,
    /// What it asks of a node, by number.
    pub needs: NeedsId,
}

impl Entry {
    /// What it takes of the room of its runtime.
    pub fn load(&self) -> Load {
        Load { need: self.need, namespace: self.namespace }
    }

    /// Where it is offered.
    pub fn lane(&self) -> Lane {
        (crate::capacity::index(self.runtime), self.namespace)
    }
}

/// Where a task stands, as far as starting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In its group's queue. The state it is shown in.
    Waiting(State),
    /// Not before this time.
    Resting(i64),
    /// Set aside: it asks for more than there is.
    Unfit,
    /// Its attempt waits at the runtime for a slot, or is about to. The state it is shown in.
    Prefetched(State),
    /// Set aside: it names something that does not exist. The state it is shown in.
    Awaiting(State),
    /// Chosen by a pass; its attempt is about to be committed.
    Chosen,
    /// Its attempt was committed and does not run yet.
    Pending,
    /// Its attempt runs.
    Running,
}

impl Phase {
    pub fn is_active(self) -> bool {
        matches!(self, Self::Prefetched(_) | Self::Chosen | Self::Pending | Self::Running)
    }

    /// The state that is recorded of it, in which it is counted.
    pub fn state(self) -> State {
        match self {
            Self::Waiting(state) | Self::Prefetched(state) | Self::Awaiting(state) => state,
            // It went back to the queue when its last attempt ended.
            Self::Resting(_) => State::Ready,
            Self::Unfit => State::QuotaBlocked,
            Self::Chosen | Self::Pending => State::Pending,
            Self::Running => State::Running,
        }
    }
}

/// Every task that has not ended.
#[derive(Debug)]
pub struct Board {
    pub(crate) settings: Settings,
    pub(crate) kinds: KindGraph,
    kind_priorities: BTreeMap<String, i32>,
    /// Kinds whose dependencies must have succeeded.
    strict: BTreeSet<String>,
    /// How the latest task of a group ended, if a strict kind may ask: when, which, and whether it failed.
    outcomes: BTreeMap<GroupId, Outcome>,
    /// The groups of those tasks, by uid.
    outcome_groups: BTreeMap<u128, GroupId>,
    pub(crate) names: Names,
    /// How many tasks there are of a kind in a state.
    census: BTreeMap<(u32, State), usize>,
    slots: BTreeMap<u128, Slot>,
    entries: Vec<Option<Entry>>,
    vacant: Vec<Slot>,
    group_ids: BTreeMap<GroupKey, GroupId>,
    pub(crate) groups: Vec<Group>,
    /// Groups of each subject.
    subjects: BTreeMap<u32, BTreeSet<GroupId>>,
    /// The next task of each group that may start, in order.
    pub(crate) offered: BTreeMap<Rank, GroupId>,
    /// Tasks that rest, by when their rest ends.
    pub(crate) resting: BTreeSet<(i64, Slot)>,
    /// Running tasks that may be preempted, lowest effective priority first, newest first.
    pub(crate) victims: BTreeSet<Victim>,
    /// Tasks whose attempt waits at the runtime for a slot and was not asked for again, in order.
    pub(crate) prefetched: BTreeSet<Rank>,
    /// Attempts that were asked for again to go back into the queue, and are not given back yet.
    pub(crate) recalled: BTreeSet<Rank>,
    /// Nothing is started any more.
    pub(crate) is_closed: bool,
    /// Tasks that have an attempt, or are about to.
    pub(crate) active: BTreeSet<Slot>,
    /// Those of them whose attempt was told to end.
    pub(crate) leaving: BTreeSet<Slot>,
    /// Tasks whose attempt finds no place at its runtime, by uid.
    pub(crate) stuck: BTreeMap<u128, Stuck>,
    /// What pods ask of nodes, numbered from 1.
    placement_needs: BTreeMap<PlacementNeeds, NeedsId>,
    /// Pods that find no node, and who waits for that.
    pub(crate) no_node: NoNode,
    /// Tasks that ask for more than there is.
    unfit: BTreeSet<Slot>,
    /// Tasks that wait for something that does not exist.
    pub(crate) awaited: Awaited,
    pub(crate) rooms: Rooms,
    pub(crate) quotas: Quotas,
    /// The namespace of all pods; that of their task if nothing is said.
    pub(crate) pod_namespace: Option<NamespaceId>,
    /// What is asked of robots, numbered from 1.
    demands: BTreeMap<Arc<Demand>, u32>,
    /// Why no robot was found, by what was asked for.
    pub(crate) unplaced: BTreeMap<Arc<Demand>, Unplaced>,
    /// Offered tasks by lane.
    pub(crate) lanes: Lanes,
    /// Isolated tasks with an attempt.
    pub(crate) isolated_active: u32,
    /// Isolated tasks that could not start even if nothing else ran, as the last pass found.
    pub(crate) stranded: BTreeMap<Slot, Hold>,
    /// Isolated tasks whose pod found no place in the cluster, by uid.
    pub(crate) set_back: BTreeMap<u128, NoNodeSince>,
    /// Tasks nobody has said yet why they wait; bounded.
    pub(crate) unexplained: VecDeque<Slot>,
    /// An isolated task has no attempt any more, or is not the next of its group any more.
    pub(crate) isolation_eased: bool,
}

/// How a task ended.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    at: (i64, u128),
    pub path: Arc<str>,
    failed: bool,
}

/// How many tasks may wait to be told why they wait.
const MAX_UNEXPLAINED: usize = 4096;

impl Board {
    /// An empty board.
    pub fn new(settings: Settings, capacity: impl Fn(Runtime) -> Capacity) -> Self {
        Self {
            settings,
            kinds: KindGraph::default(),
            kind_priorities: BTreeMap::new(),
            strict: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            outcome_groups: BTreeMap::new(),
            names: Names::default(),
            census: BTreeMap::new(),
            slots: BTreeMap::new(),
            entries: Vec::new(),
            vacant: Vec::new(),
            group_ids: BTreeMap::new(),
            groups: Vec::new(),
            subjects: BTreeMap::new(),
            offered: BTreeMap::new(),
            resting: BTreeSet::new(),
            victims: BTreeSet::new(),
            prefetched: BTreeSet::new(),
            recalled: BTreeSet::new(),
            is_closed: false,
            active: BTreeSet::new(),
            leaving: BTreeSet::new(),
            stuck: BTreeMap::new(),
            placement_needs: BTreeMap::new(),
            no_node: NoNode::default(),
            unfit: BTreeSet::new(),
            awaited: Awaited::default(),
            rooms: Rooms::new(capacity),
            quotas: Quotas::default(),
            pod_namespace: None,
            demands: BTreeMap::new(),
            unplaced: BTreeMap::new(),
            lanes: Lanes::default(),
            isolated_active: 0,
            stranded: BTreeMap::new(),
            set_back: BTreeMap::new(),
            unexplained: VecDeque::new(),
            isolation_eased: false,
        }
    }

    /// Takes in a task as it was committed.
    pub fn observe(&mut self, task: &TaskView) {
        let recalled = task.prefetched && self.is_recalled(task.uid);
        let was_leaving = self.slot_of(task.uid).is_some_and(|slot| self.leaving.contains(&slot));
        self.remove(task.uid);
        if was_leaving && !task.stopping && matches!(task.state, State::Pending | State::Running) {
            self.observe_stays(task.uid);
        }
        if !matches!(task.state, State::Ready | State::Postponed | State::QuotaBlocked) {
            self.awaited.forget(task.uid);
        }
        match task.state {
            State::Pending => {}
            State::Ready | State::Postponed | State::QuotaBlocked => {
                self.set_back.entry(task.uid).and_modify(|since| *since = None);
            }
            State::Created | State::Running | State::Succeeded | State::Failed | State::Canceled => {
                self.set_back.remove(&task.uid);
            }
        }
        if !task.prefetched && !matches!(task.state, State::Pending | State::Running) {
            // Whatever was known of the place of its attempt, it has none any more: its start may not have been committed.
            self.observe_placed(task.uid);
        }
        let phase = match task.state {
            State::Succeeded | State::Failed => return self.note_outcome(task),
            State::Created | State::Canceled => return,
            State::Pending => Phase::Pending,
            State::Running => Phase::Running,
            state if task.prefetched => Phase::Prefetched(state),
            State::Ready | State::Postponed | State::QuotaBlocked
                if task.rest_until > 0 && self.settings.keeps(Rule::Rest) =>
            {
                Phase::Resting(task.rest_until)
            }
            State::Ready | State::Postponed | State::QuotaBlocked if self.awaited.get(task.uid).is_some() => {
                Phase::Awaiting(task.state)
            }
            State::Ready | State::Postponed | State::QuotaBlocked => Phase::Waiting(task.state),
        };
        let needs = self.needs_of(task);
        let group = self.group_of(task);
        let kind_priority = self.kind_priorities.get(&qualified(task, &task.kind)).copied();
        let runtime = task.runtime.unwrap_or(self.settings.default_runtime);
        let entry = Entry {
            uid: task.uid,
            path: task.path.clone(),
            phase,
            since: task.since,
            priority: self.asked_priority(task.priority.or(kind_priority).unwrap_or(0)),
            group,
            runtime,
            namespace: self.namespace_of(task),
            need: task.need,
            isolated: task.isolated,
            preempt_enabled: task.preempt_enabled,
            preempt_exempt: task.preempt_exempt,
            stopping: task.stopping,
            deleted: task.deleted,
            may_prefetch: runtime == Runtime::Process
                && task.is_first
                && task.need == Need::default()
                && task.subject.is_empty()
                && !task.isolated,
            recalled: task.stopping || recalled,
            kind: self.names.intern(&task.kind),
            demand: task.demand.clone(),
            needs,
        };
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            Slot::try_from(self.entries.len() - 1).unwrap_or(Slot::MAX)
        });
        self.slots.insert(task.uid, slot);
        self.groups[group as usize].members += 1;
        let is_unexplained = match phase {
            Phase::Waiting(State::Ready) | Phase::Awaiting(State::Ready) => true,
            // Refused by its executor, or read after a restart: others may hold it back by now.
            Phase::Waiting(State::QuotaBlocked) => self.groups[group as usize].is_exclusive(),
            _ => false,
        };
        if is_unexplained {
            self.explain_soon(slot);
        }
        self.put(slot, entry);
        self.refresh_around(group);
    }

    /// What a task waits for may be another thing than is recorded.
    pub(crate) fn explain_soon(&mut self, slot: Slot) {
        if self.unexplained.len() < MAX_UNEXPLAINED {
            self.unexplained.push_back(slot);
        }
    }

    /// An isolated task ended, went or cannot start: what waited for it waits for something else.
    pub(crate) fn notice_isolation(&mut self) {
        if !std::mem::take(&mut self.isolation_eased) || self.isolated_active > 0 {
            return;
        }
        let free = MAX_UNEXPLAINED.saturating_sub(self.unexplained.len());
        let waited = self.entries().map(|(slot, _)| slot).filter(|slot| self.is_postponed(*slot));
        let waited: Vec<Slot> = waited.take(free).collect();
        self.unexplained.extend(waited);
    }

    /// True if it is recorded of a task in the queue that a rule holds it back.
    pub(crate) fn is_postponed(&self, slot: Slot) -> bool {
        self.entry(slot).is_some_and(|entry| entry.phase == Phase::Waiting(State::Postponed))
    }

    /// A task is gone.
    pub fn forget(&mut self, uid: u128) {
        self.remove(uid);
        self.awaited.forget(uid);
        self.set_back.remove(&uid);
        self.observe_placed(uid);
        if let Some(group) = self.outcome_groups.remove(&uid) {
            self.outcomes.remove(&group);
            self.refresh_around(group);
        }
    }

    /// A task ended: what depends on it may have to know how.
    fn note_outcome(&mut self, task: &TaskView) {
        if self.strict.is_empty() || task.kind.is_empty() || task.subject.is_empty() {
            return;
        }
        let group = self.group_of(task);
        let outcome = Outcome {
            at: (task.since, task.uid),
            path: task.path.clone(),
            failed: task.state == State::Failed,
        };
        if self.outcomes.get(&group).is_none_or(|known| known.at <= outcome.at) {
            self.outcome_groups.insert(task.uid, group);
            if let Some(old) = self.outcomes.insert(group, outcome).filter(|old| old.at.1 != task.uid) {
                self.outcome_groups.remove(&old.at.1);
            }
            self.refresh_around(group);
        }
    }

    /// Takes a task off the board.
    fn remove(&mut self, uid: u128) {
        let Some(slot) = self.slots.remove(&uid) else { return };
        let Some(entry) = self.take(slot) else { return };
        self.stranded.remove(&slot);
        self.vacant.push(slot);
        self.groups[entry.group as usize].members -= 1;
        self.refresh_around(entry.group);
    }

    /// The kinds changed; all names are `namespace/name`. `strict` are the kinds whose dependencies must have succeeded. Costs
    /// in proportion to the board; kinds change rarely. True if tasks must be observed again, because default priorities are
    /// others or it matters how tasks ended.
    pub fn set_kinds(
        &mut self,
        kinds: KindGraph,
        priorities: BTreeMap<String, i32>,
        strict: BTreeSet<String>,
    ) -> bool {
        let others = self.kind_priorities != priorities || self.strict != strict;
        self.kinds = kinds;
        self.strict = strict;
        self.kind_priorities = priorities;
        let all: Vec<GroupId> = self.subjects.values().flatten().copied().collect();
        for group in all {
            self.refresh_boost(group);
        }
        for group in 0..self.groups.len() {
            self.refresh_offer(GroupId::try_from(group).unwrap_or(GroupId::MAX));
        }
        others
    }

    /// From now on, no pass decides anything: this server gives up the lead.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// How many attempts may wait at a runtime for a slot.
    pub fn set_prefetch(&mut self, runtime: Runtime, prefetch: u32) {
        self.rooms.set_prefetch(runtime, prefetch);
    }

    /// Attempts that wait at a runtime for a slot, those included that were asked for again and not given back yet.
    pub fn prefetched(&mut self, runtime: Runtime) -> u32 {
        self.rooms.of(runtime).prefetched
    }

    /// True if the attempt of a task waits at the runtime and was not asked for again.
    pub fn is_prefetched(&self, uid: u128) -> bool {
        self.prefetched_entry(uid).is_some_and(|entry| !entry.recalled)
    }

    /// True if the attempt of a task waits at the runtime and was asked for again.
    fn is_recalled(&self, uid: u128) -> bool {
        self.prefetched_entry(uid).is_some_and(|entry| entry.recalled)
    }

    fn prefetched_entry(&self, uid: u128) -> Option<&Entry> {
        let entry = self.slot_of(uid).and_then(|slot| self.entry(slot));
        entry.filter(|entry| matches!(entry.phase, Phase::Prefetched(_)))
    }

    /// The tasks whose attempts wait at the runtime and were not asked for again, lowest rank first.
    pub fn prefetched_lowest_first(&self) -> Vec<u128> {
        self.prefetched.iter().rev().map(|(_, uid, _)| *uid).collect()
    }

    /// The prefetched attempt of a task is asked for again. False if there is none, or it was before.
    pub fn recall(&mut self, uid: u128) -> bool {
        let Some(slot) = self.slot_of(uid).filter(|_| self.is_prefetched(uid)) else { return false };
        if let Some(mut entry) = self.take(slot) {
            entry.recalled = true;
            self.put(slot, entry);
        }
        true
    }

    /// Where a task runs, if it is on the board.
    pub fn runtime_of(&self, uid: u128) -> Option<Runtime> {
        self.entry(self.slot_of(uid)?).map(|entry| entry.runtime)
    }

    /// Attempts at a runtime.
    pub fn taken(&mut self, runtime: Runtime) -> u32 {
        self.rooms.of(runtime).taken
    }

    /// How many tasks there are: of which kind, in which state.
    pub fn census(&self) -> impl Iterator<Item = (&str, State, usize)> {
        self.census.iter().map(|((kind, state), count)| (self.names.get(*kind), *state, *count))
    }

    /// Where the tasks are stored that have an attempt.
    pub fn active_paths(&self) -> Vec<Arc<str>> {
        let active = self.entries().filter(|(_, entry)| entry.phase.is_active());
        active.map(|(_, entry)| entry.path.clone()).collect()
    }

    /// Where a task is stored, if it is on the board.
    pub fn path_of(&self, uid: u128) -> Option<&Arc<str>> {
        self.entry(self.slot_of(uid)?).map(|entry| &entry.path)
    }

    /// How much a runtime holds changed.
    pub fn set_capacity(&mut self, runtime: Runtime, capacity: Capacity) {
        self.rooms.resize(runtime, capacity);
        for slot in std::mem::take(&mut self.unfit) {
            self.move_to(slot, Phase::Waiting(State::QuotaBlocked));
        }
    }

    /// Tasks on the board.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if no task is on the board.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Tasks with an attempt.
    pub fn active(&self) -> u32 {
        self.rooms.taken()
    }

    /// The priority that counts: a task's own, or what tasks that depend on it lend it.
    pub(crate) fn effective_priority(&self, entry: &Entry) -> i32 {
        entry.priority.max(self.groups[entry.group as usize].boost)
    }

    pub(crate) fn slot_of(&self, uid: u128) -> Option<Slot> {
        self.slots.get(&uid).copied()
    }

    pub(crate) fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot as usize)?.as_ref()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (Slot, &Entry)> {
        self.slots.values().filter_map(|slot| Some((*slot, self.entry(*slot)?)))
    }

    /// The priority that counts.
    fn asked_priority(&self, asked: i32) -> i32 {
        if self.settings.keeps(Rule::Order) { asked } else { -asked }
    }

    /// The group a task belongs to.
    fn group_of(&mut self, task: &TaskView) -> GroupId {
        let key = if task.subject.is_empty() {
            let runtime = task.runtime.unwrap_or(self.settings.default_runtime);
            let number = Runtime::ALL.iter().position(|known| *known == runtime).unwrap_or(0);
            GroupKey::Free {
                runtime: u8::try_from(number).unwrap_or(u8::MAX),
                cpu: task.need.cpu_millis > 0,
                memory: task.need.memory > 0,
                demand: task.demand.as_ref().map_or(0, |demand| self.number_of(demand)),
                needs: self.needs_of(task),
                namespace: self.namespace_of(task),
                isolated: task.isolated,
            }
        } else {
            let subject = self.names.intern(&qualified(task, &task.subject));
            let kind = (!task.kind.is_empty()).then(|| self.names.intern(&qualified(task, &task.kind)));
            let addon = if kind.is_none() { Some(self.names.intern(&task.addon)) } else { None };
            GroupKey::Exclusive { subject, kind, addon }
        };
        if let Some(id) = self.group_ids.get(&key) {
            return *id;
        }
        let id = GroupId::try_from(self.groups.len()).unwrap_or(GroupId::MAX);
        if let GroupKey::Exclusive { subject, .. } = key {
            self.subjects.entry(subject).or_default().insert(id);
        }
        self.group_ids.insert(key.clone(), id);
        self.groups.push(Group::new(key));
        id
    }

    /// The namespace in which the pod of a task is created, if it runs as one.
    fn namespace_of(&mut self, task: &TaskView) -> Option<NamespaceId> {
        let is_pod = task.runtime.unwrap_or(self.settings.default_runtime) == Runtime::Pod;
        is_pod.then(|| self.pod_namespace.unwrap_or_else(|| self.names.intern(namespace_in(&task.path))))
    }

    /// Number of what a task asks of a node, if it runs as a pod.
    fn needs_of(&mut self, task: &TaskView) -> NeedsId {
        if task.runtime.unwrap_or(self.settings.default_runtime) != Runtime::Pod {
            return 0;
        }
        let needs = PlacementNeeds {
            placement: self.names.intern(&task.placement),
            kind: self.names.intern(&task.kind),
            addon: self.names.intern(&task.addon),
            cpu_millis: task.need.cpu_millis,
            memory: task.need.memory,
        };
        let next = u32::try_from(self.placement_needs.len()).unwrap_or(u32::MAX).saturating_add(1);
        *self.placement_needs.entry(needs).or_insert(next)
    }

    fn number_of(&mut self, demand: &Arc<Demand>) -> u32 {
        let next = u32::try_from(self.demands.len()).unwrap_or(u32::MAX).saturating_add(1);
        *self.demands.entry(demand.clone()).or_insert(next)
    }

    /// Puts an entry into the indexes of its phase.
    fn put(&mut self, slot: Slot, entry: Entry) {
        *self.census.entry((entry.kind, entry.phase.state())).or_insert(0) += 1;
        let group = &mut self.groups[entry.group as usize];
        match entry.phase {
            Phase::Waiting(_) => {
                group.add(entry.priority, entry.uid, slot);
                if entry.preempt_enabled {
                    group.preempting.insert((Reverse(entry.priority), slot));
                }
            }
            Phase::Resting(until) => {
                group.elsewhere.insert(slot);
                group.aside.insert((Reverse(entry.priority), slot));
                self.resting.insert((until, slot));
            }
            Phase::Unfit => {
                group.elsewhere.insert(slot);
                group.aside.insert((Reverse(entry.priority), slot));
                self.unfit.insert(slot);
            }
            Phase::Prefetched(_) => {
                group.elsewhere.insert(slot);
                self.rooms.of(entry.runtime).prefetched += 1;
                let rank = (Reverse(entry.priority), entry.uid, slot);
                if !entry.recalled {
                    self.prefetched.insert(rank);
                } else if !entry.stopping {
                    self.recalled.insert(rank);
                }
            }
            Phase::Awaiting(_) => {
                group.elsewhere.insert(slot);
                group.aside.insert((Reverse(entry.priority), slot));
            }
            Phase::Chosen | Phase::Pending | Phase::Running => {
                group.elsewhere.insert(slot);
                group.active += 1;
                self.rooms.of(entry.runtime).enter(entry.load());
                self.quotas.enter(entry.namespace);
                self.isolated_active += u32::from(entry.isolated);
                self.active.insert(slot);
                if entry.stopping {
                    self.leaving.insert(slot);
                }
                if may_be_preempted(&entry) {
                    self.victims.insert(victim(slot, &entry, group.boost));
                }
            }
        }
        self.entries[slot as usize] = Some(entry);
    }

    /// Takes an entry out of the indexes of its phase.
    fn take(&mut self, slot: Slot) -> Option<Entry> {
        let entry = self.entries.get_mut(slot as usize)?.take()?;
        let counted = (entry.kind, entry.phase.state());
        if let Some(count) = self.census.get_mut(&counted) {
            *count -= 1;
            if *count == 0 {
                self.census.remove(&counted);
            }
        }
        let group = &mut self.groups[entry.group as usize];
        match entry.phase {
            Phase::Waiting(_) => {
                group.remove(entry.priority, entry.uid, slot);
                group.preempting.remove(&(Reverse(entry.priority), slot));
            }
            Phase::Resting(until) => {
                group.elsewhere.remove(&slot);
                group.aside.remove(&(Reverse(entry.priority), slot));
                self.resting.remove(&(until, slot));
            }
            Phase::Unfit => {
                group.elsewhere.remove(&slot);
                group.aside.remove(&(Reverse(entry.priority), slot));
                self.unfit.remove(&slot);
            }
            Phase::Prefetched(_) => {
                group.elsewhere.remove(&slot);
                self.rooms.of(entry.runtime).prefetched -= 1;
                let rank = (Reverse(entry.priority), entry.uid, slot);
                self.prefetched.remove(&rank);
                self.recalled.remove(&rank);
            }
            Phase::Awaiting(_) => {
                group.elsewhere.remove(&slot);
                group.aside.remove(&(Reverse(entry.priority), slot));
            }
            Phase::Chosen | Phase::Pending | Phase::Running => {
                group.elsewhere.remove(&slot);
                group.active -= 1;
                self.rooms.of(entry.runtime).leave(entry.load());
                self.quotas.leave(entry.namespace);
                self.isolated_active -= u32::from(entry.isolated);
                self.isolation_eased |= entry.isolated;
                self.active.remove(&slot);
                self.leaving.remove(&slot);
                self.victims.remove(&victim(slot, &entry, group.boost));
            }
        }
        Some(entry)
    }

    /// Moves a task to another phase.
    pub(crate) fn move_to(&mut self, slot: Slot, phase: Phase) {
        if let Some(mut entry) = self.take(slot) {
            entry.phase = phase;
            let group = entry.group;
            self.put(slot, entry);
            self.refresh_offer(group);
        }
    }

    /// A running task was told to end.
    pub(crate) fn mark_stopping(&mut self, slot: Slot) {
        if let Some(mut entry) = self.take(slot) {
            entry.stopping = true;
            self.put(slot, entry);
        }
    }

    /// A group's members changed: it, what it depends on and what depends on it may be offered anew.
    fn refresh_around(&mut self, group: GroupId) {
        let GroupKey::Exclusive { subject, kind: Some(kind), .. } = self.groups[group as usize].key else {
            self.refresh_offer(group);
            return;
        };
        let others: Vec<GroupId> = self.subjects.get(&subject).into_iter().flatten().copied().collect();
        for other in others {
            let GroupKey::Exclusive { kind: Some(other_kind), .. } = self.groups[other as usize].key else {
                continue;
            };
            if other == group {
                continue;
            }
            if self.depends(kind, other_kind) {
                self.refresh_boost(other);
                self.refresh_offer(other);
            } else if self.depends(other_kind, kind) {
                self.refresh_offer(other);
            }
        }
        self.refresh_boost(group);
        self.refresh_offer(group);
    }

    /// True if tasks of one kind wait for tasks of the other.
    fn depends(&self, kind: u32, on: u32) -> bool {
        self.kinds.depends(self.names.get(kind), self.names.get(on))
    }

    /// The highest priority among waiting tasks that depend on this group.
    fn refresh_boost(&mut self, group: GroupId) {
        let lenders =
            if self.settings.keeps(Rule::Escalation) { self.dependents_of(group) } else { Vec::new() };
        let lent = lenders.into_iter().filter_map(|other| self.groups[other as usize].highest()).max();
        let boost = lent.map_or(i32::MIN, |(priority, _)| priority);
        let before = std::mem::replace(&mut self.groups[group as usize].boost, boost);
        if before == boost {
            return;
        }
        // Running tasks of the group give way later, or sooner, than they did.
        for slot in &self.groups[group as usize].elsewhere {
            let entry = self.entries.get(*slot as usize).and_then(Option::as_ref);
            if let Some(entry) = entry.filter(|entry| may_be_preempted(entry)) {
                self.victims.remove(&victim(*slot, entry, before));
                self.victims.insert(victim(*slot, entry, boost));
            }
        }
    }

    /// Offers the head of a group, if the rules between groups let it start.
    pub(crate) fn refresh_offer(&mut self, group: GroupId) {
        let taken = self.groups[group as usize].is_taken() && self.settings.keeps(Rule::Unique);
        let offer =
            if taken || self.blocker_of(group).is_some() { None } else { self.groups[group as usize].head() };
        let current = self.groups[group as usize].offered;
        if current == offer {
            return;
        }
        self.withdraw_offer(group);
        // One that waited for room is held back by a rule now, or the other way round.
        for (.., slot) in current.into_iter().chain(offer) {
            let is_waiting = self.entry(slot).is_some_and(|entry| matches!(entry.phase, Phase::Waiting(_)));
            if is_waiting && self.groups[group as usize].is_exclusive() {
                self.explain_soon(slot);
            }
        }
        if let Some(rank) = offer {
            self.offered.insert(rank, group);
            if let Some((lane, isolated)) = self.entry(rank.2).map(|entry| (entry.lane(), entry.isolated)) {
                self.lanes.insert(lane, rank);
                self.groups[group as usize].offered_on = Some(lane);
                self.groups[group as usize].offers_isolated = isolated;
            }
        }
        self.groups[group as usize].offered = offer;
    }

    /// Offers no task of a group until it is refreshed.
    pub(crate) fn withdraw_offer(&mut self, group: GroupId) {
        let Some((rank, lane)) = self.offer_of(group) else { return };
        self.offered.remove(&rank);
        self.lanes.remove(lane, rank);
        let group = &mut self.groups[group as usize];
        (group.offered, group.offered_on) = (None, None);
        self.isolation_eased |= group.offers_isolated;
    }

    /// The task that a group offers, and the lane in which it does.
    pub(crate) fn offer_of(&self, group: GroupId) -> Option<(Rank, Lane)> {
        let group = &self.groups[group as usize];
        group.offered.zip(group.offered_on)
    }

    /// Groups whose tasks wait for tasks of this one.
    pub(crate) fn dependents_of(&self, group: GroupId) -> Vec<GroupId> {
        let GroupKey::Exclusive { subject, kind: Some(kind), .. } = self.groups[group as usize].key else {
            return Vec::new();
        };
        let others = self.subjects.get(&subject).into_iter().flatten().copied();
        let depends = |other: &GroupId| match self.groups[*other as usize].key {
            GroupKey::Exclusive { kind: Some(other_kind), .. } => self.depends(other_kind, kind),
            _ => false,
        };
        others.filter(depends).collect()
    }

    /// A group this one waits for.
    pub(crate) fn blocker_of(&self, group: GroupId) -> Option<GroupId> {
        let GroupKey::Exclusive { subject, kind: Some(kind), .. } = self.groups[group as usize].key else {
            return None;
        };
        if !self.settings.keeps(Rule::Dependency) {
            return None;
        }
        let strict = !self.strict.is_empty() && self.strict.contains(self.names.get(kind));
        self.subjects.get(&subject)?.iter().copied().find(|other| {
            let other_group = &self.groups[*other as usize];
            let GroupKey::Exclusive { kind: Some(other_kind), .. } = other_group.key else { return false };
            let holds = other_group.members > 0 || (strict && self.failure_of(*other).is_some());
            *other != group && holds && self.depends(kind, other_kind)
        })
    }

    /// The task of a group that ended last, if it failed and nobody tries again.
    pub(crate) fn failure_of(&self, group: GroupId) -> Option<&Outcome> {
        self.outcomes.get(&group).filter(|outcome| outcome.failed && self.groups[group as usize].members == 0)
    }
}

/// A name in the namespace of a task: kinds and subjects of different namespaces have nothing to do with each other.
fn qualified(task: &TaskView, name: &str) -> String {
    format!("{}/{name}", namespace_in(&task.path))
}

/// The namespace in the path of a task.
fn namespace_in(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Where a running task stands in the order of giving way: lowest effective priority first, then newest.
type Victim = (i32, Reverse<i64>, Reverse<u128>, Slot);

fn victim(slot: Slot, entry: &Entry, boost: i32) -> Victim {
    (entry.priority.max(boost), Reverse(entry.since), Reverse(entry.uid), slot)
}

fn may_be_preempted(entry: &Entry) -> bool {
    entry.phase == Phase::Running && !entry.preempt_exempt && !entry.stopping
}

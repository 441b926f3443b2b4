//! One pass over what is offered: what starts, what is held back and why, and who makes room.
//!
//! A pass looks at offered tasks in order of rank and ends when nothing more can start. Its cost follows what it starts and
//! what it refuses before the rooms are full, not the backlog.

use std::cmp::Reverse;
use std::sync::Arc;

use muster_types::explanation::RESTING;
use muster_types::task::Runtime;
use muster_types::task_status::WaitingFor;
use muster_types::{State, Timestamp, counted};

use crate::absent::Absent;
use crate::board::{Board, Phase};
use crate::capacity::{Lack, Misfit};
use crate::group::{GroupKey, Rank, Slot};
use crate::lanes::Course;
use crate::places::{NoRobots, Places, Unplaced};
use crate::settings::Rule;

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// In the order in which it was decided.
    pub decisions: Vec<Decision>,
    /// When to look again even if nothing changes, in seconds.
    pub wake_at: Option<i64>,
}

/// One decision about one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A new attempt is to be made.
    Start {
        /// Which task.
        task: TaskRef,
        /// It was raised above its own priority.
        lent: Option<Lent>,
        /// The robot it goes to, if it runs on one.
        robot: Option<Arc<str>>,
        /// Its effective priority.
        priority: i32,
        /// No slot is surely free: it waits for one at the runtime, and may be taken back.
        prefetch: bool,
    },
    /// An attempt that waits at the runtime for a slot is to be given back; nothing is written down.
    Recall {
        /// Which task.
        task: TaskRef,
    },
    /// The task waits; to be written down.
    Hold {
        /// Which task.
        task: TaskRef,
        /// What for.
        hold: Hold,
    },
    /// The pod of an isolated task, which finds no node, is to end so that others can start.
    TakeBack {
        /// Which task.
        task: TaskRef,
    },
    /// The attempt of a running task is to end so that another can start.
    Preempt {
        /// Which task.
        task: TaskRef,
        /// For whom.
        by: TaskRef,
    },
}

/// A task by its uid and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRef {
    /// Its uid.
    pub uid: u128,
    /// `namespace/name`.
    pub path: Arc<str>,
}

/// A priority a task was raised to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lent {
    /// The priority.
    pub priority: i32,
    /// The task that depends on it and asked for that priority.
    pub by: TaskRef,
}

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// Another one of the same subject and kind runs or is before it.
    Unique {
        /// Which one.
        other: TaskRef,
    },
    /// A task it depends on has not ended.
    Dependency {
        /// Which one.
        other: TaskRef,
        /// Its kind.
        kind: String,
    },
    /// A task it depends on failed, and its kind needs it to succeed.
    Failure {
        /// Which one.
        other: Arc<str>,
        /// Its kind.
        kind: String,
    },
    /// An isolated task runs, or is first in order.
    Isolation,
    /// It is isolated itself and others run.
    Isolated {
        /// How many.
        running: u32,
    },
    /// It was preempted, or is to be tried again later.
    Rest {
        /// Until when, in seconds.
        until: i64,
    },
    /// There is no room.
    Capacity(Lack),
    /// The quota of its namespace takes in no more pods.
    Quota {
        /// The namespace in which its pod is to be created.
        namespace: Arc<str>,
    },
    /// The pod of a task with the same placement needs finds no node.
    NoNode {
        /// Which one.
        other: TaskRef,
        /// When the next task like it is tried, in seconds.
        until: i64,
    },
    /// There can never be room.
    NeverFits(Misfit),
    /// No robot takes it.
    Robot(Unplaced),
    /// It names something that does not exist.
    Absent {
        /// What.
        absent: Arc<Absent>,
        /// How long it waits for it in all, in seconds.
        wait: i64,
    },
    /// Others are before it.
    Order {
        /// How many groups of tasks are offered before it.
        before: usize,
    },
}

impl Hold {
    /// The state a task that waits for this is shown in.
    pub fn state(&self) -> State {
        match self {
            Self::Unique { .. }
            | Self::Dependency { .. }
            | Self::Failure { .. }
            | Self::Isolation
            | Self::Isolated { .. }
            | Self::Rest { .. }
            | Self::Absent { .. } => State::Postponed,
            Self::Capacity(_)
            | Self::Quota { .. }
            | Self::NoNode { .. }
            | Self::NeverFits(_)
            | Self::Robot(_) => State::QuotaBlocked,
            Self::Order { .. } => State::Ready,
        }
    }

    /// One CamelCase word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unique { .. } => "Unique",
            Self::Dependency { .. } => "Dependency",
            Self::Failure { .. } => "DependencyFailed",
            Self::Isolation => "Isolation",
            Self::Isolated { .. } => "Isolated",
            Self::Rest { .. } => RESTING,
            Self::Capacity(lack) => lack.reason(),
            Self::Quota { .. } => "Quota",
            Self::NoNode { .. } => "Unschedulable",
            Self::NeverFits(misfit) => misfit.reason(),
            Self::Robot(unplaced) => unplaced.reason,
            Self::Absent { absent, .. } => absent.reason(),
            Self::Order { .. } => "Order",
        }
    }

    /// The task that must end first, if it is one.
    fn task(&self) -> &str {
        match self {
            Self::Unique { other } | Self::Dependency { other, .. } | Self::NoNode { other, .. } => {
                &other.path
            }
            Self::Failure { other, .. } => other,
            Self::Isolation
            | Self::Isolated { .. }
            | Self::Rest { .. }
            | Self::Capacity(_)
            | Self::Quota { .. }
            | Self::NeverFits(_)
            | Self::Robot(_)
            | Self::Absent { .. }
            | Self::Order { .. } => "",
        }
    }

    /// True if a task that waits for this has a place among others that wait for the same.
    pub(crate) fn has_position(&self) -> bool {
        matches!(self, Self::Capacity(_) | Self::Quota { .. } | Self::Order { .. })
    }

    /// As it is written down.
    pub fn waiting_for(&self) -> WaitingFor {
        WaitingFor { reason: self.reason().to_owned(), message: self.message(), task: self.task().to_owned() }
    }

    /// A sentence for people.
    pub fn message(&self) -> String {
        match self {
            Self::Unique { other } => {
                format!("task {} of the same subject and kind must end first", other.path)
            }
            Self::Dependency { other, kind } => format!("task {} ({kind}) must complete first", other.path),
            Self::Failure { other, kind } => {
                format!("task {other} ({kind}) failed and must succeed first; try it again or delete it")
            }
            Self::Isolation => {
                "an isolated task runs or is next; nothing else starts until it ended".to_owned()
            }
            Self::Isolated { running } => {
                let others = counted(*running as usize, "other task runs", "other tasks run");
                let they = if *running == 1 { "that" } else { "they" };
                format!("it is isolated and {others}; it starts when {they} ended")
            }
            Self::Rest { until } => {
                format!("it starts again at {} at the earliest", Timestamp::from_second(*until))
            }
            Self::Capacity(lack) => lack.describe(),
            Self::Quota { namespace } => format!("a quota of namespace {namespace} refuses more pods"),
            Self::NoNode { other, until } => {
                let (namespace, name) = other.path.split_once('/').unwrap_or(("default", &*other.path));
                format!(
                    "the pod of task {}, with the same placement needs, finds no node; the next task like it is tried at {}, \
                     or at once after: muster cancel {name} --namespace {namespace}",
                    other.path,
                    Timestamp::from_second(*until)
                )
            }
            Self::NeverFits(misfit) => misfit.describe(),
            Self::Robot(unplaced) => unplaced.message.clone(),
            Self::Absent { absent, wait } => {
                format!("{}; the task fails after {wait}s without it", absent.message())
            }
            Self::Order { .. } => "waiting for its turn".to_owned(),
        }
    }
}

impl Board {
    /// Decides what happens now. What is decided counts as done on the board.
    pub fn plan(&mut self, now: i64) -> Plan {
        self.plan_on(now, &mut NoRobots)
    }

    /// The same, where tasks for robots have places to go to.
    pub fn plan_on(&mut self, now: i64, places: &mut dyn Places) -> Plan {
        let mut plan = Plan::default();
        if self.is_closed {
            return plan;
        }
        self.wake_resting(now);
        self.rooms.forget_refusals();
        let stranded = std::mem::take(&mut self.stranded);
        self.try_nodes_again(now);
        self.choose_starts(now, places, &mut plan);
        self.isolation_eased |= self.stranded.keys().any(|slot| !stranded.contains_key(slot));
        self.notice_isolation();
        self.preempt_for_stuck(now, &mut plan);
        self.take_back_isolated(now, &mut plan);
        self.explain_some(now, &mut plan);
        plan.wake_at = earliest(plan.wake_at, self.next_try(now));
        plan.wake_at = earliest(plan.wake_at, self.resting.first().map(|(until, _)| *until));
        plan
    }

    /// The attempt that was planned for a task will not be made after all.
    pub fn unplan(&mut self, uid: u128) {
        if let Some(slot) = self.slot_of(uid)
            && self.entry(slot).is_some_and(|entry| entry.phase == Phase::Chosen)
        {
            self.move_to(slot, Phase::Waiting(State::Ready));
            self.observe_placed(uid);
        }
    }

    fn wake_resting(&mut self, now: i64) {
        while let Some((until, slot)) = self.resting.first().copied()
            && until <= now
        {
            self.move_to(slot, Phase::Waiting(State::Ready));
        }
    }

    fn choose_starts(&mut self, now: i64, places: &mut dyn Places, plan: &mut Plan) {
        let mut course = Course::new(&self.lanes);
        let (mut starts, mut holds, mut preempted) = (0, 0, false);
        let isolates = self.settings.keeps(Rule::Isolated);
        while let Some(rank) = course.next(self) {
            if starts >= self.settings.starts_per_pass
                || (self.isolated_active > 0 && isolates)
                || self.rooms.all_closed(course.left())
            {
                break;
            }
            let slot = rank.2;
            let Some(entry) = self.entry(slot) else { continue };
            let (runtime, need, entry_may_prefetch) = (entry.runtime, entry.need, entry.may_prefetch);
            let waits_for_all = entry.isolated && self.rooms.taken() > 0 && isolates;
            if let Some(misfit) = self.misfit(slot) {
                self.hold(slot, Hold::NeverFits(misfit), plan);
                self.move_to(slot, Phase::Unfit);
                continue;
            }
            if let Some(hold) = self.no_node_hold(slot, rank.0.0, now) {
                holds += 1;
                if holds <= self.settings.holds_per_pass {
                    self.hold(slot, hold, plan);
                }
                self.withhold(slot, rank);
                continue;
            }
            if waits_for_all {
                if let Some(hold) = self.strands(slot, places) {
                    self.hold(slot, hold, plan);
                    continue;
                }
                // Nothing behind it starts either, so that it will have its turn.
                self.recall_behind(rank, usize::MAX, plan);
                let hold = Hold::Isolated { running: self.rooms.taken() };
                self.hold(slot, hold, plan);
                break;
            }
            if let Some(hold) = self.quota_hold(slot) {
                // All pods of the namespace need the same quota, and rank behind this one.
                course.close_lane();
                // Of many namespaces, those that were written down before do not keep the others from it.
                if holds < self.settings.holds_per_pass && self.hold(slot, hold, plan) {
                    holds += 1;
                }
                preempted = preempted || self.preempt(slot, now, plan);
                continue;
            }
            let awaits_return =
                runtime == Runtime::Process && self.recalled.first().is_some_and(|first| *first < rank);
            let room = self.rooms.of(runtime);
            if awaits_return {
                // One that ranks before it is on its way back from the executor, and would find its slot taken.
                room.close();
            }
            if entry_may_prefetch && !room.has_free_slot() && room.prefetches() {
                // The place of one that ranks lower is as good as a free one.
                if room.may_prefetch() || self.recall_behind(rank, 1, plan) > 0 {
                    plan.decisions.push(self.start(slot, rank.0, None, true, now));
                    starts += 1;
                    continue;
                }
            }
            let lack = self.rooms.of(runtime).ask(need);
            if lack.slots {
                self.recall_behind(rank, usize::MAX, plan);
            }
            if !lack.any() || !self.settings.keeps(Rule::Capacity) {
                let robot = match self.place(slot, places) {
                    Ok(robot) => robot,
                    Err(unplaced) => {
                        holds += 1;
                        if holds <= self.settings.holds_per_pass {
                            self.hold(slot, Hold::Robot(unplaced), plan);
                        }
                        continue;
                    }
                };
                plan.decisions.push(self.start(slot, rank.0, robot, false, now));
                starts += 1;
                // The group may offer its next task, before or behind this place.
                continue;
            }
            holds += 1;
            if holds <= self.settings.holds_per_pass {
                self.hold(slot, Hold::Capacity(lack), plan);
            }
            preempted = preempted || !awaits_return && self.preempt(slot, now, plan);
        }
    }

    /// The robot a task goes to; none if it does not run on one.
    fn place(&mut self, slot: Slot, places: &mut dyn Places) -> Result<Option<Arc<str>>, Unplaced> {
        let Some(entry) = self.entry(slot).filter(|entry| entry.runtime == Runtime::Robot) else {
            return Ok(None);
        };
        let (uid, demand) = (entry.uid, entry.demand.clone().unwrap_or_default());
        match places.place(uid, &demand) {
            Ok(robot) => {
                self.unplaced.remove(&demand);
                Ok(Some(robot))
            }
            Err(unplaced) => {
                self.unplaced.insert(demand, unplaced.clone());
                Err(unplaced)
            }
        }
    }

    /// Why an isolated task could not start even if nothing else ran, as far as is known: then it holds back no other task.
    fn strands(&mut self, slot: Slot, places: &mut dyn Places) -> Option<Hold> {
        let entry = self.entry(slot)?;
        let is_set_back = self.set_back.contains_key(&entry.uid);
        let (runtime, need, demand) = (entry.runtime, entry.need, entry.demand.clone());
        let lack = self.rooms.of(runtime).lack_when_empty(need);
        let quota = self.empty_quota_hold(slot);
        let hold = if quota.is_some() {
            quota
        } else if lack.any() {
            Some(Hold::Capacity(lack))
        } else if runtime == Runtime::Robot {
            places.could_place(&demand.unwrap_or_default()).err().map(Hold::Robot)
        } else if is_set_back {
            Some(Hold::Isolated { running: self.rooms.taken() })
        } else {
            None
        };
        if let Some(hold) = &hold {
            self.stranded.insert(slot, hold.clone());
        }
        hold
    }

    fn start(
        &mut self,
        slot: Slot,
        Reverse(priority): Reverse<i32>,
        robot: Option<Arc<str>>,
        prefetch: bool,
        now: i64,
    ) -> Decision {
        let own = self.entry(slot).map_or(0, |entry| entry.priority);
        let lent = if priority > own { self.lender(slot).map(|by| Lent { priority, by }) } else { None };
        let phase = match self.entry(slot).map(|entry| entry.phase) {
            Some(Phase::Waiting(shown)) if prefetch => Phase::Prefetched(shown),
            _ => Phase::Chosen,
        };
        self.note_try(slot, now);
        self.move_to(slot, phase);
        Decision::Start { task: self.reference(slot), lent, robot, priority, prefetch }
    }

    /// Takes back attempts that wait at the runtime for a slot and rank below this place: lowest first, so many at most. Returns how
    /// many.
    fn recall_behind(&mut self, rank: Rank, most: usize, plan: &mut Plan) -> usize {
        let behind: Vec<Slot> = self
            .prefetched
            .range((std::ops::Bound::Excluded(rank), std::ops::Bound::Unbounded))
            .rev()
            .take(most)
            .map(|(.., slot)| *slot)
            .collect();
        for slot in &behind {
            let task = self.reference(*slot);
            self.recall(task.uid);
            plan.decisions.push(Decision::Recall { task });
        }
        behind.len()
    }

    /// Writes down what a task waits for, unless it says so already. True if it did not.
    fn hold(&mut self, slot: Slot, hold: Hold, plan: &mut Plan) -> bool {
        let state = hold.state();
        let next = match self.entry(slot).map(|entry| entry.phase) {
            Some(Phase::Waiting(shown)) if shown != state => Phase::Waiting(state),
            Some(Phase::Awaiting(shown)) if shown != state => Phase::Awaiting(state),
            _ => return false,
        };
        plan.decisions.push(Decision::Hold { task: self.reference(slot), hold });
        self.move_to(slot, next);
        true
    }

    /// Says of some tasks what they wait for: new ones, and those that a rule holds back now, or no more.
    fn explain_some(&mut self, now: i64, plan: &mut Plan) {
        for _ in 0..self.settings.holds_per_pass {
            let Some(slot) = self.unexplained.pop_front() else { break };
            let Some(hold) = self.hold_of(slot, now) else { continue };
            let is_said = match hold.state() {
                State::Postponed => true,
                // For room a task waits in the pass itself, unless there can never be any or something else is recorded.
                State::QuotaBlocked => matches!(hold, Hold::NeverFits(_)) || self.is_postponed(slot),
                _ => false,
            };
            if is_said {
                self.hold(slot, hold, plan);
            }
        }
        if !self.unexplained.is_empty() {
            plan.wake_at = earliest(plan.wake_at, Some(now));
        }
    }

    /// What a task waits for now; `None` if it has an attempt or is not on the board.
    pub fn why(&self, uid: u128, now: i64) -> Option<Hold> {
        self.hold_of(self.slot_of(uid)?, now)
    }

    fn hold_of(&self, slot: Slot, now: i64) -> Option<Hold> {
        let entry = self.entry(slot)?;
        match entry.phase {
            Phase::Chosen | Phase::Pending | Phase::Running => return None,
            // It is handed over, and waits for a slot all the same.
            Phase::Prefetched(_) => {
                let usage = self.rooms.clone().of(entry.runtime).usage(entry.need);
                return Some(Hold::Capacity(Lack { slots: true, usage, ..Lack::default() }));
            }
            Phase::Resting(until) if until > now => return Some(Hold::Rest { until }),
            Phase::Awaiting(_) => {
                let absent = self.awaited.get(entry.uid)?.clone();
                return Some(Hold::Absent { absent, wait: self.settings.absent_wait });
            }
            Phase::Unfit => {
                if let Some(misfit) = self.misfit(slot) {
                    return Some(Hold::NeverFits(misfit));
                }
            }
            Phase::Resting(_) | Phase::Waiting(_) => {}
        }
        let group = &self.groups[entry.group as usize];
        if let Some(blocker) = self.blocker_of(entry.group) {
            let kind = match self.groups[blocker as usize].key {
                GroupKey::Exclusive { kind: Some(kind), .. } => self.names.get(kind).to_owned(),
                _ => String::new(),
            };
            if let Some(failure) = self.failure_of(blocker) {
                return Some(Hold::Failure { other: failure.path.clone(), kind });
            }
            return self.any_member(blocker, slot).map(|other| Hold::Dependency { other, kind });
        }
        let first = group.head().is_none_or(|head| head.2 == slot);
        if group.is_exclusive() && (group.is_taken() || !first) {
            return self.any_member(entry.group, slot).map(|other| Hold::Unique { other });
        }
        if self.isolated_active > 0 {
            return Some(Hold::Isolation);
        }
        // How many others run may have changed since the last pass.
        let stranded = self.stranded.get(&slot).filter(|hold| !matches!(hold, Hold::Isolated { .. }));
        if let Some(hold) = stranded {
            return Some(hold.clone());
        }
        if entry.isolated && self.rooms.taken() > 0 {
            return Some(Hold::Isolated { running: self.rooms.taken() });
        }
        let unplaced = entry.demand.as_ref().and_then(|demand| self.unplaced.get(demand));
        if let Some(unplaced) = unplaced {
            return Some(Hold::Robot(unplaced.clone()));
        }
        if let Some(misfit) = self.misfit(slot) {
            return Some(Hold::NeverFits(misfit));
        }
        if let Some(hold) = self.no_node_hold(slot, entry.priority.max(group.boost), now) {
            return Some(hold);
        }
        if let Some(hold) = self.quota_hold(slot) {
            return Some(hold);
        }
        let lack = self.rooms.clone().of(entry.runtime).ask(entry.need);
        if lack.any() {
            return Some(Hold::Capacity(lack));
        }
        let rank = (Reverse(entry.priority.max(group.boost)), entry.uid, slot);
        let isolated_before = self
            .offered
            .range(..rank)
            .filter(|((.., other), _)| !self.stranded.contains_key(other))
            .any(|((.., other), _)| self.entry(*other).is_some_and(|other| other.isolated));
        if isolated_before {
            return Some(Hold::Isolation);
        }
        Some(Hold::Order { before: self.offered.range(..rank).count() })
    }

    /// Why a task can never start where it is to run.
    fn misfit(&self, slot: Slot) -> Option<Misfit> {
        let entry = self.entry(slot)?;
        self.rooms.clone().of(entry.runtime).misfit(entry.runtime, entry.need)
    }

    /// A member of a group to name to people: one with an attempt, else the first in order.
    fn any_member(&self, group: u32, except: Slot) -> Option<TaskRef> {
        let group = &self.groups[group as usize];
        let mut all = group.elsewhere.iter().copied().chain(group.waiting());
        all.find(|slot| *slot != except).map(|slot| self.reference(slot))
    }

    /// The task whose dependence raises this one.
    pub(crate) fn lender(&self, slot: Slot) -> Option<TaskRef> {
        let group = self.entry(slot)?.group;
        let lenders = self.dependents_of(group);
        let best = lenders.into_iter().filter_map(|group| self.groups[group as usize].highest());
        let (_, lender) = best.max_by_key(|(priority, slot)| (*priority, Reverse(*slot)))?;
        Some(self.reference(lender))
    }

    pub(crate) fn reference(&self, slot: Slot) -> TaskRef {
        self.entry(slot).map_or_else(
            || TaskRef { uid: 0, path: "".into() },
            |entry| TaskRef { uid: entry.uid, path: entry.path.clone() },
        )
    }
}

pub(crate) fn earliest(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

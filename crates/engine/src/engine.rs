//! The engine: one loop over the board.
//!
//! Intent before effect: an attempt is started only after the change that says so was committed, and its name is derived from
//! that change, so a crash in between is repaired by doing it again. After a restart nothing of the former process's attempts
//! is alive, so every task that had one gets news of its loss and its policy decides.

mod absent;
mod intake;
mod kept_logs;
mod leaving;
mod news;
mod prefetched;
mod robots;
mod succession;
mod sweep;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use muster_ports::blobs::Blobs;
use muster_ports::clock::{Clock, Millis};
use muster_ports::runtime::{Fact, Handle, Launch, Observation, Runtime};
use muster_ports::store::{Batch, Change, Key, ResourceName, Revision, Store, Watch, WatchError, WatchScope};
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_tasks::board::Board;
use muster_tasks::brief::{Brief, is_held, let_go_of_attempt};
use muster_tasks::capacity::Capacity;
use muster_tasks::guard::PodGuards;
use muster_tasks::lifecycle::Refused;
use muster_tasks::plan::{Decision, Plan};
use muster_tasks::progress::{self, highest_attempt};
use muster_tasks::reap::{Life, Reap, retention};
use muster_tasks::reconcile;
use muster_tasks::view::{TaskView, parse_uid, state_of};
use muster_types::explanation::Explanation;
use muster_types::task::Runtime as RuntimeName;
use muster_types::task_status::Stopping;
use muster_types::{JsonText, State, Task};
use muster_workflows::departure;
use muster_workflows::group_brief::GroupBrief;
use serde::Deserialize;

use crate::catalogs::Catalogs;
use crate::due::Due;
use crate::edits::{Action, Edit, Edits, Held};
use crate::files::{Files, Order};
use crate::intake::Intake as _;
use crate::prefetch::{PATIENCE, Pace};
use crate::read_briefs::read_briefs;
use crate::readiness::Readiness;
use crate::refusals::Refusals;
use crate::settings::{Prefetch, Settings};
use crate::start::{Chosen, Place, Start, start};
use crate::task_tracer::TaskTracer;
use crate::telemetry::{Pass, Teller};
use crate::writes::is_untold;
use prefetched::first_handle;
use robots::Robots;

/// Where tasks are kept.
const TASKS: &str = "tasks.muster.dev";
/// Where groups are kept.
const GROUPS: &str = "taskgroups.muster.dev";
/// Tasks whose time is over that one cycle deals with.
const REAPED: usize = 256;
/// How long news that an attempt runs may wait for news that it ended, so that a short one is written once.
const STARTED_PATIENCE: i64 = 20;

/// The uid of any object.
#[derive(Deserialize)]
struct Uid {
    uid: String,
}

/// How an attempt ran.
#[derive(Debug, Clone, Copy, Default)]
struct Ran {
    /// From when to when, if that is known.
    span: Option<(Millis, Millis)>,
    log_bytes: u64,
}

/// What is outside of the engine.
#[derive(Clone)]
pub struct Outside {
    /// Everything that is committed.
    pub store: Store,
    /// Where attempts run.
    pub runtime: Arc<dyn Runtime>,
    /// Where files are kept.
    pub blobs: Arc<dyn Blobs>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Gets the numbers.
    pub telemetry: Telemetry,
    /// Gets the spans of tasks.
    pub tracer: Tracer,
}

/// The loop's state.
pub struct Engine {
    settings: Settings,
    outside: Outside,
    files: Files,
    tasks: ResourceName,
    groups: ResourceName,
    watch: Watch,
    board: Board,
    catalogs: Catalogs,
    readiness: Readiness,
    due: Due,
    pace: Pace,
    /// Attempts that were handed over ahead of a free slot, and when they were committed; those that are not any more are passed over.
    prefetched: VecDeque<(Millis, u128)>,
    /// The server is about to stop.
    leaves: bool,
    guards: PodGuards,
    /// Refusals by quotas that were reported.
    quota_refusals: u64,
    /// Tasks with an attempt, as they were last written.
    held: Held,
    /// What was written and not yet seen as a change.
    own: HashMap<Arc<str>, Revision>,
    /// News not yet committed.
    facts: Vec<Fact>,
    /// The end of attempts that counts when another one of the same task, which is leaving, has ended.
    waiting_for_copy: Vec<Fact>,
    /// Tasks whose user asked for something.
    asked: BTreeSet<Arc<str>>,
    /// Tasks with an attempt, as they are stored.
    attempts: BTreeMap<u128, Brief>,
    /// Tasks whose time is over and whose logs are not stored yet, by uid, with their paths.
    waits_for_logs: BTreeMap<String, Arc<str>>,
    /// The second in which those were last looked at.
    looked_at_logs: i64,
    /// Deleted tasks whose attempt has not ended. They keep their place on the board until it has.
    orphans: BTreeMap<u128, Brief>,
    /// What the store refuses.
    refusals: Refusals,
    teller: Teller,
    spans: TaskTracer,
    /// Attempts that ended and were not written down yet.
    ran: HashMap<Handle, Ran>,
    /// Pods that are there still though their attempt has ended, with the path of their task.
    pods_left: BTreeMap<Handle, Arc<str>>,
    /// Groups in brief, as they were at a revision.
    group_briefs: HashMap<Arc<str>, (Revision, GroupBrief)>,
    /// Every robot, and which tasks are there.
    robots: Robots,
}

impl Engine {
    /// Reads what is stored. Attempts of a former process are taken for lost, and files nobody needs are let go.
    pub fn new(settings: Settings, outside: Outside, files: Files) -> Result<Self, WatchError> {
        let (board, watch) = Self::empty(&settings, &outside.store)?;
        let mut engine = Self {
            teller: Teller::new(outside.telemetry.clone()),
            spans: TaskTracer::new(outside.tracer.clone(), outside.telemetry.clone()),
            ran: HashMap::new(),
            pods_left: BTreeMap::new(),
            settings,
            outside,
            files,
            tasks: ResourceName::new(TASKS),
            groups: ResourceName::new(GROUPS),
            watch,
            board,
            catalogs: Catalogs::default(),
            readiness: Readiness::default(),
            due: Due::default(),
            pace: Pace::default(),
            prefetched: VecDeque::new(),
            leaves: false,
            guards: PodGuards::default(),
            quota_refusals: 0,
            held: Held::new(),
            own: HashMap::new(),
            facts: Vec::new(),
            waiting_for_copy: Vec::new(),
            asked: BTreeSet::new(),
            attempts: BTreeMap::new(),
            waits_for_logs: BTreeMap::new(),
            looked_at_logs: 0,
            orphans: BTreeMap::new(),
            refusals: Refusals::of("the engine"),
            group_briefs: HashMap::new(),
            robots: Robots::default(),
        };
        engine.read_all();
        engine.sweep();
        engine.lose_absent();
        Ok(engine)
    }

    fn empty(settings: &Settings, store: &Store) -> Result<(Board, Watch), WatchError> {
        let none = Capacity { slots: 0, cpu_millis: None, memory: None };
        let processes = settings.processes;
        let pods = settings.pods.as_ref().map_or(none, |pods| pods.capacity);
        // Each robot has room of its own; all of them together have no limit.
        let any = Capacity { slots: u32::MAX / 2, ..none };
        let robots = settings.robots.as_ref().map_or(none, |_| any);
        let board = Board::new(settings.queue.clone(), |runtime| match runtime {
            RuntimeName::Process => processes,
            RuntimeName::Pod => pods,
            RuntimeName::Robot => robots,
        });
        let namespace = settings.pods.as_ref().and_then(|pods| pods.namespace.as_deref());
        let board = board.with_pod_namespace(namespace);
        Ok((board, store.watch(WatchScope::All, store.revision())?))
    }

    fn read_all(&mut self) {
        for resource in ["taskkinds", "addons", "extensions", "applications", "resourcetypes", "robots"] {
            let resource = ResourceName::new(&format!("{resource}.muster.dev"));
            for stored in self.outside.store.snapshot(&resource).range(None, None) {
                let (at, resource, object) = (Millis(0), resource.clone(), stored.clone());
                self.observe(&Change { at, resource, object, previous: None, deleted: false });
            }
        }
        self.take_kinds();
        // Nobody waits for anything yet.
        drop(self.catalogs.take_news());
        let tasks = self.outside.store.snapshot(&self.tasks);
        read_briefs(tasks.range(None, None), |brief| self.admit(&brief));
    }

    fn now(&self) -> Millis {
        self.outside.clock.now()
    }

    /// News from a runtime. Runtimes go by the wall clock.
    pub fn report(&mut self, mut fact: Fact) {
        fact.at = self.outside.clock.steady(fact.at);
        if let Observation::Ended(ending) = &mut fact.what {
            ending.at = self.outside.clock.steady(ending.at);
            let log_bytes = ending.containers.iter().map(|container| container.log_bytes).sum();
            let begun = self.pace.begun(&fact.handle);
            self.ran
                .insert(fact.handle.clone(), Ran { span: begun.map(|begun| (begun, fact.at)), log_bytes });
        }
        self.quota_refusals += u64::from(matches!(fact.what, Observation::Blocked { .. }));
        let runtime = parse_uid(&fact.handle.task).and_then(|uid| self.board.runtime_of(uid));
        self.pace.observe(&fact, runtime == Some(RuntimeName::Process));
        self.facts.push(fact);
    }

    /// Why a task waits; `None` if it is not in the queue.
    pub fn explain(&self, uid: &str) -> Option<Explanation> {
        self.board.explain(parse_uid(uid)?, self.now().to_timestamp().as_second())
    }

    /// One whole cycle. Returns when to look again even if nothing happens.
    pub async fn step(&mut self) -> Result<Option<Millis>, WatchError> {
        let begun = Instant::now();
        self.index()?;
        let now = self.now();
        if let Some(until) = self.refusals.holds_until(now) {
            return Ok(Some(until));
        }
        let second = now.to_timestamp().as_second();
        let held = std::mem::take(&mut self.held);
        let mut edits = Edits::new(self.outside.store.clone(), self.tasks.clone(), held);
        self.lose_cut_off(second);
        let facts = self.ripe_facts(now);
        let (concerned, ignored) = self.apply_facts(&facts, &mut edits, now);
        self.apply_asked(&mut edits, now);
        self.apply_due(&mut edits, now);
        self.apply_absent(&mut edits, now);
        self.recall_late(now);
        let prefetch = match self.settings.prefetch {
            Prefetch::Measured => self.pace.prefetch(self.settings.processes.slots, now),
            Prefetch::Fixed(prefetch) => prefetch,
        };
        self.board.set_prefetch(RuntimeName::Process, prefetch);
        for (namespace, limit) in self.guards.limits(second) {
            self.board.set_pod_limit(namespace, Some(limit));
        }
        let plan = self.board.plan_on(second, &mut self.robots);
        self.apply_plan(&plan, &mut edits, now);
        let failed = self.commit(edits, now).await;
        self.readiness.judge(&self.catalogs, &self.outside.store, now).await;
        let pass = Pass { facts: facts.len(), ignored, refused: failed.len(), took: begun.elapsed() };
        self.teller.pass(&self.board, &plan, pass);
        for (fact, path) in facts.iter().zip(&concerned) {
            if fact.what == Observation::Removed && !path.as_ref().is_some_and(|it| failed.contains(it)) {
                self.pods_left.remove(&fact.handle);
            }
        }
        let again = facts.into_iter().zip(concerned);
        let again = again.filter(|(_, path)| path.as_ref().is_some_and(|path| failed.contains(path)));
        let again: Vec<_> = again.map(|(fact, _)| fact).collect();
        let again_at = (!again.is_empty()).then(|| self.refusals.try_again_at(now));
        let started = self.facts.iter().map(|fact| Millis(fact.at.0 + STARTED_PATIENCE)).min();
        self.facts.splice(..0, again);
        let due = plan.wake_at.into_iter().chain(self.due.first()).chain(self.guards.wake_at(second));
        let due = due.chain(self.robots.wake_at()).chain(self.board.impatient_at());
        let due = due.chain(self.look_at_logs_at(second)).min();
        let due = due.map(|second| Millis(second.saturating_mul(1000)));
        Ok(again_at.into_iter().chain(started).chain(self.next_late()).chain(due).min())
    }

    /// How long nothing is lost by not looking: what waits at the runtime is enough to go on with.
    pub fn rest(&mut self) -> Duration {
        let waiting = self.board.prefetched(RuntimeName::Process);
        self.pace.rest(self.settings.processes.slots, waiting)
    }

    fn apply_asked(&mut self, edits: &mut Edits, now: Millis) {
        for path in std::mem::take(&mut self.asked) {
            let Some(edit) = edits.edit(&path) else { continue };
            if is_let_go(&edit.task) {
                // Its end is committed first, for all to see; then it goes.
                if edit.is_changed() {
                    continue;
                }
                let_go_of_attempt(&mut edit.task);
                if edit.task.metadata.finalizers.is_empty() {
                    edit.delete();
                } else {
                    edit.mark();
                }
                continue;
            }
            let task = &mut edit.task;
            let wants_end = task.spec.cancel || task.metadata.deletion_timestamp.is_some();
            let done = if wants_end {
                let deleted = task.metadata.deletion_timestamp.is_some();
                let why = if deleted { Stopping::Deleted } else { Stopping::Canceled };
                end(edit, &self.settings, now, |task| progress::request_stop(task, why, None, now)).is_ok()
            } else if state_of(task) == State::Created && !task.spec.suspend {
                progress::submit(task, now).is_ok()
            } else {
                false
            };
            if done {
                edit.mark();
                if let Some(view) = TaskView::of(&edit.task, path) {
                    self.show(&view);
                }
            }
        }
    }

    /// Deals with tasks whose time is over, and with what ended attempts left.
    fn apply_due(&mut self, edits: &mut Edits, now: Millis) {
        let second = now.to_timestamp().as_second();
        self.store_logs(second);
        for _ in 0..REAPED {
            let Some(path) = self.due.next_task(second) else { break };
            // What changes now is seen by everybody before it goes; its time is looked at again when it was committed.
            let Some(edit) = edits.edit(&path).filter(|edit| !edit.is_changed()) else { continue };
            let life = Life::of(&edit.task);
            let due = life.due(&self.settings.reap).filter(|(at, _)| *at <= second);
            let mut due = due.map(|(_, what)| what);
            if self.is_counted_by_group(&edit.task) {
                due = due.and_then(|what| what.in_open_group(life.state));
            }
            let is_let_go = matches!(due, Some(Reap::Delete | Reap::Release | Reap::Leave));
            if is_let_go && self.outside.store.pins().ask(&edit.task.metadata.uid) {
                self.waits_for_logs.insert(edit.task.metadata.uid.clone(), path);
                continue;
            }
            if is_let_go && is_untold(&self.outside.store, edit.revision()) {
                if let Some(uid) = parse_uid(&edit.task.metadata.uid) {
                    self.due.set(uid, &path, Some(second + 1));
                }
                continue;
            }
            match due {
                Some(Reap::Expire) => {
                    if end(edit, &self.settings, now, |task| progress::expire(task, now)).is_ok() {
                        edit.mark();
                    }
                    if let Some(view) = TaskView::of(&edit.task, path) {
                        self.show(&view);
                    }
                }
                Some(Reap::Release) => {
                    progress::release(&mut edit.task, now);
                    let (task, attempts) =
                        (edit.task.metadata.uid.clone(), highest_attempt(&edit.task.status));
                    edit.actions.push(Action::Files(Order::Forget { task, attempts }));
                    edit.mark();
                }
                Some(Reap::Leave) => {
                    if departure::leave(&mut edit.task, now.to_timestamp()) {
                        edit.mark();
                    }
                }
                Some(Reap::Delete) if edit.task.metadata.finalizers.is_empty() => edit.delete(),
                Some(Reap::Delete) if edit.task.metadata.deletion_timestamp.is_none() => {
                    edit.task.metadata.deletion_timestamp = Some(now.to_timestamp());
                    edit.mark();
                }
                Some(Reap::Delete) | None => {}
            }
        }
        self.store_asked();
    }

    fn apply_plan(&mut self, plan: &Plan, edits: &mut Edits, now: Millis) {
        for (turn, decision) in plan.decisions.iter().enumerate() {
            let task = match decision {
                Decision::Start { task, .. }
                | Decision::Hold { task, .. }
                | Decision::TakeBack { task }
                | Decision::Preempt { task, .. } => task,
                Decision::Recall { task } => {
                    self.outside.runtime.recall(&first_handle(task.uid));
                    continue;
                }
            };
            let path = task.path.clone();
            let is_it = |edit: &&mut Edit| parse_uid(&edit.task.metadata.uid) == Some(task.uid);
            let Some(edit) = edits.edit(&path).filter(is_it) else {
                // It was deleted a moment ago. With an attempt it keeps its place until that has ended.
                if !self.attempts.contains_key(&task.uid) {
                    self.board.forget(task.uid);
                    self.robots.forget(task.uid, &path);
                }
                continue;
            };
            // What ended is written first: a start that it made room for is not there without it, whenever the server is killed.
            edit.turn = turn + 1;
            let outcome = match decision {
                Decision::Hold { hold, .. } => progress::write_hold(&mut edit.task, hold, now),
                Decision::Preempt { by, .. } => end(edit, &self.settings, now, |task| {
                    progress::request_stop(task, Stopping::Preempted, Some(by), now)
                }),
                Decision::TakeBack { .. } => end(edit, &self.settings, now, |task| {
                    progress::request_stop(task, Stopping::Unschedulable, None, now)
                }),
                Decision::Recall { .. } => continue,
                Decision::Start { lent, robot, priority, prefetch, .. } => {
                    let (priority, prefetch) = (*priority, *prefetch);
                    let chosen = Chosen { lent: lent.as_ref(), robot: robot.as_deref(), priority, prefetch };
                    let next = highest_attempt(&edit.task.status) + 1;
                    let traceparent = self.spans.traceparent(&edit.task, next);
                    let place = Place { settings: &self.settings, catalogs: &self.catalogs, traceparent };
                    let absent = self.catalogs.absent_subject_of(&edit.task, &self.outside.store);
                    let started = match absent {
                        Some(absent) => Ok(Start::Absent(Arc::new(absent))),
                        None => start(&place, &mut edit.task, chosen, now),
                    };
                    match started {
                        Ok(Start::Begun(action)) => {
                            edit.actions.push(action);
                            Ok(())
                        }
                        Ok(Start::Rejected) => Ok(()),
                        Ok(Start::Absent(absent)) => {
                            self.robots.fleet.release(task.uid);
                            let wait = self.settings.queue.absent_wait;
                            Self::wait_for_absent(&mut self.board, wait, &mut edit.task, &absent, now)
                        }
                        Err(refused) => Err(refused),
                    }
                }
            };
            match outcome {
                Ok(()) => edit.mark(),
                Err(refused) => tracing::debug!(path = &*path, %refused, "a decision no longer applies"),
            }
            // A task that cannot be started ends here, and its place is free again.
            if state_of(&edit.task).is_terminal() {
                self.board.forget(task.uid);
                self.robots.fleet.release(task.uid);
            }
        }
    }

    /// Commits what was changed and then does what that asks for. Returns what could not be committed. What starts because others
    /// ended comes after them, and only if all of that was committed: a crash in between must not show it beside them.
    async fn commit(&mut self, edits: Edits, now: Millis) -> BTreeSet<Arc<str>> {
        let (changed, held) = edits.finish();
        self.held = held;
        let waits = changed.iter().flatten().any(Edit::starts_after_others);
        // What ended alone, what ended together with the start of what follows it, and what only starts.
        let mut waves = [Vec::new(), Vec::new(), Vec::new()];
        for edits in changed {
            let planned = edits.iter().filter(|edit| waits && edit.turn > 0).count();
            waves[usize::from(planned > 0) + usize::from(planned == edits.len())].push(edits);
        }
        let (mut launches, mut failed) = (Vec::new(), BTreeSet::new());
        for wave in waves {
            if failed.is_empty() {
                failed = self.commit_all(wave, now, &mut launches).await;
                continue;
            }
            for edit in wave.into_iter().flatten() {
                self.look_again(&edit.key.path);
                failed.insert(edit.key.path);
            }
        }
        self.refusals.tell(now);
        // A start that was sure of its slot comes before what was chosen after it to wait for one.
        launches.sort_by_key(|(turn, _)| *turn);
        let mut launches: Vec<Launch> = launches.into_iter().map(|(_, launch)| launch).collect();
        // All of them were chosen with everything in mind that was reported before.
        for pod in launches.iter_mut().filter_map(|launch| launch.pod.as_mut()) {
            pod.knows_refusals = self.quota_refusals;
        }
        let is_late = self.outside.clock.now().0.saturating_sub(now.0) >= PATIENCE;
        if is_late || !failed.is_empty() {
            // What ranks before them may be among what failed or have come meanwhile, and would find its slot taken.
            let is_prefetched = |launch: &mut Launch| launch.prefetch > 0;
            let returned: Vec<Launch> = launches.extract_if(.., is_prefetched).collect();
            if is_late && !returned.is_empty() {
                self.pace.observe_wait();
            }
            for Launch { handle, prefetch, .. } in returned {
                self.facts.push(Fact { handle, at: now, what: Observation::Returned { prefetch } });
            }
        }
        if !launches.is_empty() {
            self.outside.runtime.start_all(launches);
        }
        failed
    }

    /// Commits changes beside each other. Attempts that are to be started are added to `launches`.
    async fn commit_all(
        &mut self,
        changed: Vec<Vec<Edit>>,
        now: Millis,
        launches: &mut Vec<(usize, Launch)>,
    ) -> BTreeSet<Arc<str>> {
        let mut failed = BTreeSet::new();
        let store = &self.outside.store;
        let commits = changed.into_iter().filter_map(|mut edits| {
            let writes = edits.iter_mut().map(Edit::write).collect::<Option<Vec<_>>>()?;
            let (batch, store) = (Batch { writes, ..Batch::default() }, store.clone());
            Some(async move { (edits, store.commit(batch).await) })
        });
        for (edits, outcome) in join_all(commits).await {
            self.refusals.observe(&outcome);
            match outcome {
                Ok(committed) => {
                    for (edit, written) in edits.into_iter().zip(committed.objects) {
                        self.follow_up(edit, written.revision, now, launches);
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a decision could not be committed");
                    for edit in edits {
                        // Look again at the task as it is now.
                        self.look_again(&edit.key.path);
                        failed.insert(edit.key.path);
                    }
                }
            }
        }
        failed
    }

    /// A change was committed: the board knows it, and what it asks for is done; attempts it asks for are added to `launches`.
    fn follow_up(
        &mut self,
        edit: Edit,
        revision: Revision,
        now: Millis,
        launches: &mut Vec<(usize, Launch)>,
    ) {
        let path = edit.key.path.clone();
        let Some(brief) = Brief::of(&edit.task, path.clone()) else { return };
        self.own.insert(path.clone(), revision);
        self.tell_of(&edit, now);
        for action in &edit.actions {
            if let Action::Keep(handle, seconds) = action {
                let until = now.next_second().saturating_add(*seconds);
                self.due.keep(self.pin(&edit.task, handle.clone()), until);
                self.note_pod(&edit.task, handle);
            }
        }
        if edit.is_deletion() {
            self.vanish(&brief);
        } else {
            self.settle(&brief);
            if is_let_go(&edit.task) {
                self.asked.insert(path);
            } else if brief.has_attempt() {
                self.held.insert(path, (revision, edit.task));
            }
        }
        for action in edit.actions {
            match action {
                Action::Start(launch) => launches.push((edit.turn, *launch)),
                Action::Prefetch(launch) => {
                    self.prefetched.push_back((self.now(), brief.view.uid));
                    launches.push((edit.turn, *launch));
                }
                // What an attempt left is kept since before the task could vanish.
                Action::Begun | Action::Keep(..) => {}
                Action::Stop(handle, grace) => self.outside.runtime.stop(&handle, grace),
                Action::Files(order) => self.files.order(order),
            }
        }
    }

    /// The pod of an attempt that has ended is there still: its task is looked up when the pod goes.
    fn note_pod(&mut self, task: &Task, handle: &Handle) {
        let runtime = task.spec.stated_runtime().unwrap_or(self.settings.queue.default_runtime);
        if runtime == RuntimeName::Pod {
            let path = format!("{}/{}", task.metadata.namespace, task.metadata.name);
            self.pods_left.insert(handle.clone(), path.into());
        }
    }

    /// Counts what a committed change means.
    fn tell_of(&mut self, edit: &Edit, now: Millis) {
        for action in &edit.actions {
            match action {
                Action::Start(_) | Action::Begun => {
                    self.teller.started(&edit.task, now);
                    self.spans.started(&edit.task, now);
                }
                Action::Keep(handle, _) => {
                    let ran = self.ran.remove(handle).unwrap_or_default();
                    let took = ran.span.map(|(begun, over)| (over.0 - begun.0).max(0));
                    self.teller.ended(&edit.task, took, ran.log_bytes);
                    if let Some(span) = ran.span {
                        self.spans.ended(&edit.task, span);
                    }
                }
                Action::Prefetch(_) | Action::Stop(..) | Action::Files(_) => {}
            }
        }
        if !edit.was.is_terminal() && state_of(&edit.task).is_terminal() {
            self.teller.over(&edit.task);
            self.spans.over(&edit.task, now);
        }
    }

    fn look_again(&mut self, path: &Arc<str>) {
        let key = Key { resource: self.tasks.clone(), path: path.clone() };
        if let Some(stored) = self.outside.store.get(&key) {
            let resource = self.tasks.clone();
            self.observe(&Change { at: Millis(0), resource, object: stored, previous: None, deleted: false });
        }
    }

    fn grace(&self, kill_timeout: Option<muster_types::Duration>) -> Duration {
        kill_timeout.map_or(self.settings.kill_timeout, muster_types::Duration::as_std)
    }
}

/// True if a task is being deleted and its attempt has ended.
fn is_let_go(task: &Task) -> bool {
    task.metadata.deletion_timestamp.is_some() && state_of(task).is_terminal() && is_held(task)
}

/// Asks the attempt of a task to end, if it has one.
fn end(
    edit: &mut Edit,
    settings: &Settings,
    now: Millis,
    request: impl FnOnce(&mut Task) -> Result<(), Refused>,
) -> Result<(), Refused> {
    request(&mut edit.task)?;
    if edit.task.status.stopping.is_some() {
        let grace = edit.task.spec.kill_timeout.map_or(settings.kill_timeout, muster_types::Duration::as_std);
        edit.actions.push(Action::Stop(handle_of(&edit.task), grace));
    }
    give_up_original(edit, settings, "its task is to end", now);
    Ok(())
}

/// An attempt that might have come back is not awaited any more: it is told to end when its robot is back.
fn give_up_original(edit: &mut Edit, settings: &Settings, why: &str, now: Millis) {
    if let Some(original) = reconcile::give_up_original(&mut edit.task, why, now) {
        let grace = edit.task.spec.kill_timeout.map_or(settings.kill_timeout, muster_types::Duration::as_std);
        let seconds = retention(&edit.task, false, &settings.reap);
        // What it left has the time of any other.
        edit.actions.extend([Action::Stop(original.clone(), grace), Action::Keep(original, seconds)]);
    }
}

fn read(json: &[u8]) -> Option<Task> {
    Task::from_json(json).ok()
}

fn handle_of(task: &Task) -> Handle {
    Handle { task: task.metadata.uid.clone(), attempt: task.status.current_attempt() }
}

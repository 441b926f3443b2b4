//! The engine: one loop over the board.
//!
//! Intent before effect: an attempt is started only after the change that says so was committed, and its name is derived from
//! that change, so a crash in between is repaired by doing it again. After a restart nothing of the former process's attempts
//! is alive, so every task that had one gets news of its loss and its policy decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use muster_ports::clock::{Clock, Millis};
use muster_ports::runtime::{Fact, Handle, Observation, Runtime};
use muster_ports::store::{Batch, Change, CommitError, ResourceName, Store, Watch, WatchError, WatchScope};
use muster_tasks::board::Board;
use muster_tasks::capacity::Capacity;
use muster_tasks::plan::{Decision, Plan};
use muster_tasks::progress::{self, Ignored};
use muster_tasks::render::{Contract, Order, Token, render_attempt};
use muster_tasks::settings::Settings as QueueSettings;
use muster_tasks::view::{TaskView, parse_uid, state_of};
use muster_types::task_status::Stopping;
use muster_types::{State, Task};
use tokio::sync::mpsc;

use crate::catalogs::Catalogs;
use crate::edits::{Action, Edits};

/// Where tasks are kept.
const TASKS: &str = "tasks.muster.dev";
/// Changes taken in at once.
const CHANGES: usize = 1024;
/// Longest time between two looks.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// What the engine needs to know besides what is stored.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the queue behaves.
    pub queue: QueueSettings,
    /// Room for local processes.
    pub processes: Capacity,
    /// Where tasks reach the server.
    pub url: String,
    /// Directory of attempts.
    pub work_root: String,
    /// Environment of every attempt, unless it says otherwise.
    pub base_env: Vec<(String, String)>,
    /// Time between asking an attempt to end and ending it.
    pub kill_timeout: Duration,
}

/// The loop's state.
pub struct Engine {
    settings: Settings,
    store: Store,
    runtime: Arc<dyn Runtime>,
    clock: Arc<dyn Clock>,
    tasks: ResourceName,
    watch: Watch,
    board: Board,
    catalogs: Catalogs,
    /// Where each task that has not ended is, by uid.
    paths: BTreeMap<u128, Arc<str>>,
    /// News not yet committed.
    facts: Vec<Fact>,
    /// Tasks whose user asked for something.
    asked: BTreeSet<Arc<str>>,
}

impl Engine {
    /// Reads what is stored. Attempts of a former process are taken for lost.
    pub fn new(
        settings: Settings,
        store: Store,
        runtime: Arc<dyn Runtime>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WatchError> {
        let (board, watch) = Self::empty(&settings, &store)?;
        let mut engine = Self {
            settings,
            store,
            runtime,
            clock,
            tasks: ResourceName::new(TASKS),
            watch,
            board,
            catalogs: Catalogs::default(),
            paths: BTreeMap::new(),
            facts: Vec::new(),
            asked: BTreeSet::new(),
        };
        engine.read_all();
        for handle in engine.attempts() {
            let what = Observation::Lost { message: "the server was restarted".to_owned() };
            engine.facts.push(Fact { handle, at: engine.clock.now(), what });
        }
        Ok(engine)
    }

    fn empty(settings: &Settings, store: &Store) -> Result<(Board, Watch), WatchError> {
        let none = Capacity { slots: 0, cpu_millis: None, memory: None };
        let processes = settings.processes;
        let board = Board::new(settings.queue.clone(), |runtime| {
            if runtime == muster_types::task::Runtime::Process { processes } else { none }
        });
        Ok((board, store.watch(WatchScope::All, store.revision())?))
    }

    /// Fell behind what can be watched: start over from what is there.
    fn start_over(&mut self) -> Result<(), WatchError> {
        (self.board, self.watch) = Self::empty(&self.settings, &self.store)?;
        self.catalogs = Catalogs::default();
        self.paths.clear();
        self.read_all();
        Ok(())
    }

    fn read_all(&mut self) {
        for resource in ["taskkinds", "addons", "extensions", "applications", "tasks"] {
            let resource = ResourceName::new(&format!("{resource}.muster.dev"));
            for stored in self.store.snapshot(&resource).range(None, None) {
                let (at, resource, object) = (Millis(0), resource.clone(), stored.clone());
                self.observe(&Change { at, resource, object, previous: None, deleted: false });
            }
            self.refresh_kinds();
        }
    }

    /// Attempts that tasks say they have.
    fn attempts(&self) -> Vec<Handle> {
        let stored = self.store.snapshot(&self.tasks);
        let tasks = stored.range(None, None).filter_map(|stored| read(stored.json()));
        tasks.filter(has_attempt).map(|task| handle_of(&task)).collect()
    }

    /// News from a runtime.
    pub fn report(&mut self, fact: Fact) {
        self.facts.push(fact);
    }

    /// One whole cycle. Returns when to look again even if nothing happens.
    pub async fn step(&mut self) -> Result<Option<Millis>, WatchError> {
        self.index()?;
        let now = self.clock.now();
        let mut edits = Edits::new(self.store.clone(), self.tasks.clone());
        let facts = std::mem::take(&mut self.facts);
        self.apply_facts(&facts, &mut edits, now);
        self.apply_asked(&mut edits, now);
        let plan = self.board.plan(now.to_timestamp().as_second());
        self.apply_plan(&plan, &mut edits, now);
        let failed = self.commit(edits).await;
        self.facts.extend(facts.into_iter().filter(|fact| {
            parse_uid(&fact.handle.task)
                .and_then(|uid| self.paths.get(&uid))
                .is_some_and(|path| failed.contains(path))
        }));
        let pause = if self.facts.is_empty() { None } else { Some(now) };
        Ok(pause.or_else(|| plan.wake_at.map(|second| Millis(second.saturating_mul(1000)))))
    }

    /// Takes in everything that was committed.
    fn index(&mut self) -> Result<(), WatchError> {
        loop {
            let changes = match self.watch.poll_page(CHANGES) {
                Err(WatchError::Gone { .. }) => {
                    self.start_over()?;
                    continue;
                }
                other => other?,
            };
            if changes.is_empty() {
                break;
            }
            for change in changes {
                self.observe(&change);
            }
        }
        self.refresh_kinds();
        Ok(())
    }

    fn refresh_kinds(&mut self) {
        if let Some((graph, priorities)) = self.catalogs.changed_kinds() {
            self.board.set_kinds(graph, priorities);
        }
    }

    fn observe(&mut self, change: &Change) {
        if change.resource != self.tasks {
            self.catalogs.observe(change);
            return;
        }
        let Some(task) = read(change.object.json()) else { return };
        let Some(view) = TaskView::of(&task, change.object.path.clone()) else { return };
        if change.deleted {
            self.board.forget(view.uid);
            self.paths.remove(&view.uid);
            if has_attempt(&task) {
                // Nobody wants it any more; its end is of no interest.
                self.runtime.stop(&handle_of(&task), self.grace(&task));
            }
            return;
        }
        self.settle(&task, &view);
        let wants_end = task.spec.cancel || task.metadata.deletion_timestamp.is_some();
        if wants_end && !view.state.is_terminal() && task.status.stopping.is_none() {
            self.asked.insert(view.path);
        }
    }

    /// Puts a task on the board as it is, or takes it off if it has ended.
    fn settle(&mut self, task: &Task, view: &TaskView) {
        self.board.observe(view);
        if state_of(task).is_terminal() {
            self.paths.remove(&view.uid);
        } else {
            self.paths.insert(view.uid, view.path.clone());
        }
    }

    fn apply_facts(&mut self, facts: &[Fact], edits: &mut Edits, now: Millis) {
        for fact in facts {
            let path = parse_uid(&fact.handle.task).and_then(|uid| self.paths.get(&uid)).cloned();
            let Some(edit) = path.as_ref().and_then(|path| edits.edit(path)) else { continue };
            let handle = &fact.handle;
            let outcome = match &fact.what {
                Observation::Started => progress::observe_started(&mut edit.task, handle, now),
                Observation::Ended(ending) => progress::observe_ended(&mut edit.task, handle, ending, now),
                Observation::Lost { message } => progress::observe_lost(&mut edit.task, handle, message, now),
                Observation::StartFailed { reason, message, transient } => {
                    progress::observe_start_failed(&mut edit.task, handle, reason, message, *transient, now)
                }
            };
            match outcome {
                Ok(()) => edit.mark(),
                Err(Ignored::OldAttempt) => tracing::debug!(%handle, "news of an older attempt is ignored"),
                Err(Ignored::Refused(refused)) => tracing::debug!(%handle, %refused, "news is ignored"),
            }
            let task = edit.task.clone();
            self.settle_edited(&task, path);
        }
    }

    fn apply_asked(&mut self, edits: &mut Edits, now: Millis) {
        for path in std::mem::take(&mut self.asked) {
            let Some(edit) = edits.edit(&path) else { continue };
            if edit.task.status.stopping.is_some() || state_of(&edit.task).is_terminal() {
                continue;
            }
            let deleted = edit.task.metadata.deletion_timestamp.is_some();
            let why = if deleted { Stopping::Deleted } else { Stopping::Canceled };
            if progress::request_stop(&mut edit.task, why, None, now).is_ok() {
                edit.mark();
                if edit.task.status.stopping.is_some() {
                    let grace = edit
                        .task
                        .spec
                        .kill_timeout
                        .map_or(self.settings.kill_timeout, muster_types::Duration::as_std);
                    edit.actions.push(Action::Stop(handle_of(&edit.task), grace));
                }
                let task = edit.task.clone();
                self.settle_edited(&task, Some(path));
            }
        }
    }

    /// The board counts on what is about to be committed; if that fails, the next look at the task puts it right.
    fn settle_edited(&mut self, task: &Task, path: Option<Arc<str>>) {
        if let Some(path) = path
            && let Some(view) = TaskView::of(task, path)
        {
            self.board.observe(&view);
        }
    }

    fn apply_plan(&mut self, plan: &Plan, edits: &mut Edits, now: Millis) {
        for decision in &plan.decisions {
            let (Decision::Start { task, .. } | Decision::Hold { task, .. } | Decision::Preempt { task, .. }) =
                decision;
            let path = task.path.clone();
            let Some(edit) = edits.edit(&path) else {
                self.board.forget(task.uid);
                continue;
            };
            let grace = edit
                .task
                .spec
                .kill_timeout
                .map_or(self.settings.kill_timeout, muster_types::Duration::as_std);
            let outcome = match decision {
                Decision::Hold { hold, .. } => progress::write_hold(&mut edit.task, hold, now),
                Decision::Preempt { by, .. } => {
                    let stop = Action::Stop(handle_of(&edit.task), grace);
                    edit.actions.push(stop);
                    progress::request_stop(&mut edit.task, Stopping::Preempted, Some(by), now)
                }
                Decision::Start { lent, .. } => {
                    let started = start(&self.settings, &self.catalogs, &mut edit.task, lent.as_ref(), now);
                    started.map(|action| edit.actions.extend(action))
                }
            };
            match outcome {
                Ok(()) => edit.mark(),
                Err(refused) => tracing::debug!(path = &*path, %refused, "a decision no longer applies"),
            }
            // A task that cannot be started ends here, and its place is free again.
            if state_of(&edit.task).is_terminal() {
                self.board.forget(task.uid);
            }
        }
    }

    /// Commits what was changed and then does what that asks for. Returns what could not be committed.
    async fn commit(&mut self, edits: Edits) -> BTreeSet<Arc<str>> {
        let mut failed = BTreeSet::new();
        let commits = edits.into_changed().filter_map(|mut edit| {
            let write = edit.is_changed().then(|| edit.write()).flatten()?;
            let store = self.store.clone();
            Some(async move { (edit, store.commit(Batch::of(write)).await) })
        });
        for (edit, outcome) in join_all(commits).await {
            match outcome {
                Ok(_) => edit.actions.into_iter().for_each(|action| self.act(action)),
                Err(error) => {
                    // Look again at the task as it is now.
                    if !matches!(error, CommitError::Conflict { .. }) {
                        tracing::warn!(key = %edit.key, %error, "a decision could not be committed");
                    }
                    self.look_again(&edit.key.path);
                    failed.insert(edit.key.path);
                }
            }
        }
        failed
    }

    fn look_again(&mut self, path: &Arc<str>) {
        let key = muster_ports::store::Key { resource: self.tasks.clone(), path: path.clone() };
        if let Some(stored) = self.store.get(&key) {
            let resource = self.tasks.clone();
            self.observe(&Change { at: Millis(0), resource, object: stored, previous: None, deleted: false });
        }
    }

    fn act(&self, action: Action) {
        match action {
            Action::Start(launch) => self.runtime.start(*launch),
            Action::Stop(handle, grace) => self.runtime.stop(&handle, grace),
        }
    }

    fn grace(&self, task: &Task) -> Duration {
        task.spec.kill_timeout.map_or(self.settings.kill_timeout, muster_types::Duration::as_std)
    }
}

/// Makes the attempt of a task that was chosen, or ends the task if there is nothing it could run.
fn start(
    settings: &Settings,
    catalogs: &Catalogs,
    task: &mut Task,
    lent: Option<&muster_tasks::plan::Lent>,
    now: Millis,
) -> Result<Option<Action>, muster_tasks::lifecycle::Refused> {
    let unchanged = task.clone();
    let selection = match catalogs.select(&unchanged) {
        Ok(selection) => selection,
        Err(error) => {
            return progress::reject(task, error.reason(), &error.to_string(), now).map(|()| None);
        }
    };
    let addon = selection.addon.map(|addon| addon.metadata.name.as_str());
    let extensions: Vec<_> = selection.extensions.iter().map(|it| it.metadata.name.clone()).collect();
    let attempt = task.status.attempt + 1;
    let directory = format!("{}/{}-{attempt}/work", settings.work_root, task.metadata.uid);
    let order = Order {
        attempt,
        task: &unchanged,
        selection: &selection,
        contract: Contract {
            url: &settings.url,
            token: &Token::new(""),
            addon_home: &directory,
            shared_path: &directory,
            cache_path: &format!("{}/cache", settings.work_root),
        },
        base_env: &settings.base_env,
        index: None,
        kill_timeout: settings.kill_timeout,
    };
    match render_attempt(&order) {
        Ok(launch) => {
            progress::begin_attempt(task, lent, addon, &extensions, now)?;
            Ok(Some(Action::Start(Box::new(launch))))
        }
        Err(error) => progress::reject(task, error.reason(), &error.to_string(), now).map(|()| None),
    }
}

fn read(json: &[u8]) -> Option<Task> {
    serde_json::from_slice(json).ok()
}

fn has_attempt(task: &Task) -> bool {
    matches!(state_of(task), State::Pending | State::Running)
}

fn handle_of(task: &Task) -> Handle {
    Handle { task: task.metadata.uid.clone(), attempt: task.status.attempt }
}

/// Cycles whenever something changed, was reported, or is due, until the facts end or the store closes.
pub async fn run(mut engine: Engine, mut facts: mpsc::UnboundedReceiver<Fact>) {
    let mut wake = match engine.store.watch(WatchScope::All, engine.store.revision()) {
        Ok(watch) => watch,
        Err(error) => return tracing::error!(%error, "the engine cannot watch the store"),
    };
    loop {
        let due = match engine.step().await {
            Ok(due) => due,
            Err(WatchError::Closed) => return,
            Err(error) => return tracing::error!(%error, "the engine cannot follow the store"),
        };
        let now = engine.clock.now();
        let pause =
            due.map_or(MAX_PAUSE, |due| Duration::from_millis(u64::try_from(due.0 - now.0).unwrap_or(0)));
        tokio::select! {
            fact = facts.recv() => match fact {
                Some(fact) => {
                    engine.report(fact);
                    while let Ok(fact) = facts.try_recv() {
                        engine.report(fact);
                    }
                }
                None => return,
            },
            changes = wake.next(CHANGES) => match changes {
                Ok(_) => {}
                Err(WatchError::Closed) => return,
                Err(_) => match engine.store.watch(WatchScope::All, engine.store.revision()) {
                    Ok(watch) => wake = watch,
                    Err(_) => return,
                },
            },
            () = tokio::time::sleep(pause.min(MAX_PAUSE)) => {}
        }
    }
}

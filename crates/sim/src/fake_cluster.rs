//! A cluster whose pods live and die by the dice: a quota that others use too refuses some, nodes are missing for some, nodes are lost.
//! Pods outlive the server that asked for them.
//!
//! It keeps to the protocol of the runtime for pods: a refusal holds for everything that was chosen before it was known, and
//! an attempt that is taken over is asked for again only if it never ran.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muster_ports::blobs::Blobs;
use muster_ports::clock::Millis;
use muster_ports::runtime::{
    Cause, Ending, Fact, FilesError, Handle, Launch, Observation, Runtime, UNSCHEDULABLE,
};
use parking_lot::Mutex;

use crate::dice::Dice;
use crate::failing_log::Fate;
use crate::judge::history::What;
use crate::recorder::{Recorder, program};

/// Where pods run, as a history calls it.
const PLACE: &str = "cluster/c";
/// Pods that a quota never refuses.
const PLENTY: usize = 1_000;
/// Pods that the quota lets in at most while things go wrong.
const MOST: u64 = 4;
/// The label of nodes that are missing from time to time.
pub const RARE: &str = "rare";

/// The cluster. Clones are the same.
#[derive(Clone)]
pub struct FakeCluster(Arc<Mutex<Inner>>);

struct Inner {
    recorder: Recorder,
    /// A server that was killed reaches nothing any more.
    fate: Fate,
    dice: Dice,
    pods: BTreeMap<Handle, Pod>,
    /// Pods that the quota lets in.
    quota: usize,
    /// Pods that are over and still count, because the quota's count lags.
    lagging: usize,
    /// There are nodes with the label that is rare.
    has_rare: bool,
    /// Refusals since the current server began to lead, and the number of the last pod that was asked for.
    refusals: u64,
    last_refusal: u64,
    facts: Vec<Fact>,
    now: Millis,
}

struct Pod {
    life: Life,
    is_rare: bool,
    stopping: bool,
    /// How it ended.
    end: Option<Observation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// It has no node yet; whether that was said.
    Waits(bool),
    Runs,
    Over,
}

impl FakeCluster {
    /// A cluster without pods.
    pub fn new(recorder: Recorder, fate: Fate, dice: Dice) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            recorder,
            fate,
            dice,
            pods: BTreeMap::new(),
            quota: 2,
            lagging: 0,
            has_rare: true,
            refusals: 0,
            last_refusal: 0,
            facts: Vec::new(),
            now: Millis(0),
        })))
    }

    /// True if no pod has anything left to do, and nothing is to be told.
    pub fn is_idle(&self) -> bool {
        let inner = self.0.lock();
        inner.facts.is_empty() && inner.pods.values().all(|pod| pod.life == Life::Over)
    }

    /// Another server leads and knows of no refusal. Events of a pod go to the server that adopts it.
    pub fn forget_asker(&self) {
        let mut inner = self.0.lock();
        (inner.refusals, inner.last_refusal) = (0, 0);
        inner.facts.clear();
    }

    /// Others use the quota, nodes come and go. How often something was lost.
    pub fn break_something(&self, dice: &mut Dice) -> u32 {
        let mut inner = self.0.lock();
        if dice.once_in(10) {
            inner.quota = usize::try_from(dice.below(MOST + 1)).unwrap_or(0);
        }
        if dice.once_in(15) {
            inner.has_rare = !inner.has_rare;
        }
        let running: Vec<Handle> =
            inner.pods.iter().filter(|(_, pod)| pod.life == Life::Runs).map(|(it, _)| it.clone()).collect();
        let lost = if dice.once_in(25) { dice.pick(&running).cloned() } else { None };
        let Some(handle) = lost else { return 0 };
        inner.end(&handle, None, lost_node());
        1
    }

    /// From here on there is room for all, on nodes of every sort.
    pub fn calm_down(&self) {
        let mut inner = self.0.lock();
        (inner.quota, inner.has_rare) = (PLENTY, true);
    }

    /// Pods find nodes, run and end; what happened since.
    pub fn move_on(&self, dice: &mut Dice, now: Millis, is_quiet: bool) -> Vec<Fact> {
        let mut inner = self.0.lock();
        inner.now = now;
        let handles: Vec<Handle> = inner.pods.keys().cloned().collect();
        for handle in handles {
            inner.move_pod(&handle, dice, is_quiet);
        }
        std::mem::take(&mut inner.facts)
    }
}

impl Inner {
    fn happened(&mut self, handle: &Handle, what: Observation) {
        self.facts.push(Fact { handle: handle.clone(), at: self.now, what });
    }

    fn end(&mut self, handle: &Handle, exit: Option<i32>, how: Observation) {
        let Some(pod) = self.pods.get_mut(handle) else { return };
        pod.end = Some(how.clone());
        self.lagging += 1;
        if std::mem::replace(&mut pod.life, Life::Over) == Life::Runs {
            self.recorder.note(What::Ended(program(handle, PLACE), exit));
        }
        self.happened(handle, how);
    }

    fn move_pod(&mut self, handle: &Handle, dice: &mut Dice, is_quiet: bool) {
        let Some(pod) = self.pods.get(handle) else { return };
        let (life, stopping, has_node) = (pod.life, pod.stopping, !pod.is_rare || self.has_rare);
        match life {
            Life::Waits(_) | Life::Runs if stopping && dice.once_in(2) => {
                self.end(handle, Some(143), ended(143, Cause::Stopped, self.now));
            }
            Life::Waits(_) if has_node && dice.once_in(2) => {
                self.set(handle, Life::Runs);
                self.recorder.note(What::Started(program(handle, PLACE)));
                self.happened(handle, Observation::Started);
            }
            Life::Waits(false) if !has_node => {
                self.set(handle, Life::Waits(true));
                let (reason, message) = (UNSCHEDULABLE.to_owned(), "0/3 nodes are available".to_owned());
                self.happened(handle, Observation::Waiting { reason, message });
            }
            Life::Runs if dice.once_in(if is_quiet { 3 } else { 8 }) => {
                let exit = i32::from(!is_quiet && dice.once_in(6));
                self.end(handle, Some(exit), ended(exit, Cause::Itself, self.now));
            }
            Life::Waits(_) | Life::Runs | Life::Over => {}
        }
    }

    fn set(&mut self, handle: &Handle, life: Life) {
        if let Some(pod) = self.pods.get_mut(handle) {
            pod.life = life;
        }
    }

    /// Asks for a pod. One that was chosen before the last refusal was known is refused without asking.
    fn ask(&mut self, launch: &Launch, may_exist: bool) {
        let Some(asked) = &launch.pod else { return };
        while self.lagging > 0 && self.dice.once_in(2) {
            self.lagging -= 1;
        }
        let there = self.lagging + self.pods.values().filter(|pod| pod.life != Life::Over).count();
        let is_outdated = !may_exist && asked.knows_refusals < self.last_refusal;
        if is_outdated || there >= self.quota {
            self.refusals += 1;
            if !is_outdated {
                self.last_refusal = self.refusals;
            }
            self.recorder.note(What::Refused(program(&launch.handle, PLACE)));
            let (message, refusal) = ("exceeded quota: q".to_owned(), asked.refusals + 1);
            return self.happened(&launch.handle, Observation::Blocked { message, refusal });
        }
        self.recorder.note(What::Admitted(program(&launch.handle, PLACE)));
        let is_rare = asked.overrides.iter().any(|it| it.to_string().contains(RARE));
        self.pods.insert(
            launch.handle.clone(),
            Pod { life: Life::Waits(false), is_rare, stopping: false, end: None },
        );
        self.happened(&launch.handle, Observation::Created);
    }
}

impl Runtime for FakeCluster {
    fn start(&self, launch: Launch) {
        let mut inner = self.0.lock();
        if !inner.fate.is_dead() && !inner.pods.contains_key(&launch.handle) {
            inner.ask(&launch, false);
        }
    }

    fn adopt(&self, launch: Launch, ran: bool) {
        let mut inner = self.0.lock();
        if inner.fate.is_dead() {
            return;
        }
        let handle = &launch.handle;
        match inner.pods.get(handle).map(|pod| (pod.life, pod.end.clone())) {
            Some((_, Some(end))) => inner.happened(handle, end),
            Some((Life::Runs, None)) => inner.happened(handle, Observation::Started),
            Some((Life::Waits(_) | Life::Over, None)) => inner.happened(handle, Observation::Created),
            None if ran => inner.happened(handle, lost_node()),
            None => inner.ask(&launch, true),
        }
    }

    fn stop(&self, handle: &Handle, _grace: Duration) {
        let mut inner = self.0.lock();
        if inner.fate.is_dead() {
            return;
        }
        if let Some(pod) = inner.pods.get_mut(handle) {
            pod.stopping = true;
        }
    }

    fn keep_logs(&self, handle: &Handle, _blobs: &dyn Blobs) -> Result<(), FilesError> {
        let inner = self.0.lock();
        if inner.pods.contains_key(handle) && !inner.fate.is_dead() {
            inner.recorder.note(What::Kept(program(handle, PLACE)));
        }
        Ok(())
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        let mut inner = self.0.lock();
        if inner.pods.get(handle).is_some_and(|pod| pod.life != Life::Over) {
            return Err(FilesError::Running);
        }
        if !inner.fate.is_dead() && inner.pods.remove(handle).is_some() {
            inner.recorder.note(What::Removed(program(handle, PLACE)));
            inner.happened(handle, Observation::Removed);
        }
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(self.0.lock().pods.keys().cloned().collect())
    }
}

fn lost_node() -> Observation {
    Observation::Lost { reason: "NodeLost".to_owned(), message: "the node is gone".to_owned() }
}

fn ended(exit_code: i32, cause: Cause, at: Millis) -> Observation {
    Observation::Ended(Ending::of_leader(exit_code, cause, at))
}

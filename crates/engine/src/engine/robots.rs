//! Robots, taken in: where tasks can go, and what becomes of tasks whose robot is gone.
//!
//! The phase of a robot is decided elsewhere ([`crate::fleet`]) and committed; here it is only followed. A robot that is not
//! Online any more has lost its attempts, and so has one that is cut off for longer than a task puts up with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_fleet::RobotView;
use muster_fleet::fleet::{Fleet, Refusal};
use muster_ports::clock::Millis;
use muster_ports::runtime::{Fact, Handle, Observation};
use muster_ports::store::{Change, ResourceName};
use muster_tasks::places::{Places, Unplaced};
use muster_tasks::progress::ROBOT_LOST;
use muster_tasks::reconcile::leaving_of;
use muster_tasks::view::{TaskView, awaited_robot};
use muster_types::placement::Demand;
use muster_types::robot_status::Phase;
use muster_types::{JsonText, Robot, Task};

use super::{Engine, handle_of, leaving};

/// Where robots are kept.
const ROBOTS: &str = "robots.muster.dev";

/// Every robot, and what is due because one is cut off.
#[derive(Debug)]
pub(super) struct Robots {
    pub resource: ResourceName,
    pub fleet: Fleet,
    /// Since when robots are cut off.
    cut: BTreeMap<Arc<str>, i64>,
    /// When tasks have waited long enough for a robot that is cut off: the time, the robot and the task.
    due: BTreeSet<(i64, Arc<str>, u128)>,
    /// Tasks with another attempt besides their own: one that counted as lost and may come back, or one that is leaving.
    pub awaiting: BTreeSet<Arc<str>>,
}

impl Default for Robots {
    fn default() -> Self {
        let resource = ResourceName::new(ROBOTS);
        Self {
            resource,
            fleet: Fleet::default(),
            cut: BTreeMap::new(),
            due: BTreeSet::new(),
            awaiting: BTreeSet::new(),
        }
    }
}

impl Places for Robots {
    fn place(&mut self, uid: u128, demand: &Arc<Demand>) -> Result<Arc<str>, Unplaced> {
        let placed = self.fleet.place(uid, demand);
        let name = |path: Arc<str>| path.split_once('/').map_or(path.clone(), |(_, name)| name.into());
        placed.map(name).map_err(unplaced)
    }

    fn could_place(&mut self, demand: &Arc<Demand>) -> Result<(), Unplaced> {
        self.fleet.could_place(demand).map_err(unplaced)
    }
}

fn unplaced(refusal: Refusal) -> Unplaced {
    Unplaced { reason: refusal.reason, message: refusal.message }
}

impl Robots {
    /// Takes in where a task is.
    pub(super) fn show(&mut self, view: &TaskView) {
        match (&view.robot, &view.demand) {
            (Some(robot), Some(demand)) => {
                let path = format!("{}/{robot}", demand.namespace).into();
                self.fleet.hold(view.uid, &path, demand);
            }
            _ => self.fleet.release(view.uid),
        }
        match (&view.awaited, &view.demand) {
            (Some(robot), Some(demand)) => {
                let path = format!("{}/{robot}", demand.namespace).into();
                self.fleet.hold(copy_of(view.uid), &path, demand);
                self.awaiting.insert(view.path.clone());
            }
            _ => self.release_copy(view.uid, &view.path),
        }
    }

    /// A task is gone.
    pub(super) fn forget(&mut self, uid: u128, path: &Arc<str>) {
        self.fleet.release(uid);
        self.release_copy(uid, path);
    }

    fn release_copy(&mut self, uid: u128, path: &Arc<str>) {
        if self.awaiting.remove(path) {
            self.fleet.release(copy_of(uid));
        }
    }

    /// When to look again, in seconds.
    pub(super) fn wake_at(&self) -> Option<i64> {
        self.due.first().map(|(at, ..)| *at)
    }
}

/// Under which number the fleet knows the other attempt of a task: it has its slot until it is over. It is no task of the board.
fn copy_of(uid: u128) -> u128 {
    !uid
}

impl Engine {
    /// Takes in a robot as it is stored.
    pub(super) fn observe_robot(&mut self, change: &Change) {
        let path = change.object.path.clone();
        let robot = Robot::from_json(change.object.json());
        let (Ok(robot), false) = (robot, change.deleted) else {
            self.robots.fleet.forget(&path);
            self.robots.cut.remove(&path);
            self.lose_robot(&path, "its robot was removed");
            return;
        };
        let view = RobotView::of(&robot, path.clone());
        let (phase, cut_since) = (view.phase, view.cut_since);
        self.robots.fleet.observe(view);
        if phase != Phase::Online {
            self.robots.cut.remove(&path);
            self.lose_robot(&path, "its robot is offline");
            return;
        }
        let Some(since) = cut_since else {
            self.robots.cut.remove(&path);
            return;
        };
        if self.robots.cut.insert(path.clone(), since) != Some(since) {
            for uid in self.robots.fleet.held_by(&path) {
                let patience = self.held_task(uid).and_then(|task| task.spec.disconnect?.lost_after);
                if let Some(patience) = patience {
                    let at = since.saturating_add(patience.seconds_rounded_up());
                    self.robots.due.insert((at, path.clone(), uid));
                }
            }
        }
    }

    /// What a robot that is gone held is lost.
    fn lose_robot(&mut self, path: &Arc<str>, why: &str) {
        for uid in self.robots.fleet.held_by(path) {
            self.lose_on_robot(uid, why);
        }
    }

    /// After a start: what is at robots that are gone is lost.
    pub(super) fn lose_absent(&mut self) {
        let absent = |robots: &Robots, path: &str| {
            robots.fleet.robot(path).is_none_or(|robot| robot.phase == Phase::Offline)
        };
        for path in self.board.active_paths() {
            let Some(task) = self.fetch(&path) else { continue };
            let Some(robot) = muster_tasks::view::robot_of(&task) else { continue };
            let home = format!("{}/{robot}", task.metadata.namespace);
            if absent(&self.robots, &home) {
                self.push_lost(handle_of(&task), "its robot is offline");
            }
        }
        for path in self.robots.awaiting.clone() {
            let Some(task) = self.fetch(&path) else { continue };
            let Some((leaving, robot)) = leaving_of(&task).zip(awaited_robot(&task)) else { continue };
            if absent(&self.robots, &format!("{}/{robot}", task.metadata.namespace)) {
                self.push_lost(leaving, "its robot is offline");
            }
        }
        let orphans: Vec<Handle> = self
            .orphans
            .values()
            .filter(|orphan| {
                let home = orphan.view.robot.as_ref().zip(orphan.view.demand.as_ref());
                home.is_some_and(|(robot, demand)| {
                    absent(&self.robots, &format!("{}/{robot}", demand.namespace))
                })
            })
            .map(leaving::handle_of)
            .collect();
        for handle in orphans {
            self.push_lost(handle, "its robot is offline");
        }
    }

    /// Tasks whose patience with a robot that is cut off has ended.
    pub(super) fn lose_cut_off(&mut self, second: i64) {
        while let Some((at, path, uid)) = self.robots.due.pop_first() {
            if at > second {
                self.robots.due.insert((at, path, uid));
                return;
            }
            let still =
                self.robots.cut.contains_key(&path) && self.robots.fleet.held_by(&path).contains(&uid);
            if still {
                self.lose_on_robot(uid, "its robot was cut off for longer than disconnect.lostAfter");
            }
        }
    }

    fn lose_on_robot(&mut self, uid: u128, why: &str) {
        let orphan = self.orphans.get(&uid).map(leaving::handle_of);
        let leaving = || self.held_task(copy_of(uid)).as_ref().and_then(leaving_of);
        let own = || self.held_task(uid).as_ref().map(handle_of);
        if let Some(handle) = orphan.or_else(own).or_else(leaving) {
            self.push_lost(handle, why);
        }
    }

    pub(super) fn push_lost(&mut self, handle: Handle, why: &str) {
        let what = Observation::Lost { reason: ROBOT_LOST.to_owned(), message: why.to_owned() };
        let at: Millis = self.now();
        self.facts.push(Fact { handle, at, what });
    }

    fn held_task(&self, uid: u128) -> Option<Task> {
        self.fetch(self.board.path_of(uid)?)
    }
}

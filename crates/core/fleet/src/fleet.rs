//! The fleet: every robot and what it holds, indexed so that a robot for the next task is found without looking at all of them.
//!
//! Fed with robots and tasks as they are committed, and by [`Fleet::place`], whose choice counts at once. Rules:
//! - a robot holds no more tasks than it has slots, and no more cpu and memory than it says it has;
//! - a task goes to a robot of its namespace that is Online, takes tasks, matches all it asks for, and has room;
//! - of those, the one with the fewest tasks (spread), or the most (bin-pack); where that is the same, spread takes the one that has
//!   had that many for the longest time, so that all have their turn, and bin-pack the one that has for the shortest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_types::placement::{Demand, Spread};
use muster_types::robot_status::Phase;
use muster_types::{Quantity, counted};

use crate::robot_view::{RobotView, Traits};
use crate::wish::Wish;

/// Demands that are remembered; beyond, they are compiled anew.
const MAX_WISHES: usize = 4096;

/// Why no robot takes a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// Every robot and what it holds.
#[derive(Debug, Default)]
pub struct Fleet {
    robots: BTreeMap<Arc<str>, Box<Member>>,
    /// Where tasks are.
    homes: BTreeMap<u128, Arc<str>>,
    /// Robots that may take one more task, by how many they have and since when.
    open: BTreeSet<(u32, u64, Arc<str>)>,
    wishes: BTreeMap<Arc<Demand>, Known>,
    /// Of the robots there are, each once.
    traits: BTreeSet<Arc<Traits>>,
    /// Grows with every change.
    version: u64,
}

#[derive(Debug, Default)]
struct Member {
    /// Nothing if tasks are there of which the robot is not known, or no longer.
    view: Option<RobotView>,
    held: BTreeMap<u128, Held>,
    /// The version of the fleet in which it came to have as many tasks as it has.
    since: u64,
    cpu_millis: u64,
    memory: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    group: String,
    cpu_millis: u64,
    memory: u64,
}

#[derive(Debug)]
struct Known {
    wish: Wish,
    refused: Option<(u64, Refusal)>,
}

impl Fleet {
    /// Takes in a robot as it was committed.
    pub fn observe(&mut self, mut view: RobotView) {
        // Most changes of a robot say that it lives, which is nothing new here.
        if self.robot(&view.path) == Some(&view) {
            return;
        }
        match self.traits.get(&view.traits) {
            Some(known) => view.traits = known.clone(),
            None => drop(self.traits.insert(view.traits.clone())),
        }
        let path = view.path.clone();
        self.replace(&path, Some(view));
    }

    /// A robot is gone. What it held stays with it until that is released.
    pub fn forget(&mut self, path: &Arc<str>) {
        self.replace(path, None);
    }

    fn replace(&mut self, path: &Arc<str>, view: Option<RobotView>) {
        let mut before = None;
        self.change(path, |member| before = std::mem::replace(&mut member.view, view));
        // One is here, the other was the last robot's.
        if let Some(before) = before.filter(|before| Arc::strong_count(&before.traits) == 2) {
            self.traits.remove(&before.traits);
        }
    }

    /// The robot at a path, if it is known.
    pub fn robot(&self, path: &str) -> Option<&RobotView> {
        self.robots.get(path)?.view.as_ref()
    }

    /// All robots that are known.
    pub fn robots(&self) -> impl Iterator<Item = &RobotView> {
        self.robots.values().filter_map(|member| member.view.as_ref())
    }

    /// A task is at a robot. It is nowhere else.
    pub fn hold(&mut self, uid: u128, path: &Arc<str>, demand: &Demand) {
        let held = Held { group: demand.group.clone(), cpu_millis: demand.cpu_millis, memory: demand.memory };
        if self.homes.get(&uid) == Some(path)
            && self.robots.get(path).is_some_and(|member| member.held.get(&uid) == Some(&held))
        {
            return;
        }
        self.release(uid);
        self.homes.insert(uid, path.clone());
        self.change(path, |member| {
            member.cpu_millis = member.cpu_millis.saturating_add(held.cpu_millis);
            member.memory = member.memory.saturating_add(held.memory);
            member.held.insert(uid, held);
        });
    }

    /// A task is at no robot any more.
    pub fn release(&mut self, uid: u128) {
        let Some(path) = self.homes.remove(&uid) else { return };
        self.change(&path, |member| {
            if let Some(held) = member.held.remove(&uid) {
                member.cpu_millis = member.cpu_millis.saturating_sub(held.cpu_millis);
                member.memory = member.memory.saturating_sub(held.memory);
            }
        });
    }

    /// The tasks at a robot.
    pub fn held_by(&self, path: &str) -> Vec<u128> {
        self.robots.get(path).map(|member| member.held.keys().copied().collect()).unwrap_or_default()
    }

    /// Whether some robot would take a task if no robot had any.
    pub fn could_place(&mut self, demand: &Arc<Demand>) -> Result<(), Refusal> {
        let wish = &known(&mut self.wishes, demand).wish;
        let could = |view: &RobotView| {
            let empty = Member { view: Some(view.clone()), ..Member::default() };
            view.names().0 == demand.namespace
                && wish.mismatch(view).is_none()
                && empty.is_open()
                && empty.has_room(demand)
        };
        if self.robots.values().filter_map(|member| member.view.as_ref()).any(could) {
            return Ok(());
        }
        Err(describe(&self.robots, wish))
    }

    /// The robot a task goes to. It counts as held there from now on.
    pub fn place(&mut self, uid: u128, demand: &Arc<Demand>) -> Result<Arc<str>, Refusal> {
        let known = known(&mut self.wishes, demand);
        if let Some((_, refusal)) = known.refused.as_ref().filter(|(version, _)| *version == self.version) {
            return Err(refusal.clone());
        }
        let wish = &known.wish;
        let fits = |path: &Arc<str>| {
            let member = self.robots.get(path)?;
            let view = member.view.as_ref()?;
            (view.names().0 == demand.namespace && wish.mismatch(view).is_none() && member.has_room(demand))
                .then(|| path.clone())
        };
        let found = if demand.target.is_empty() {
            let mut paths = self.open.iter().map(|(.., path)| path);
            match demand.affinity.prefer {
                Spread::Spread => paths.find_map(fits),
                Spread::BinPack => paths.rev().find_map(fits),
            }
        } else {
            let path: Arc<str> = format!("{}/{}", demand.namespace, demand.target).into();
            let open = self.robots.get(&path).is_some_and(|member| member.is_open());
            fits(&path).filter(|_| open)
        };
        if let Some(path) = found {
            self.hold(uid, &path, demand);
            return Ok(path);
        }
        let refusal = describe(&self.robots, wish);
        if let Some(known) = self.wishes.get_mut(demand) {
            known.refused = Some((self.version, refusal.clone()));
        }
        Err(refusal)
    }

    /// Everything that is wrong with the index; nothing, if it is sound.
    pub fn violations(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (path, member) in &self.robots {
            let key = (member.load(), member.since, path.clone());
            if self.open.contains(&key) != member.is_open() {
                wrong.push(format!("{path} is open in one place only"));
            }
            for uid in member.held.keys() {
                if self.homes.get(uid) != Some(path) {
                    wrong.push(format!("task {uid} is held by {path} and lives elsewhere"));
                }
            }
        }
        let alike: BTreeSet<&Traits> = self.robots().map(|robot| &*robot.traits).collect();
        if alike.len() != self.traits.len() {
            wrong.push(format!("robots have {} sets of traits, {} are kept", alike.len(), self.traits.len()));
        }
        let held: usize = self.robots.values().map(|member| member.held.len()).sum();
        if held != self.homes.len() {
            wrong.push(format!("{held} tasks are held, {} have a home", self.homes.len()));
        }
        wrong
    }

    fn change(&mut self, path: &Arc<str>, change: impl FnOnce(&mut Member)) {
        self.version += 1;
        let member = self.robots.entry(path.clone()).or_default();
        let load = member.load();
        self.open.remove(&(load, member.since, path.clone()));
        change(member);
        if member.load() != load {
            member.since = self.version;
        }
        if member.is_open() {
            self.open.insert((member.load(), member.since, path.clone()));
        } else if member.view.is_none() && member.held.is_empty() {
            self.robots.remove(path);
        }
    }
}

impl Member {
    fn load(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }

    /// It may take one more task, whatever that needs.
    fn is_open(&self) -> bool {
        self.view.as_ref().is_some_and(|view| {
            let takes = view.phase == Phase::Online && !view.unschedulable && view.cut_since.is_none();
            takes && self.load() < view.max_tasks
        })
    }

    fn has_room(&self, demand: &Demand) -> bool {
        let Some(view) = &self.view else { return false };
        let runs = |group: &String| self.held.values().any(|held| held.group == *group);
        is_within(self.cpu_millis, demand.cpu_millis, cpu_millis(view))
            && is_within(self.memory, demand.memory, view.traits.device.memory)
            && demand.affinity.with.iter().all(runs)
            && !demand.affinity.apart.iter().any(runs)
    }
}

/// What is asked for, compiled once.
fn known<'a>(wishes: &'a mut BTreeMap<Arc<Demand>, Known>, demand: &Arc<Demand>) -> &'a Known {
    if wishes.len() >= MAX_WISHES && !wishes.contains_key(demand) {
        wishes.clear();
    }
    wishes.entry(demand.clone()).or_insert_with(|| Known { wish: Wish::new(demand), refused: None })
}

/// Why none of the robots takes a task.
fn describe(robots: &BTreeMap<Arc<str>, Box<Member>>, wish: &Wish) -> Refusal {
    let namespace = wish.demand.namespace.as_str();
    let there = || {
        let views = robots.values().filter_map(|member| member.view.as_ref());
        views.filter(|view| view.names().0 == namespace)
    };
    let all = there().count();
    let refusal = |reason, message| Refusal { reason, message };
    if all == 0 {
        return refusal("NoRobot", format!("no robot has joined namespace {namespace}"));
    }
    let matching: Vec<&RobotView> = there().filter(|view| wish.mismatch(view).is_none()).collect();
    if matching.is_empty() {
        let why = there().find_map(|view| wish.mismatch(view)).unwrap_or_default();
        let message = match all {
            1 => format!("the only robot does not match: {why}"),
            _ => format!("none of {all} robots matches; of one of them, {why}"),
        };
        return refusal("NoRobot", message);
    }
    let large_enough: Vec<&RobotView> =
        matching.iter().copied().filter(|view| is_large_enough(view, &wish.demand)).collect();
    if large_enough.is_empty() {
        return refusal("NeverFits", describe_too_small(&matching, &wish.demand));
    }
    let count = |test: fn(&RobotView) -> bool| large_enough.iter().filter(|view| test(view)).count();
    let away = [
        (count(|view| view.phase == Phase::Offline), "offline"),
        (count(|view| view.phase == Phase::Pending), "not let in yet"),
        (count(|view| view.phase == Phase::Online && view.unschedulable), "drained"),
        (
            count(|view| view.phase == Phase::Online && !view.unschedulable && view.cut_since.is_some()),
            "disconnected",
        ),
    ];
    let total = large_enough.len();
    let found = if total == matching.len() {
        counted(total, "robot matches", "robots match")
    } else {
        let is = if total == 1 { "is" } else { "are" };
        format!("{total} of {} robots that match {is} large enough", matching.len())
    };
    if away.iter().map(|(count, _)| count).sum::<usize>() == total {
        let away = away.iter().filter(|(count, _)| *count > 0);
        let away: Vec<String> = away.map(|(count, how)| format!("{count} {how}")).collect();
        return refusal("RobotsAway", format!("{found}: {}", away.join(", ")));
    }
    let busy = if total == 1 { "it is busy" } else { "those that are online have no room now" };
    refusal("RobotsBusy", format!("{found}; {busy}"))
}

/// Cores and memory of a robot would do if nothing else ran there. One that does not say how large it is may be large enough.
fn is_large_enough(view: &RobotView, demand: &Demand) -> bool {
    is_within(0, demand.cpu_millis, cpu_millis(view))
        && is_within(0, demand.memory, view.traits.device.memory)
}

/// Thousandths of a core; 0 if the robot does not say.
fn cpu_millis(view: &RobotView) -> u64 {
    u64::from(view.traits.device.cpus) * 1000
}

/// What is in use and what is asked for stay within the most there is; 0 is no bound.
fn is_within(used: u64, asked: u64, most: u64) -> bool {
    asked == 0 || most == 0 || used.saturating_add(asked) <= most
}

/// What robots lack that match and are too small, and what would have to change.
fn describe_too_small(matching: &[&RobotView], demand: &Demand) -> String {
    // A robot that does not say how much it has is not too small for that.
    let most = |of: fn(&RobotView) -> u64| {
        let known = matching.iter().map(|view| of(view));
        known.map(|most| if most == 0 { u64::MAX } else { most }).max().unwrap_or(0)
    };
    let most_cpu = most(cpu_millis);
    let most_memory = most(|view| view.traits.device.memory);
    let (cpu, memory) = (Quantity::of_millis(demand.cpu_millis), Quantity::of_bytes(demand.memory));
    let exceeding = if demand.cpu_millis > most_cpu {
        Some((format!("{cpu} cpu"), Quantity::of_millis(most_cpu), ".cpu"))
    } else if demand.memory > most_memory {
        Some((format!("{memory} memory"), Quantity::of_bytes(most_memory), ".memory"))
    } else {
        None
    };
    let (lack, field) = match (exceeding, matching.len()) {
        (Some((asked, most, field)), 1) => {
            (format!("{asked} and the only robot that matches has {most}"), field)
        }
        (Some((asked, most, field)), count) => {
            (format!("{asked} and the largest of {count} robots that match has {most}"), field)
        }
        (None, count) => {
            (format!("{cpu} cpu and {memory} memory, and none of {count} robots that match has both"), "")
        }
    };
    format!(
        "it asks for {lack}; add a larger robot, or submit the task again with less in spec.resources{field}"
    )
}

//! Robots and a bridge that live by the dice: what the server orders reaches them late or again, what they say is late, doubled
//! and reordered, and some of it is a lie.
//!
//! A robot keeps to the protocol of agents: it writes down an attempt before it starts it, starts it once, says everything again
//! when it is asked or has connected, and ends what it is told to end. The bridge keeps to its own: it sends until it hears, and
//! tells robots to end what nobody wants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use muster_ports::blobs::Blobs;
use muster_ports::clock::Millis;
use muster_ports::runtime::{
    Cause, EXECUTOR_LOST, Ending, Fact, FilesError, Handle, Launch, Observation, Runtime,
};
use muster_types::Robot;
use muster_types::condition::{Condition, ConditionStatus, set_condition};
use muster_types::robot_status::CONNECTED;
use parking_lot::Mutex;

use crate::dice::Dice;
use crate::failing_log::Fate;
use crate::judge::history::What;
use crate::recorder::{Recorder, program};

/// All robots and the bridge.
#[derive(Clone)]
pub struct FakeFleet(Arc<Mutex<Inner>>);

struct Inner {
    recorder: Recorder,
    /// A server that was killed reaches nothing any more.
    fate: Fate,
    robots: BTreeMap<String, Robotic>,
    /// What the bridge waits to hear of: the robot, whether it ran, whether it is to end, the place of the last report.
    open: BTreeMap<Handle, Open>,
    /// Attempts that left something, where, and whether their end was heard.
    left: BTreeMap<Handle, (String, bool)>,
    underway: Vec<(String, Handle, u64, Observation)>,
}

struct Open {
    robot: String,
    ran: bool,
    stop: bool,
    heard: u64,
}

#[derive(Default)]
struct Robotic {
    connected: bool,
    known: BTreeMap<Handle, Known>,
    forgotten: BTreeSet<Handle>,
}

/// An attempt as a robot knows it.
struct Known {
    runs: bool,
    stopping: bool,
    said: Vec<Observation>,
}

impl Known {
    fn has_ended(&self) -> bool {
        self.said.last().is_some_and(|last| matches!(last, Observation::Ended(_) | Observation::Lost { .. }))
    }
}

impl FakeFleet {
    /// Robots `r0` and so on, all of them connected.
    pub fn new(robots: u64, recorder: Recorder, fate: Fate) -> Self {
        let robot = |number| (format!("r{number}"), Robotic { connected: true, ..Robotic::default() });
        let inner = Inner {
            recorder,
            fate,
            robots: (0..robots).map(robot).collect(),
            open: BTreeMap::new(),
            left: BTreeMap::new(),
            underway: Vec::new(),
        };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// True if no program runs on any robot, and nothing is on its way.
    pub fn is_idle(&self) -> bool {
        let inner = self.0.lock();
        inner.underway.is_empty()
            && inner.robots.values().all(|robot| robot.known.values().all(|known| !known.runs))
    }

    /// Every robot can be reached again.
    pub fn reconnect_all(&self) {
        let mut inner = self.0.lock();
        let names: Vec<String> = inner.robots.keys().cloned().collect();
        for name in names {
            let Some(robot) = inner.robots.get_mut(&name) else { continue };
            if !robot.connected {
                robot.connected = true;
                inner.recorder.note(What::Link(name.clone(), true));
                inner.introduce(&name);
            }
        }
    }

    /// Whether a robot is connected.
    pub fn is_connected(&self, robot: &str) -> bool {
        self.0.lock().robots.get(robot).is_some_and(|robot| robot.connected)
    }

    /// Writes down whether a robot is connected. True if that is new.
    pub fn fold_connection(&self, robot: &mut Robot, name: &str, now: Millis) -> bool {
        let connected = self.is_connected(name);
        let word = if connected { ConditionStatus::True } else { ConditionStatus::False };
        let reason = if connected { "Connected" } else { "ConnectionLost" };
        let condition = Condition::new(CONNECTED, word, reason, "", now.to_timestamp());
        set_condition(&mut robot.status.conditions, condition)
    }

    /// The server is gone, and what the bridge remembered with it.
    pub fn forget_bridge(&self) {
        let mut inner = self.0.lock();
        inner.open.clear();
        inner.underway.clear();
    }

    /// Robots vanish, come back, and reboot. How often that happened.
    pub fn break_something(&self, dice: &mut Dice) -> u32 {
        let mut inner = self.0.lock();
        let mut faults = 0;
        let names: Vec<String> = inner.robots.keys().cloned().collect();
        for name in names {
            let Some(robot) = inner.robots.get_mut(&name) else { continue };
            let was_connected = robot.connected;
            if was_connected && dice.once_in(40) {
                robot.connected = false;
                faults += 1;
                inner.recorder.note(What::Link(name.clone(), false));
            } else if !was_connected && dice.once_in(12) {
                robot.connected = true;
                inner.recorder.note(What::Link(name.clone(), true));
                inner.introduce(&name);
            } else if dice.once_in(80) {
                faults += 1;
                let ended = robot.reboot();
                robot.connected = true;
                for handle in ended {
                    inner.recorder.note(What::Ended(program(&handle, &place(&name)), None));
                }
                if !was_connected {
                    inner.recorder.note(What::Link(name.clone(), true));
                }
                inner.introduce(&name);
            }
        }
        faults
    }

    /// Some attempts move on; what reaches the engine of it.
    pub fn move_on(&self, dice: &mut Dice, now: Millis) -> Vec<Fact> {
        let mut inner = self.0.lock();
        inner.send_again(dice);
        let names: Vec<String> = inner.robots.keys().cloned().collect();
        for name in names {
            inner.run_some(&name, dice, now);
        }
        inner.deliver(dice, now)
    }
}

impl Robotic {
    /// What it ran ends with it, and it says so.
    fn reboot(&mut self) -> Vec<Handle> {
        let mut ended = Vec::new();
        for (handle, known) in self.known.iter_mut().filter(|(_, known)| !known.has_ended()) {
            if std::mem::take(&mut known.runs) {
                ended.push(handle.clone());
            }
            known.said.push(lost("rebooted"));
        }
        ended
    }
}

impl Inner {
    /// A robot has connected: it says everything again, and hears what it missed.
    fn introduce(&mut self, name: &str) {
        let Some(robot) = self.robots.get(name) else { return };
        let mut strays = Vec::new();
        for open in self.open.values_mut().filter(|open| open.robot == name) {
            // It may have been taken for lost since.
            open.heard = 0;
        }
        for (handle, known) in &robot.known {
            for (place, what) in known.said.iter().enumerate() {
                self.underway.push((name.to_owned(), handle.clone(), place as u64 + 1, what.clone()));
            }
            let wanted = self.open.get(handle).is_some_and(|open| open.robot == name && !open.stop);
            let kept = self.left.get(handle).is_some_and(|(robot, ended)| robot == name && *ended);
            if !wanted && !kept {
                strays.push(handle.clone());
            }
        }
        for handle in strays {
            self.delete(name, &handle);
        }
    }

    /// The bridge repeats what was not acknowledged, and what is to end.
    fn send_again(&mut self, dice: &mut Dice) {
        let handles: Vec<Handle> = self.open.keys().cloned().collect();
        for handle in handles {
            if dice.once_in(4) {
                self.send(&handle);
            }
        }
    }

    fn send(&mut self, handle: &Handle) {
        let Some(open) = self.open.get(handle) else { return };
        let (name, ran, stop) = (open.robot.clone(), open.ran, open.stop);
        if stop {
            return self.end(&name, handle);
        }
        let Some(robot) = self.robots.get_mut(&name).filter(|robot| robot.connected) else { return };
        if let Some(known) = robot.known.get(handle) {
            for (place, what) in known.said.iter().enumerate() {
                self.underway.push((name.clone(), handle.clone(), place as u64 + 1, what.clone()));
            }
        } else if robot.forgotten.contains(handle) {
            self.underway.push((name, handle.clone(), 0, lost("forgotten")));
        } else if ran {
            robot
                .known
                .insert(handle.clone(), Known { runs: false, stopping: false, said: vec![lost("unknown")] });
            self.underway.push((name, handle.clone(), 1, lost("unknown")));
        } else {
            self.recorder.note(What::Started(program(handle, &place(&name))));
            let said = vec![Observation::Created];
            robot.known.insert(handle.clone(), Known { runs: true, stopping: false, said });
        }
    }

    /// A robot is told to end an attempt: it says again how one ended that has, of which the server has not heard.
    fn end(&mut self, name: &str, handle: &Handle) {
        let Some(robot) = self.robots.get_mut(name).filter(|robot| robot.connected) else { return };
        match robot.known.get_mut(handle) {
            Some(known) if !known.has_ended() => known.stopping = true,
            Some(known) => {
                for (place, what) in known.said.iter().enumerate() {
                    self.underway.push((name.to_owned(), handle.clone(), place as u64 + 1, what.clone()));
                }
            }
            None => {
                robot.forgotten.insert(handle.clone());
                self.underway.push((name.to_owned(), handle.clone(), 0, lost("unknown")));
            }
        }
    }

    /// A robot is told to end an attempt, or to forget one that has ended.
    fn delete(&mut self, name: &str, handle: &Handle) {
        let Some(robot) = self.robots.get_mut(name).filter(|robot| robot.connected) else { return };
        match robot.known.get_mut(handle) {
            Some(known) if !known.has_ended() => known.stopping = true,
            Some(_) => {
                robot.known.remove(handle);
                robot.forgotten.insert(handle.clone());
            }
            None => {
                if robot.forgotten.insert(handle.clone()) {
                    self.underway.push((name.to_owned(), handle.clone(), 0, lost("unknown")));
                }
            }
        }
    }

    fn run_some(&mut self, name: &str, dice: &mut Dice, now: Millis) {
        let Some(robot) = self.robots.get_mut(name) else { return };
        for (handle, known) in robot.known.iter_mut().filter(|(_, known)| known.runs) {
            let next = if known.stopping && dice.once_in(3) {
                ended(143, Cause::Stopped, now)
            } else if known.said.len() == 1 && dice.once_in(2) {
                Observation::Started
            } else if known.said.len() > 1 && dice.once_in(6) {
                ended(i32::from(dice.once_in(5)), Cause::Itself, now)
            } else {
                continue;
            };
            known.runs = next == Observation::Started;
            if let Observation::Ended(ending) = &next {
                let exit = ending.containers.first().map(|container| container.exit_code);
                self.recorder.note(What::Ended(program(handle, &place(name)), exit));
            }
            known.said.push(next.clone());
            if robot.connected {
                self.underway.push((name.to_owned(), handle.clone(), known.said.len() as u64, next));
            }
        }
    }

    /// What the bridge makes of what was said: late, doubled, in any order, and lies among it.
    fn deliver(&mut self, dice: &mut Dice, now: Millis) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (name, handle, sequence, what) in std::mem::take(&mut self.underway) {
            if dice.once_in(5) {
                self.underway.insert(0, (name, handle, sequence, what));
                continue;
            }
            if dice.once_in(10) {
                self.underway.push((name.clone(), handle.clone(), sequence, what.clone()));
            }
            if dice.once_in(15) {
                // Another robot claims that it has it, and so does this one of an attempt that never was.
                let liar = if name == "r0" { "r1" } else { "r0" };
                // What a robot says of its own is no lie that anybody could know for one.
                if self.open.get(&handle).is_none_or(|open| open.robot != liar) {
                    self.hear(liar, &handle, 99, ended(0, Cause::Itself, now), now, &mut facts);
                }
                let never = Handle { attempt: handle.attempt + 7, ..handle.clone() };
                self.hear(&name, &never, 99, ended(0, Cause::Itself, now), now, &mut facts);
            }
            self.hear(&name, &handle, sequence, what, now, &mut facts);
        }
        facts
    }

    fn hear(
        &mut self,
        name: &str,
        handle: &Handle,
        sequence: u64,
        what: Observation,
        now: Millis,
        facts: &mut Vec<Fact>,
    ) {
        let Some(open) = self.open.get_mut(handle).filter(|open| open.robot == name) else {
            if !self.left.get(handle).is_some_and(|(_, ended)| *ended) {
                self.delete(name, handle);
            }
            return;
        };
        if sequence != 0 && sequence <= open.heard {
            return;
        }
        open.heard = open.heard.max(sequence);
        if what == Observation::Created {
            return;
        }
        open.ran |= what == Observation::Started;
        if what != Observation::Started {
            self.open.remove(handle);
            if let Some(left) = self.left.get_mut(handle) {
                left.1 = true;
            }
        }
        facts.push(Fact { handle: handle.clone(), at: now, what });
    }

    fn begin(&mut self, launch: &Launch, ran: bool) {
        if self.fate.is_dead() {
            return;
        }
        let Some(robot) = launch.robot.as_ref().map(|robot| robot.robot.clone()) else { return };
        self.left.entry(launch.handle.clone()).or_insert((robot.clone(), false));
        if !self.open.contains_key(&launch.handle) {
            self.open.insert(launch.handle.clone(), Open { robot, ran, stop: false, heard: 0 });
            self.send(&launch.handle);
        }
    }
}

impl Runtime for FakeFleet {
    fn start(&self, launch: Launch) {
        self.0.lock().begin(&launch, false);
    }

    fn adopt(&self, launch: Launch, ran: bool) {
        self.0.lock().begin(&launch, ran);
    }

    fn stop(&self, handle: &Handle, _grace: Duration) {
        let mut inner = self.0.lock();
        if inner.fate.is_dead() {
            return;
        }
        if let Some(open) = inner.open.get_mut(handle) {
            open.stop = true;
            inner.send(handle);
        }
    }

    fn keep_logs(&self, handle: &Handle, _blobs: &dyn Blobs) -> Result<(), FilesError> {
        let inner = self.0.lock();
        if let Some((robot, _)) = inner.left.get(handle) {
            inner.recorder.note(What::Kept(program(handle, &place(robot))));
        }
        Ok(())
    }

    fn remove(&self, handle: &Handle) -> Result<(), FilesError> {
        let mut inner = self.0.lock();
        if inner.fate.is_dead() {
            return Ok(());
        }
        if let Some((robot, _)) = inner.left.remove(handle) {
            inner.open.remove(handle);
            inner.delete(&robot, handle);
        }
        Ok(())
    }

    fn stored(&self) -> Result<Vec<Handle>, FilesError> {
        Ok(self.0.lock().left.keys().cloned().collect())
    }
}

fn place(robot: &str) -> String {
    format!("robot/{robot}")
}

fn lost(why: &str) -> Observation {
    Observation::Lost { reason: EXECUTOR_LOST.to_owned(), message: why.to_owned() }
}

fn ended(exit_code: i32, cause: Cause, at: Millis) -> Observation {
    Observation::Ended(Ending::of_leader(exit_code, cause, at))
}

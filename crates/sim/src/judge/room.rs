//! Nowhere do more programs run than there are slots for, nor such that were promised more memory than there is; and no robot
//! holds more tasks than it takes.

use std::collections::BTreeMap;

use super::history::What;
use super::task::Task;
use super::{Moment, Statement};

pub struct InRoom;

impl Statement for InRoom {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if let What::Started(_) = &moment.entry.what {
            programs_fit(moment, broken);
        }
        let is_new = |task: &&Task| moment.before.is_none_or(|it| it.status.attempt != task.status.attempt);
        if let Some(task) = moment.task.filter(is_new) {
            robots_fit(moment, task, broken);
        }
    }
}

fn programs_fit(moment: &Moment<'_>, broken: &mut Vec<String>) {
    let Some(room) = moment.present.room else { return };
    let mut used: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (program, _, task) in moment.present.reachable_programs() {
        if program.place.starts_with("server/") {
            let (slots, memory) = used.entry(&program.place).or_default();
            *slots += 1;
            *memory += task.memory();
        }
    }
    for (place, (slots, memory)) in used {
        if slots > room.slots {
            broken.push(format!("{slots} programs run in {} slots of {place}", room.slots));
        }
        if room.memory.is_some_and(|most| memory > most) {
            broken.push(format!("{memory} of {:?} bytes were promised on {place}", room.memory));
        }
    }
}

fn robots_fit(moment: &Moment<'_>, task: &Task, broken: &mut Vec<String>) {
    let robot_of = |task: &Task| task.attempt(task.status.attempt).map(|it| it.robot.clone());
    let Some(robot) = robot_of(task).filter(|robot| !robot.is_empty() && task.is_active()) else { return };
    let path = format!("{}/{robot}", task.metadata.namespace);
    let found = moment.present.object("robots.muster.dev", &path);
    let Some(most) = found.and_then(|robot| robot["spec"]["maxTasks"].as_u64()) else { return };
    let held =
        moment.present.open().filter(|task| task.is_active() && robot_of(task).as_ref() == Some(&robot));
    let held = held.count() as u64;
    if held > most {
        broken.push(format!("{robot} was given {held} tasks and takes {most}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::judge::story::Story;

    #[test]
    fn as_many_programs_as_slots_are_as_promised() {
        let mut story = Story::new();
        story.room(2, Some(10)).spec("a", json!({})).spec("b", json!({"resources": {"memory": "10"}}));
        assert!(story.started("a", 1).started("b", 1).broken("room").is_empty());
    }

    #[test]
    fn one_program_too_many_is_found() {
        let mut story = Story::new();
        story.room(1, None).spec("a", json!({})).spec("b", json!({}));
        assert_eq!(story.started("a", 1).started("b", 1).broken("room").len(), 1);
    }

    #[test]
    fn too_much_memory_is_found() {
        let mut story = Story::new();
        let big = || json!({"resources": {"memory": "6"}});
        story.room(9, Some(10)).spec("a", big()).spec("b", big());
        assert_eq!(story.started("a", 1).started("b", 1).broken("room").len(), 1);
    }

    #[test]
    fn a_robot_that_is_given_too_much_is_found() {
        let mut story = Story::new();
        story.object("robots.muster.dev", "d/r1", json!({"spec": {"maxTasks": 1}}));
        let given = || json!({"state": "Pending", "attempt": 1, "attempts": [{"number": 1, "robot": "r1"}]});
        story.status("a", given()).status("b", given());
        assert_eq!(story.broken("room").len(), 1);
    }
}

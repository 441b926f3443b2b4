//! Nowhere do more programs run than there are slots for, nor such that were promised more memory than there is: not on the
//! machine of a server, nor on a robot.

use std::collections::BTreeMap;

use super::history::{Room, What};
use super::present::Present;
use super::{Moment, Statement};

pub struct InRoom;

impl Statement for InRoom {
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>) {
        if !matches!(&moment.entry.what, What::Started(_)) {
            return;
        }
        let mut used: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (program, _, task) in moment.present.reachable_programs() {
            let (slots, memory) = used.entry(&program.place).or_default();
            *slots += 1;
            *memory += task.memory();
        }
        for (place, (slots, memory)) in used {
            let Some(room) = room_of(moment.present, place) else { continue };
            moment.present.compared();
            if slots > room.slots {
                broken.push(format!("{slots} programs run in {} slots of {place}", room.slots));
            }
            if room.memory.is_some_and(|most| memory > most) {
                broken.push(format!("{memory} of {:?} bytes were promised on {place}", room.memory));
            }
        }
    }
}

fn room_of(present: &Present, place: &str) -> Option<Room> {
    let Some(robot) = place.strip_prefix("robot/") else {
        return present.room.filter(|_| place.starts_with("server/"));
    };
    let robot = present.all("robots.muster.dev").find(|it| it["metadata"]["name"] == robot)?;
    Some(Room { slots: robot["spec"]["maxTasks"].as_u64()?, memory: None })
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
    fn a_robot_that_runs_too_much_is_found() {
        let mut story = Story::new();
        let robot = json!({"metadata": {"name": "r1"}, "spec": {"maxTasks": 1}});
        story.object("robots.muster.dev", "d/r1", robot).spec("a", json!({})).spec("b", json!({}));
        story.started_at("a", 1, "robot/r1").started_at("b", 1, "robot/r1");
        assert_eq!(story.broken("room").len(), 1);
    }
}

//! The invariants of a board and of a plan, for tests and simulation.

use muster_types::task::Runtime;

use std::collections::BTreeMap;

use crate::board::{Board, Entry, Phase};
use crate::plan::{Decision, Plan};
use crate::quota::NamespaceId;

impl Board {
    /// Everything that is wrong with the board; nothing, if it is sound.
    pub fn violations(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut rooms = self.rooms;
        for runtime in [Runtime::Process, Runtime::Pod, Runtime::Robot] {
            if !rooms.of(runtime).is_sound() {
                wrong.push(format!("{runtime} holds more than it has room for"));
            }
        }
        let active: Vec<_> = self.entries().filter(|(_, entry)| entry.phase.is_active()).collect();
        if u32::try_from(active.len()).ok() != Some(self.rooms.taken()) {
            wrong.push(format!("{} tasks are active, {} slots are taken", active.len(), self.rooms.taken()));
        }
        let mut pods: BTreeMap<NamespaceId, u32> = BTreeMap::new();
        let holds_slot = |entry: &Entry| !matches!(entry.phase, Phase::Prefetched(_));
        for namespace in active.iter().filter(|(_, it)| holds_slot(it)).filter_map(|(_, it)| it.namespace) {
            *pods.entry(namespace).or_default() += 1;
        }
        let counted: BTreeMap<NamespaceId, u32> =
            self.quotas.counts().filter(|(_, pods)| *pods > 0).collect();
        if counted != pods {
            wrong.push(format!("pods by namespace are {pods:?}, counted are {counted:?}"));
        }
        if self.lanes.len() != self.offered.len() {
            let (lanes, offered) = (self.lanes.len(), self.offered.len());
            wrong.push(format!("{offered} tasks are offered, {lanes} are in lanes"));
        }
        let isolated = active.iter().filter(|(_, entry)| entry.isolated).count();
        if isolated > 0 && active.len() > 1 {
            wrong.push(format!("an isolated task runs beside {} others", active.len() - 1));
        }
        for (index, group) in self.groups.iter().enumerate() {
            if group.active > 1 && group.is_exclusive() {
                wrong.push(format!(
                    "{} tasks of one subject and kind are active: group {index}",
                    group.active
                ));
            }
            if group.offered.is_some_and(|rank| self.offered.get(&rank) != u32::try_from(index).ok().as_ref())
            {
                wrong.push(format!("the offer of group {index} is not on the board"));
            }
            let lane = group.offered.and_then(|rank| self.entry(rank.2)).map(Entry::lane);
            let is_in_lane = |(rank, lane)| self.lanes.contains(lane, rank);
            if group.offered_on != lane || !group.offered.zip(lane).is_none_or(is_in_lane) {
                wrong.push(format!("the offer of group {index} is not in its lane"));
            }
        }
        for (rank, group) in &self.offered {
            let entry = self.entry(rank.2);
            if !entry.is_some_and(|entry| matches!(entry.phase, Phase::Waiting(_)) && entry.group == *group) {
                wrong.push(format!("task {} is offered but does not wait", rank.2));
            }
        }
        wrong
    }

    /// Everything that is wrong with a plan, given the effective priorities of what it preempts.
    pub fn plan_violations(plan: &Plan, priority_of: impl Fn(u128) -> i32) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for decision in &plan.decisions {
            match decision {
                Decision::Start { task, .. } => {
                    if !seen.insert(task.uid) {
                        wrong.push(format!("{} is started twice", task.path));
                    }
                }
                Decision::Preempt { task, by } => {
                    if priority_of(task.uid) >= priority_of(by.uid) {
                        wrong.push(format!(
                            "{} is preempted by {}, which has no higher priority",
                            task.path, by.path
                        ));
                    }
                }
                Decision::Hold { .. } | Decision::Recall { .. } | Decision::TakeBack { .. } => {}
            }
        }
        wrong
    }
}

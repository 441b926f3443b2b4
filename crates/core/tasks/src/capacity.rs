//! Room to run in: slots, cores and memory of each runtime.

use muster_types::Quantity;
use muster_types::task::Runtime;

use crate::quota::{NamespaceId, Quota};
use crate::view::Need;

/// How much a runtime can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Attempts at once.
    pub slots: u32,
    /// Thousandths of a core, if bounded.
    pub cpu_millis: Option<u64>,
    /// Bytes, if bounded.
    pub memory: Option<u64>,
}

/// Why a runtime takes in fewer than it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The quota of the namespace takes in no more pods there.
    Quota,
}

/// What a task takes of the room of its runtime: its need and, if it is a pod, a place in its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// What it needs while it runs.
    pub need: Need,
    /// The namespace in which its pod is created.
    pub namespace: Option<NamespaceId>,
}

/// What a runtime lacks for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lack {
    /// No slot is free.
    pub slots: bool,
    /// Not enough of the cores is free.
    pub cpu: bool,
    /// Not enough memory is free.
    pub memory: bool,
    /// It takes in no more for now.
    pub guard: Option<Guard>,
    /// What is in use, for people.
    pub usage: Usage,
}

/// How much of a runtime is in use, and what a task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Slots in use, and all of them.
    pub slots: (u32, u32),
    /// Thousandths of a core in use, and all of them.
    pub cpu_millis: (u64, u64),
    /// Bytes in use, and all of them.
    pub memory: (u64, u64),
    /// What is asked for.
    pub asked: Need,
}

/// Why a task can never run where it is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The runtime is not configured.
    NoRuntime(Runtime),
    /// It asks for more cpu than there is.
    Cpu {
        /// Thousandths of a core that are asked for, and all of them.
        of: (u64, u64),
    },
    /// It asks for more memory than there is.
    Memory {
        /// Bytes that are asked for, and all of them.
        of: (u64, u64),
    },
}

impl Misfit {
    /// One CamelCase word.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoRuntime(_) => "NoRuntime",
            Self::Cpu { .. } | Self::Memory { .. } => "NeverFits",
        }
    }

    /// The words for people, with what to do.
    pub fn describe(self) -> String {
        match self {
            Self::NoRuntime(Runtime::Pod) => "no cluster for pods is configured; start the server with \
                --cluster-kubeconfig, or submit the task again with spec.runtime process or robot"
                .to_owned(),
            Self::NoRuntime(Runtime::Robot) => "no broker for robots is configured; start the server with \
                --mqtt-listen or --mqtt-url, or submit the task again with spec.runtime process or pod"
                .to_owned(),
            Self::NoRuntime(Runtime::Process) => {
                "the server has no slots for processes; start it with --slots, or submit the task again with spec.runtime pod or robot".to_owned()
            }
            Self::Cpu { of: (asked, all) } => format!(
                "it asks for {} cpu of {}; give the runtime more, or submit the task again with less in spec.resources.cpu",
                Quantity::of_millis(asked),
                Quantity::of_millis(all)
            ),
            Self::Memory { of: (asked, all) } => format!(
                "it asks for {} memory of {}; give the runtime more, or submit the task again with less in spec.resources.memory",
                Quantity::of_bytes(asked),
                Quantity::of_bytes(all)
            ),
        }
    }
}

impl Lack {
    /// True if something is lacking.
    pub fn any(self) -> bool {
        self.slots || self.cpu || self.memory || self.guard.is_some()
    }

    /// True if a task with this need wants any of the slots, cores and memory that are lacking here, or would give some of it back.
    pub fn concerns(self, need: Need) -> bool {
        self.closes() || (self.cpu && need.cpu_millis > 0) || (self.memory && need.memory > 0)
    }

    /// True if no task at all gets in, whatever it needs.
    pub fn closes(self) -> bool {
        self.slots
    }

    fn or(self, other: Self) -> Self {
        Self {
            slots: self.slots || other.slots,
            cpu: self.cpu || other.cpu,
            memory: self.memory || other.memory,
            guard: self.guard.or(other.guard),
            // The later one is for the task that is spoken of.
            usage: other.usage,
        }
    }

    /// One CamelCase word.
    pub fn reason(self) -> &'static str {
        match self.guard {
            Some(Guard::Quota) => "Quota",
            None => "Capacity",
        }
    }

    /// The words for people.
    pub fn describe(self) -> String {
        match self.guard {
            Some(Guard::Quota) => return "a quota refuses more pods".to_owned(),
            None => {}
        }
        let Usage { slots, cpu_millis: cpu, memory, asked } = self.usage;
        let of = |what: &str, asked: Quantity, used: Quantity, all: Quantity| {
            format!("{asked} {what} ({used} of {all} in use)")
        };
        let mut wanted = Vec::new();
        if self.slots {
            wanted.push(match slots {
                (_, 0) => "a free slot".to_owned(),
                (used, all) => format!("a free slot ({used} of {all} in use)"),
            });
        }
        if self.cpu {
            wanted.push(of(
                "cpu",
                Quantity::of_millis(asked.cpu_millis),
                Quantity::of_millis(cpu.0),
                Quantity::of_millis(cpu.1),
            ));
        }
        if self.memory {
            wanted.push(of(
                "memory",
                Quantity::of_bytes(asked.memory),
                Quantity::of_bytes(memory.0),
                Quantity::of_bytes(memory.1),
            ));
        }
        if wanted.is_empty() {
            "there is room".to_owned()
        } else {
            format!("waiting for {}", wanted.join(" and "))
        }
    }
}

/// The room of one runtime while tasks come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    capacity: Capacity,
    /// Attempts now, without those that are prefetched.
    pub taken: u32,
    /// Attempts that wait at the runtime for a slot.
    pub prefetched: u32,
    used: Need,
    /// What tasks of higher priority were refused in this pass.
    refused: Lack,
    /// Attempts that may wait at the runtime for a slot, and the most there ever were.
    prefetch: u32,
    most_prefetch: u32,
    /// The quota of the namespace for which it is asked, if one refused a pod there.
    quota: Option<Quota>,
}

/// The room of every runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rooms([Room; 3]);

impl Rooms {
    /// Rooms with nothing in them, by runtime.
    pub fn new(capacity: impl Fn(Runtime) -> Capacity) -> Self {
        Self([Runtime::Process, Runtime::Pod, Runtime::Robot].map(|runtime| Room {
            capacity: capacity(runtime),
            taken: 0,
            prefetched: 0,
            used: Need::default(),
            refused: Lack::default(),
            prefetch: 0,
            most_prefetch: 0,
            quota: None,
        }))
    }

    /// The room of a runtime.
    pub fn of(&mut self, runtime: Runtime) -> &mut Room {
        &mut self.0[index(runtime)]
    }

    /// A new pass: nobody was refused yet.
    pub fn forget_refusals(&mut self) {
        self.0.iter_mut().for_each(|room| room.refused = Lack::default());
    }

    /// Attempts in all rooms, prefetched ones included: nobody knows of those whether they run already.
    pub fn taken(&self) -> u32 {
        self.0.iter().map(|room| room.taken + room.prefetched).sum()
    }

    /// Changes how much a room holds.
    pub fn resize(&mut self, runtime: Runtime, capacity: Capacity) {
        self.of(runtime).capacity = capacity;
    }

    /// Changes how many attempts may wait at a runtime for a slot.
    pub fn set_prefetch(&mut self, runtime: Runtime, prefetch: u32) {
        let room = self.of(runtime);
        room.prefetch = prefetch;
        room.most_prefetch = room.most_prefetch.max(prefetch);
    }

    /// True if no task at all can start any more in this pass, given for which runtimes some are still to be looked at.
    pub fn all_closed(&self, left: [bool; 3]) -> bool {
        let closed = |room: &Room| room.refused.closes() || room.capacity.slots == 0;
        self.0.iter().zip(left).all(|(room, left)| !left || closed(room))
    }
}

impl Room {
    /// The same room, for pods of one namespace.
    #[must_use]
    pub fn with_quota(self, quota: Option<Quota>) -> Self {
        Self { quota, ..self }
    }

    /// True if a task would give back some of what is lacking here.
    pub fn gives_back(&self, lack: Lack, load: Load) -> bool {
        let namespace = self.quota.map(|quota| quota.namespace);
        lack.concerns(load.need) || lack.guard.is_some() && load.namespace == namespace
    }

    /// True if there is surely a slot that is not in use.
    pub fn has_free_slot(&self) -> bool {
        self.taken + self.prefetched < self.capacity.slots
    }

    /// True if one more attempt may wait here for a slot, and none was refused to a task of higher priority.
    pub fn may_prefetch(&self) -> bool {
        self.prefetched < self.prefetch && !self.refused.closes()
    }

    /// True if attempts may wait here at all, and nothing was refused to a task of higher priority.
    pub fn prefetches(&self) -> bool {
        self.prefetch > 0 && !self.refused.closes()
    }

    /// What is lacking for a task. What was refused to a task of higher priority is lacking for all behind it.
    pub fn ask(&mut self, need: Need) -> Lack {
        let lack = self.lack_for(need);
        self.refused = self.refused.or(lack);
        if self.refused.concerns(need) { self.refused } else { Lack::default() }
    }

    /// No task starts here any more in this pass.
    pub fn close(&mut self) {
        self.refused.slots = true;
    }

    /// What is lacking for a task now, whoever was refused before it.
    pub fn lack_for(&self, need: Need) -> Lack {
        let beyond = |used: u64, more: u64, most: Option<u64>| {
            more > 0 && most.is_some_and(|most| used.saturating_add(more) > most)
        };
        Lack {
            slots: !self.has_free_slot(),
            cpu: beyond(self.used.cpu_millis, need.cpu_millis, self.capacity.cpu_millis),
            memory: beyond(self.used.memory, need.memory, self.capacity.memory),
            guard: self.quota.filter(|quota| quota.is_used_up()).map(|_| Guard::Quota),
            usage: self.usage(need),
        }
    }

    /// How much is in use, and what is asked for.
    pub fn usage(&self, asked: Need) -> Usage {
        let slots = self.capacity.slots;
        Usage {
            slots: (self.taken.saturating_add(self.prefetched).min(slots), slots),
            cpu_millis: (self.used.cpu_millis, self.capacity.cpu_millis.unwrap_or(0)),
            memory: (self.used.memory, self.capacity.memory.unwrap_or(0)),
            asked,
        }
    }

    /// What would be lacking for a task if nothing else were here.
    pub fn lack_when_empty(&self, need: Need) -> Lack {
        Self { taken: 0, prefetched: 0, used: Need::default(), ..*self }.lack_for(need)
    }

    /// Why the task can never fit into the room of this runtime, however empty it is; `None` if it can.
    pub fn misfit(&self, runtime: Runtime, need: Need) -> Option<Misfit> {
        if self.capacity.slots == 0 {
            return Some(Misfit::NoRuntime(runtime));
        }
        let more =
            |wanted: u64, most: Option<u64>| most.filter(|most| wanted > *most).map(|most| (wanted, most));
        let cpu = more(need.cpu_millis, self.capacity.cpu_millis).map(|of| Misfit::Cpu { of });
        cpu.or_else(|| more(need.memory, self.capacity.memory).map(|of| Misfit::Memory { of }))
    }

    /// A task came.
    pub fn enter(&mut self, Load { need, namespace }: Load) {
        self.taken += 1;
        if let Some(quota) = self.quota.as_mut().filter(|quota| Some(quota.namespace) == namespace) {
            quota.pods += 1;
        }
        self.used.cpu_millis = self.used.cpu_millis.saturating_add(need.cpu_millis);
        self.used.memory = self.used.memory.saturating_add(need.memory);
    }

    /// A task went.
    pub fn leave(&mut self, Load { need, namespace }: Load) {
        self.taken = self.taken.saturating_sub(1);
        if let Some(quota) = self.quota.as_mut().filter(|quota| Some(quota.namespace) == namespace) {
            quota.pods = quota.pods.saturating_sub(1);
        }
        self.used.cpu_millis = self.used.cpu_millis.saturating_sub(need.cpu_millis);
        self.used.memory = self.used.memory.saturating_sub(need.memory);
    }

    /// Within its capacity.
    pub fn is_sound(&self) -> bool {
        // One that was prefetched may be seen to run before the end of the one whose slot it got.
        self.taken <= self.capacity.slots.saturating_add(self.most_prefetch)
            && self.capacity.cpu_millis.is_none_or(|most| self.used.cpu_millis <= most)
            && self.capacity.memory.is_none_or(|most| self.used.memory <= most)
    }
}

/// The place of a runtime among all of them.
pub(crate) fn index(runtime: Runtime) -> usize {
    match runtime {
        Runtime::Process => 0,
        Runtime::Pod => 1,
        Runtime::Robot => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(memory: u64) -> Room {
        let capacity = Capacity { slots: 2, cpu_millis: None, memory: Some(memory) };
        let mut rooms = Rooms::new(|_| capacity);
        *rooms.of(Runtime::Process)
    }

    #[test]
    fn what_was_refused_to_one_is_refused_to_those_behind() {
        let mut room = room(10);
        room.enter(Load { need: Need { cpu_millis: 0, memory: 8 }, namespace: None });
        assert!(room.ask(Need { cpu_millis: 0, memory: 5 }).memory);
        assert!(room.ask(Need { cpu_millis: 0, memory: 1 }).memory, "a smaller one may not slip by");
        assert!(!room.ask(Need::default()).any(), "one that needs no memory may");
    }

    #[test]
    fn a_task_larger_than_the_machine_never_fits() {
        let misfit = |memory| room(10).misfit(Runtime::Process, Need { cpu_millis: 0, memory });
        assert_eq!(misfit(11), Some(Misfit::Memory { of: (11, 10) }));
        assert_eq!(misfit(10), None);
    }
}

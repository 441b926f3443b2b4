//! Logs of ended attempts: stored when their time has come, or when something of theirs is to be deleted, and before that happens.

use muster_ports::runtime::Handle;
use muster_ports::store::{Key, Pin, ResourceName};
use muster_tasks::view::parse_uid;
use muster_types::{OwnerReference, Task};
use serde::Deserialize;

use super::Engine;
use crate::files::Order;

/// Owners above a task: its group, and the job of that.
const OWNERS: usize = 2;

/// The owners of any object.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owned {
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

impl Engine {
    /// Keeps a task, its group and its job until the log of an attempt is stored.
    pub(super) fn pin(&self, task: &Task, handle: Handle) -> Pin {
        let mut uids = vec![task.metadata.uid.clone()];
        let mut owner = controller(&task.metadata.owner_references);
        for _ in 0..OWNERS {
            let Some(found) = owner else { break };
            let plural = match found.kind.as_str() {
                "TaskGroup" => "taskgroups",
                "Job" => "jobs",
                _ => break,
            };
            let resource = ResourceName::new(&format!("{plural}.muster.dev"));
            let key = Key::new(&resource, &task.metadata.namespace, &found.name);
            uids.push(found.uid);
            let above = self.outside.store.get(&key).and_then(|stored| stored.metadata::<Owned>());
            owner = controller(&above.unwrap_or_default().owner_references);
        }
        self.outside.store.pins().pin(handle, uids)
    }

    /// Has logs stored whose time has come, and those that were asked for. Tasks that only waited for that are looked at again.
    pub(super) fn store_logs(&mut self, second: i64) {
        self.files.try_again();
        while let Some(pin) = self.due.next_attempt(second) {
            self.retire(pin);
        }
        self.store_asked();
        if self.waits_for_logs.is_empty() || self.looked_at_logs == second {
            return;
        }
        self.looked_at_logs = second;
        let pins = self.outside.store.pins();
        let (due, waits_for_logs) = (&mut self.due, &mut self.waits_for_logs);
        waits_for_logs.retain(|uid, path| {
            let is_pinned = pins.is_pinned(uid);
            if let Some(uid) = parse_uid(uid).filter(|_| !is_pinned) {
                due.set(uid, path, Some(second));
            }
            is_pinned
        });
    }

    /// Has logs stored that something waits for.
    pub(super) fn store_asked(&mut self) {
        for handle in self.outside.store.pins().take_asked() {
            if let Some(pin) = self.due.take_attempt(&handle) {
                self.retire(pin);
            }
        }
    }

    /// When tasks that wait for their logs are looked at again.
    pub(super) fn look_at_logs_at(&self, second: i64) -> Option<i64> {
        (!self.waits_for_logs.is_empty()).then_some(second + 1)
    }

    fn retire(&self, pin: Pin) {
        self.files.order(Order::Retire { handle: pin.handle().clone(), pin });
    }
}

fn controller(owners: &[OwnerReference]) -> Option<OwnerReference> {
    owners.iter().find(|owner| owner.controller == Some(true)).cloned()
}

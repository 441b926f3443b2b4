//! Tasks that name something that does not exist: they wait for it, go on when it appears, and fail when it does not.

use std::sync::Arc;

use muster_ports::clock::Millis;
use muster_ports::store::Key;
use muster_tasks::absent::{Absent, awaited_since};
use muster_tasks::brief::Brief;
use muster_tasks::lifecycle::Refused;
use muster_tasks::plan::Hold;
use muster_tasks::progress;
use muster_tasks::view::{TaskView, parse_uid, state_of};
use muster_types::{State, Task};

use super::Engine;
use crate::catalogs::CatalogNews;
use crate::edits::Edits;

/// Tasks that one cycle fails because what they waited for did not appear.
const FAILED: usize = 256;

impl Engine {
    /// Lets tasks go on that waited for what is there now, or for something that they may find now.
    pub(super) fn follow_news(&mut self) {
        for news in self.catalogs.take_news() {
            let paths = match &news {
                CatalogNews::Appeared(absent) => self.board.appeared(absent),
                CatalogNews::SelectionChanged(namespace) => self.board.selection_changed(namespace),
            };
            for path in paths {
                let key = Key { resource: self.tasks.clone(), path: path.clone() };
                let brief =
                    self.outside.store.get(&key).and_then(|stored| Brief::read(stored.json(), path.clone()));
                if let Some(brief) = brief {
                    self.show(&brief.view);
                }
            }
        }
    }

    /// Says to the board what a task lacks, if it waits.
    pub(super) fn look_for_absent(&mut self, view: &TaskView) {
        let absent = self.catalogs.absent(view, &self.outside.store);
        let now = self.now();
        let since = absent.as_ref().and_then(|absent| self.stored_wait(view, absent));
        self.board.observe_absent(view.uid, absent, since.unwrap_or(now).min(now));
    }

    /// When a task began to wait, under an earlier server: read only if this one does not know.
    fn stored_wait(&self, view: &TaskView, absent: &Absent) -> Option<Millis> {
        if view.state != State::Postponed || self.board.has_patience_for(view.uid, absent) {
            return None;
        }
        awaited_since(&self.fetch(&view.path)?, absent)
    }

    /// Sets a task aside that cannot be started without something that does not exist, or ends it if it has waited for that before.
    pub(super) fn wait_for_absent(
        board: &mut muster_tasks::board::Board,
        wait: i64,
        task: &mut Task,
        absent: &Arc<Absent>,
        now: Millis,
    ) -> Result<(), Refused> {
        let uid = parse_uid(&task.metadata.uid).unwrap_or_default();
        let since = awaited_since(task, absent).map_or(now, |since| since.min(now));
        if board.wait_for(uid, absent, since, now) {
            return progress::write_hold(task, &Hold::Absent { absent: absent.clone(), wait }, now);
        }
        progress::reject(task, absent.reason(), &absent.error(wait), now)
    }

    /// Fails tasks that have waited long enough.
    pub(super) fn apply_absent(&mut self, edits: &mut Edits, now: Millis) {
        let second = now.to_timestamp().as_second();
        for (task, absent) in self.board.take_impatient(second, FAILED) {
            let Some(edit) = edits.edit(&task.path) else {
                self.board.forget(task.uid);
                continue;
            };
            // A kind that nobody here hears of may have appeared in silence.
            let view = TaskView::of(&edit.task, task.path.clone());
            let is_there =
                view.is_some_and(|view| self.catalogs.absent(&view, &self.outside.store).is_none());
            if is_there && !absent.is_of_selection() {
                self.board.appeared(&absent);
                continue;
            }
            let words = absent.error(self.settings.queue.absent_wait);
            if progress::reject(&mut edit.task, absent.reason(), &words, now).is_ok() {
                edit.mark();
            }
            if state_of(&edit.task).is_terminal() {
                self.board.forget(task.uid);
            }
        }
    }
}

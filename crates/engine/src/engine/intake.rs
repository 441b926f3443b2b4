//! Committed changes, taken in: the board, the catalogs and the times are as the store is.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use muster_ports::clock::Millis;
use muster_ports::store::{Change, Stored, Watch, WatchError};
use muster_tasks::brief::Brief;
use muster_tasks::view::TaskView;
use muster_types::{State, Timestamp};
use serde::Deserialize;

use super::leaving::uid_text;
use super::robots::Robots;
use super::{Engine, Uid};
use crate::catalogs::Catalogs;
use crate::files::Order;
use crate::intake::Intake;
use crate::read_briefs::read_briefs;

static RELEASED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"released\""));

impl Intake for Engine {
    fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    fn observe(&mut self, change: &Change) {
        if change.resource == self.robots.resource {
            self.observe_robot(change);
            return;
        }
        if change.resource != self.tasks {
            self.catalogs.observe(change);
            self.readiness.observe(change);
            if change.deleted && change.resource == self.groups {
                self.group_briefs.remove(&change.object.path);
                self.forget_group(&change.object);
            } else if change.resource == self.groups && is_released_now(change) {
                self.forget_group(&change.object);
            }
            return;
        }
        let path = &change.object.path;
        if self.own.get(path) == Some(&change.object.revision) {
            self.own.remove(path);
            return;
        }
        let Some(brief) = Brief::read(change.object.json(), path.clone()) else {
            tracing::error!(path = &**path, "a stored task cannot be read; it is left alone");
            return;
        };
        if change.deleted {
            self.vanish(&brief);
            return;
        }
        self.admit(&brief);
        if brief.view.prefetched {
            // Its rank, or what it runs, may be another now.
            self.recall(brief.view.uid);
        }
        if brief.life.released && brief.view.state.is_terminal() && is_released_now(change) {
            let (task, attempts) = (uid_text(brief.view.uid), brief.attempts);
            self.files.order(Order::Forget { task, attempts });
        }
    }

    fn start_over(&mut self) -> Result<(), WatchError> {
        let before = std::mem::take(&mut self.attempts);
        (self.board, self.watch) = Self::empty(&self.settings, &self.outside.store)?;
        if self.leaves {
            self.board.close();
        }
        self.catalogs = Catalogs::default();
        self.robots = Robots::default();
        self.own.clear();
        self.read_all();
        self.keep_places(before);
        self.forget_left();
        self.lose_absent();
        Ok(())
    }
}

impl Engine {
    /// Takes in everything that was committed, and what kinds say of it.
    pub(super) fn index(&mut self) -> Result<(), WatchError> {
        self.take_in()?;
        self.refresh_kinds();
        self.follow_news();
        Ok(())
    }

    /// Takes in what kinds say. True if that is of consequence for tasks that were taken in before.
    pub(super) fn take_kinds(&mut self) -> bool {
        let gone = self.catalogs.take_kind_gone();
        let changed = self.catalogs.changed_kinds();
        changed.is_some_and(|(graph, priorities, strict)| self.board.set_kinds(graph, priorities, strict))
            || gone
    }

    /// Takes in what kinds say, and tasks once more where that is of consequence for them.
    pub(super) fn refresh_kinds(&mut self) {
        if !self.take_kinds() {
            return;
        }
        let stored = self.outside.store.snapshot(&self.tasks);
        read_briefs(stored.range(None, None), |brief| {
            if !brief.view.kind.is_empty() {
                self.show(&brief.view);
            }
        });
    }

    /// A group is gone, and so is the bucket that its members shared.
    fn forget_group(&self, stored: &Stored) {
        if let Some(Uid { uid }) = stored.metadata() {
            self.files.order(Order::Forget { task: uid, attempts: 0 });
        }
    }

    /// Takes in a task as it is stored.
    pub(super) fn admit(&mut self, brief: &Brief) {
        self.settle(brief);
        let wants_end = brief.cancel || brief.deleting;
        let is_over = brief.view.state.is_terminal();
        // Whoever lets a task go also records that it is Ready; a server of an older version does not.
        let is_let_go = brief.view.state == State::Created && !brief.suspended;
        if is_let_go || (wants_end && !is_over && !brief.ending) || (brief.deleting && is_over && brief.held)
        {
            self.asked.insert(brief.view.path.clone());
        }
    }

    /// Puts a task on the board as it is, and sees to its time.
    pub(super) fn settle(&mut self, brief: &Brief) {
        self.show(&brief.view);
        if brief.has_attempt() {
            self.attempts.insert(brief.view.uid, brief.clone());
        } else {
            self.attempts.remove(&brief.view.uid);
        }
        let at = brief.life.due(&self.settings.reap).map(|(at, _)| at);
        self.due.set(brief.view.uid, &brief.view.path, at);
    }

    /// Puts a task on the board as it is, unless it waits and is not for this engine to start.
    pub(super) fn show(&mut self, view: &TaskView) {
        let corrected = view.not_ahead_of(self.now().to_timestamp().as_second());
        let view = corrected.as_ref().unwrap_or(view);
        let waits = matches!(view.state, State::Ready | State::Postponed | State::QuotaBlocked);
        let made = Millis(i64::try_from(view.uid >> 80).unwrap_or(i64::MAX));
        if waits && self.settings.only_since.is_some_and(|since| made < since) {
            self.board.forget(view.uid);
        } else {
            self.board.observe(view);
            if waits {
                self.look_for_absent(view);
            }
        }
        self.robots.show(view);
    }
}

/// True if this change says that files were let go, of a task or of a group.
fn is_released_now(change: &Change) -> bool {
    let is_released = |stored: &Stored| {
        RELEASED.find(stored.json()).is_some()
            && serde_json::from_slice::<Releasable>(stored.json())
                .is_ok_and(|it| it.status.released.is_some())
    };
    is_released(&change.object) && !change.previous.as_ref().is_some_and(is_released)
}

/// What of an object says whether its files were let go.
#[derive(Deserialize)]
pub(super) struct Releasable {
    #[serde(default)]
    pub status: ReleasableStatus,
}

#[derive(Deserialize, Default)]
pub(super) struct ReleasableStatus {
    pub released: Option<Timestamp>,
}

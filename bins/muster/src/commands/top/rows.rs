//! All tasks in brief, in the order in which they are shown.

use std::collections::{BTreeMap, HashMap};

use muster_types::State;

use super::row::{Id, Row};

/// A part of the tasks that is shown together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// What has an attempt.
    Running,
    /// What has none yet.
    Waiting,
    /// What went wrong.
    Failed,
    /// What else has ended.
    Done,
}

impl Section {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Waiting, Self::Failed, Self::Done];

    /// Where a task of this state is shown.
    pub fn of(state: State) -> Self {
        match state {
            State::Pending | State::Running => Self::Running,
            State::Created | State::Ready | State::Postponed | State::QuotaBlocked => Self::Waiting,
            State::Failed => Self::Failed,
            State::Succeeded | State::Canceled => Self::Done,
        }
    }
}

/// All tasks.
#[derive(Debug, Default)]
pub struct Rows {
    sections: [BTreeMap<(Place, Id), Kept>; Section::ALL.len()],
    /// Where each of them is.
    index: HashMap<Id, (Section, Place)>,
    counts: [usize; State::ALL.len()],
    listing: u64,
    ended: u64,
    failed: u64,
}

/// What comes first: less of the first number, then less of the second.
type Place = (i64, i64);

#[derive(Debug)]
struct Kept {
    row: Row,
    /// The listing in which it was last seen.
    listing: u64,
}

impl Rows {
    /// Says that all tasks there are will be put in again.
    pub fn begin_listing(&mut self) {
        self.listing += 1;
    }

    /// Says that all were put in: those that were not are gone.
    pub fn end_listing(&mut self) {
        let all = self.sections.iter().flat_map(BTreeMap::values);
        let gone = all.filter(|kept| kept.listing < self.listing);
        let gone: Vec<Id> = gone.map(|kept| kept.row.id.clone()).collect();
        for id in gone {
            self.remove(&id);
        }
    }

    /// Puts a task in as it is now.
    pub fn put(&mut self, row: Row) {
        let before = self.remove(&row.id);
        if before.is_some_and(|before| !before.is_terminal()) && row.state.is_terminal() {
            self.ended += 1;
            self.failed += u64::from(row.state == State::Failed);
        }
        self.counts[row.state as usize] += 1;
        let (section, place) = (Section::of(row.state), place(&row));
        self.index.insert(row.id.clone(), (section, place));
        let kept = Kept { listing: self.listing, row };
        self.sections[section as usize].insert((place, kept.row.id.clone()), kept);
    }

    /// Takes a task out; the state it was in.
    pub fn remove(&mut self, id: &Id) -> Option<State> {
        let (section, place) = self.index.remove(id)?;
        let Kept { row, .. } = self.sections[section as usize].remove(&(place, id.clone()))?;
        self.counts[row.state as usize] -= 1;
        Some(row.state)
    }

    /// One task.
    pub fn get(&self, id: &Id) -> Option<&Row> {
        let (section, place) = self.index.get(id)?;
        self.sections[*section as usize].get(&(*place, id.clone())).map(|kept| &kept.row)
    }

    /// The tasks of a section, in order.
    pub fn of(&self, section: Section) -> impl Iterator<Item = &Row> + Clone {
        self.sections[section as usize].values().map(|kept| &kept.row)
    }

    /// How many tasks a section has.
    pub fn len_of(&self, section: Section) -> usize {
        self.sections[section as usize].len()
    }

    /// How many tasks are in a state.
    pub fn count(&self, state: State) -> usize {
        self.counts[state as usize]
    }

    /// How many tasks were seen to end, and how many of those to fail.
    pub fn ends(&self) -> (u64, u64) {
        (self.ended, self.failed)
    }
}

fn place(row: &Row) -> Place {
    let since = row.since.as_second();
    match Section::of(row.state) {
        // What has run longest stays where it is when others come.
        Section::Running => (i64::from(row.state == State::Pending), since),
        // As they will be started, more or less.
        Section::Waiting => (-row.priority, since),
        // The latest first.
        Section::Failed | Section::Done => (-since, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    fn names(rows: &Rows, section: Section) -> Vec<&str> {
        rows.of(section).map(|row| &*row.id.name).collect()
    }

    #[test]
    fn tasks_are_in_the_order_in_which_they_matter() {
        let mut rows = Rows::default();
        for (name, state, since) in [
            ("old", State::Running, 1),
            ("soon", State::Pending, 0),
            ("new", State::Running, 9),
            ("first", State::Ready, 5),
            ("second", State::Postponed, 6),
            ("before", State::Failed, 3),
            ("just-now", State::Failed, 8),
            ("fine", State::Succeeded, 4),
        ] {
            rows.put(row(name, state, since));
        }
        rows.put(Row { priority: 9, ..row("important", State::Created, 7) });
        assert_eq!(names(&rows, Section::Running), ["old", "new", "soon"]);
        assert_eq!(names(&rows, Section::Waiting), ["important", "first", "second"]);
        assert_eq!(names(&rows, Section::Failed), ["just-now", "before"]);
        assert_eq!(names(&rows, Section::Done), ["fine"]);
    }

    #[test]
    fn a_task_that_changes_moves_and_is_counted_once() {
        let mut rows = Rows::default();
        rows.put(row("a", State::Running, 1));
        rows.put(row("a", State::Failed, 2));
        assert_eq!((rows.len_of(Section::Running), rows.len_of(Section::Failed)), (0, 1));
        assert_eq!((rows.count(State::Running), rows.count(State::Failed)), (0, 1));
        assert_eq!(rows.ends(), (1, 1));
        rows.put(row("a", State::Failed, 2));
        rows.put(row("b", State::Succeeded, 2));
        assert_eq!(rows.ends(), (1, 1), "what had ended before does not end now");
    }

    #[test]
    fn what_a_listing_does_not_show_is_gone() {
        let mut rows = Rows::default();
        rows.put(row("a", State::Ready, 1));
        rows.put(row("b", State::Ready, 2));
        rows.begin_listing();
        rows.put(row("b", State::Ready, 2));
        rows.put(row("c", State::Ready, 3));
        rows.end_listing();
        assert_eq!(names(&rows, Section::Waiting), ["b", "c"]);
        assert_eq!(rows.count(State::Ready), 2);
    }

    #[test]
    fn a_hundred_thousand_tasks_are_counted_and_ordered() {
        let mut rows = Rows::default();
        for number in 0..100_000 {
            rows.put(row(&format!("task-{number}"), State::Ready, number));
        }
        assert_eq!(rows.count(State::Ready), 100_000);
        assert_eq!(
            rows.of(Section::Waiting).take(2).map(|row| &*row.id.name).collect::<Vec<_>>(),
            ["task-0", "task-1"]
        );
    }
}

//! The lists of the first screen: which has the keys, and what is chosen in each.

use super::filter::Filter;
use super::key::Step;
use super::robot::Robot;
use super::row::{Id, Row};
use super::rows::{Rows, Section};

/// A list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// Tasks.
    Tasks(Section),
    /// Robots, where the server knows them.
    Robots,
}

impl Panel {
    /// All of them, from top to bottom.
    pub const ALL: [Self; 5] = [
        Self::Tasks(Section::Running),
        Self::Tasks(Section::Waiting),
        Self::Tasks(Section::Failed),
        Self::Tasks(Section::Done),
        Self::Robots,
    ];

    fn index(self) -> usize {
        match self {
            Self::Tasks(section) => section as usize,
            Self::Robots => Section::ALL.len(),
        }
    }
}

/// Which list has the keys, and which line of each is chosen.
#[derive(Debug)]
pub struct Panels {
    /// The list that has the keys.
    pub focus: Panel,
    chosen: [Choice; Panel::ALL.len()],
}

/// A line that is chosen. If it is gone, the one that took its place is.
#[derive(Debug, Clone, Default)]
struct Choice {
    id: Option<Id>,
    place: usize,
}

/// What a list shows.
#[derive(Debug)]
pub struct Window<T> {
    /// The lines.
    pub items: Vec<T>,
    /// Which of them is chosen.
    pub chosen: Option<usize>,
    /// How many there are with those that are not seen.
    pub matching: usize,
}

impl Default for Panels {
    fn default() -> Self {
        Self { focus: Panel::Tasks(Section::Running), chosen: Default::default() }
    }
}

impl Panels {
    /// Gives the keys to the next list, or to the one before.
    pub fn turn(&mut self, back: bool, with_robots: bool) {
        let count = if with_robots { Panel::ALL.len() } else { Section::ALL.len() };
        let next = (self.focus.index() + if back { count - 1 } else { 1 }) % count;
        self.focus = Panel::ALL[next];
    }

    /// Moves the choice in a list.
    pub fn step<'a>(&mut self, step: Step, panel: Panel, ids: impl Iterator<Item = &'a Id>) {
        let ids: Vec<&Id> = ids.collect();
        let place = self.place(panel, ids.iter().copied());
        let (Some(place), Some(last)) = (place, ids.len().checked_sub(1)) else { return };
        let place = step.from(place, last);
        self.chosen[panel.index()] = Choice { id: ids.get(place).map(|id| (*id).clone()), place };
    }

    /// What a list of so many lines shows: a page of it, the one with the chosen line. Of a long list no more is looked at than
    /// must be; `matching` is how many there are, where that is known.
    pub fn window<'a, T>(
        &self,
        panel: Panel,
        items: impl Iterator<Item = T> + Clone,
        id: impl Fn(T) -> &'a Id,
        height: usize,
        matching: Option<usize>,
    ) -> Window<T> {
        let matching = matching.unwrap_or_else(|| items.clone().count());
        let place = self.place(panel, items.clone().map(id));
        let height = height.max(1);
        let first = place.map_or(0, |place| place / height * height);
        let chosen = place.map(|place| place - first);
        Window { chosen, matching, items: items.skip(first).take(height).collect() }
    }

    /// Where the chosen line of a list is; nothing if the list is empty.
    fn place<'a>(&self, panel: Panel, mut ids: impl Iterator<Item = &'a Id>) -> Option<usize> {
        let choice = &self.chosen[panel.index()];
        if choice.id.is_none() {
            return ids.next().map(|_| 0);
        }
        let mut count = 0;
        for (at, id) in ids.enumerate() {
            if choice.id.as_ref() == Some(id) {
                return Some(at);
            }
            count = at + 1;
        }
        let last = usize::checked_sub(count, 1)?;
        Some(choice.place.min(last))
    }
}

/// The tasks of a section that fit a filter.
pub fn matching<'a>(
    rows: &'a Rows,
    section: Section,
    filter: &'a Filter,
) -> impl Iterator<Item = &'a Row> + Clone {
    rows.of(section).filter(|row| filter.fits(row))
}

/// The robots that fit a filter.
pub fn matching_robots<'a>(
    robots: impl Iterator<Item = &'a Robot> + Clone,
    filter: &'a Filter,
) -> impl Iterator<Item = &'a Robot> + Clone {
    robots.filter(|robot| filter.fits_name(&robot.id.name))
}

#[cfg(test)]
mod tests {
    use muster_types::State;

    use super::super::row::tests::row;
    use super::*;

    const RUNNING: Panel = Panel::Tasks(Section::Running);

    fn window(panels: &Panels, rows: &Rows, height: usize) -> (Vec<String>, Option<usize>) {
        let window = panels.window(RUNNING, rows.of(Section::Running), |row| &row.id, height, None);
        (window.items.iter().map(|row| row.id.name.to_string()).collect(), window.chosen)
    }

    fn step(panels: &mut Panels, rows: &Rows, step: Step) {
        panels.step(step, RUNNING, rows.of(Section::Running).map(|row| &row.id));
    }

    fn rows(names: &[&str]) -> Rows {
        let mut rows = Rows::default();
        for (at, name) in (0..).zip(names) {
            rows.put(row(name, State::Running, at));
        }
        rows
    }

    #[test]
    fn the_choice_stays_on_its_task_when_others_come_and_go() {
        let (mut panels, mut rows) = (Panels::default(), rows(&["a", "b", "c"]));
        step(&mut panels, &rows, Step::On(1));
        assert_eq!(window(&panels, &rows, 9).1, Some(1));
        rows.remove(&row("a", State::Running, 0).id);
        assert_eq!(window(&panels, &rows, 9), (vec!["b".to_owned(), "c".to_owned()], Some(0)));
        rows.remove(&row("b", State::Running, 1).id);
        assert_eq!(window(&panels, &rows, 9).1, Some(0), "the last takes the place of one that is gone");
        rows.remove(&row("c", State::Running, 2).id);
        assert_eq!(window(&panels, &rows, 9), (vec![], None));
    }

    #[test]
    fn a_list_is_shown_page_by_page() {
        let (mut panels, rows) = (Panels::default(), rows(&["a", "b", "c", "d", "e"]));
        step(&mut panels, &rows, Step::On(3));
        assert_eq!(window(&panels, &rows, 2), (vec!["c".to_owned(), "d".to_owned()], Some(1)));
        step(&mut panels, &rows, Step::Last);
        assert_eq!(window(&panels, &rows, 2), (vec!["e".to_owned()], Some(0)));
    }

    #[test]
    fn the_keys_go_round_and_pass_robots_over_where_there_are_none() {
        let mut panels = Panels::default();
        panels.turn(true, false);
        assert_eq!(panels.focus, Panel::Tasks(Section::Done));
        panels.turn(false, true);
        assert_eq!(panels.focus, Panel::Robots);
        panels.turn(false, true);
        assert_eq!(panels.focus, RUNNING);
    }
}

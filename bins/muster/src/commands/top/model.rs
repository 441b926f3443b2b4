//! The state of the dashboard: events go in, effects come out. No clock, no terminal, no server.
//!
//! There are three screens on top of each other: the lists, one task, one log. What is asked (a question, a filter that is
//! being typed, the help) takes the keys first.

use std::collections::BTreeMap;

use muster_types::Timestamp;

use super::detail::{self, DetailLine};
use super::event::{Effect, Event, Looked};
use super::filter::Filter;
use super::history::History;
use super::key::{Key, Step};
use super::log_view::LogView;
use super::panels::{Panel, Panels, Window, matching, matching_robots};
use super::robot::Robot;
use super::row::{Id, Row};
use super::rows::{Rows, Section};
use crate::output::table::plain;

/// Longest filter.
const FILTER: usize = 200;
/// Seconds that a message stays.
const NOTICE: i64 = 8;
/// Lines of the screens of a task and of a log that are not theirs.
const FRAME: u16 = 3;

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// What there is, is being read.
    Listing,
    /// Every change is seen.
    Live,
    /// It does not answer, for this reason.
    Lost(String),
}

/// One task in full.
#[derive(Debug)]
pub struct TaskView {
    /// Which one.
    pub id: Id,
    /// What was seen of it.
    pub seen: Option<Box<Looked>>,
    /// Why it cannot be seen.
    pub trouble: Option<String>,
    /// The first line that is shown.
    pub top: usize,
    asked: bool,
    stale: bool,
}

/// A message at the bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it says.
    pub words: String,
    /// Something did not work.
    pub is_bad: bool,
    until: i64,
}

/// What is asked before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asking {
    /// Nothing.
    Nothing,
    /// The text of a filter, as far as it is typed.
    Filter(String),
    /// Whether a task is to be canceled.
    Cancel(Id),
    /// Whether the keys were read.
    Help,
}

/// The dashboard.
pub struct Model {
    /// The server, as people know it.
    pub server: String,
    /// Whose tasks: a namespace, or nothing for all.
    pub namespace: Option<String>,
    /// How late it is.
    pub now: Timestamp,
    /// Columns and lines of the terminal.
    pub size: (u16, u16),
    /// How the server is reached.
    pub link: Link,
    /// All tasks.
    pub rows: Rows,
    /// All robots; nothing if the server knows none.
    pub robots: Option<BTreeMap<Id, Robot>>,
    /// How it was.
    pub history: History,
    /// The lists.
    pub panels: Panels,
    /// Which tasks are shown in them.
    pub filter: Filter,
    /// What has the keys.
    pub asking: Asking,
    /// A message.
    pub notice: Option<Notice>,
    /// The task that is open.
    pub task: Option<TaskView>,
    /// The log that is open.
    pub log: Option<LogView>,
    tickets: u64,
}

impl Model {
    /// A dashboard that has seen nothing.
    pub fn new(server: String, namespace: Option<String>, now: Timestamp) -> Self {
        Self {
            server,
            namespace,
            now,
            size: (80, 24),
            link: Link::Listing,
            rows: Rows::default(),
            robots: None,
            history: History::default(),
            panels: Panels::default(),
            filter: Filter::default(),
            asking: Asking::Nothing,
            notice: None,
            task: None,
            log: None,
            tickets: 0,
        }
    }

    /// Takes an event in.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => return self.press(key),
            Event::NoInput => return vec![Effect::Quit],
            Event::Size(columns, lines) => self.size = (columns, lines),
            Event::Time(now) => return self.look_at_clock(now),
            Event::Listing => {
                self.rows.begin_listing();
                self.link = Link::Listing;
            }
            Event::Listed => {
                self.rows.end_listing();
                self.link = Link::Live;
            }
            Event::Tasks(rows) => {
                for row in rows {
                    self.touch(&row.id);
                    self.rows.put(row);
                }
            }
            Event::Gone(id) => {
                self.touch(&id);
                self.rows.remove(&id);
            }
            Event::Lost(words) => self.link = Link::Lost(plain(&words)),
            Event::Back => self.link = Link::Live,
            Event::ListingRobots => self.robots = Some(BTreeMap::new()),
            Event::Robots(robots) => {
                let known = self.robots.get_or_insert_default();
                known.extend(robots.into_iter().map(|robot| (robot.id.clone(), robot)));
            }
            Event::RobotGone(id) => drop(self.robots.as_mut().and_then(|robots| robots.remove(&id))),
            Event::Looked(id, looked) => self.show(&id, looked),
            Event::LogPart(ticket, part) => self.log_of(ticket).into_iter().for_each(|log| log.put(&part)),
            Event::LogNote(ticket, words) => self.log_of(ticket).into_iter().for_each(|log| log.note(&words)),
            Event::LogEnd(ticket) => self.log_of(ticket).into_iter().for_each(|log| log.ended = true),
            Event::Done(Ok(words)) => self.say(&words, false),
            Event::Done(Err(words)) => self.say(&words, true),
        }
        Vec::new()
    }

    /// What the list of a section shows.
    pub fn tasks(&self, section: Section, height: usize) -> Window<&Row> {
        let rows = matching(&self.rows, section, &self.filter);
        let all = self.filter.is_empty().then(|| self.rows.len_of(section));
        self.panels.window(Panel::Tasks(section), rows, |row| &row.id, height, all)
    }

    /// What the list of robots shows.
    pub fn robots(&self, height: usize) -> Window<&Robot> {
        let robots = matching_robots(self.robots.iter().flat_map(BTreeMap::values), &self.filter);
        self.panels.window(Panel::Robots, robots, |robot| &robot.id, height, None)
    }

    /// The lines of the task that is open.
    pub fn task_lines(&self) -> Vec<DetailLine> {
        let Some(seen) = self.task.as_ref().and_then(|task| task.seen.as_ref()) else { return Vec::new() };
        detail::describe(&seen.task, seen.why.as_ref(), self.now, usize::from(self.size.0))
    }

    /// Lines of a task or log that fit on the screen.
    pub fn page(&self) -> usize {
        usize::from(self.size.1.saturating_sub(FRAME)).max(1)
    }

    fn press(&mut self, key: Key) -> Vec<Effect> {
        if key == Key::Interrupt {
            return vec![Effect::Quit];
        }
        match std::mem::replace(&mut self.asking, Asking::Nothing) {
            Asking::Help => return Vec::new(),
            Asking::Cancel(id) => {
                if matches!(key, Key::Char('y' | 'Y')) {
                    return vec![Effect::Cancel(id)];
                }
                self.say(&format!("{} was left as it is", id.name), false);
                return Vec::new();
            }
            Asking::Filter(text) => {
                self.type_filter(text, key);
                return Vec::new();
            }
            Asking::Nothing => self.notice = None,
        }
        match key {
            Key::Char('?') => self.asking = Asking::Help,
            Key::Escape | Key::Char('q') => return self.go_back(key),
            Key::Char('c') => return self.ask_cancel(),
            Key::Char('r') => return self.current().map(Effect::Retry).into_iter().collect(),
            _ if self.log.is_some() => return self.press_in_log(key),
            Key::Char('l') => return self.open_log(None),
            _ if self.task.is_some() => self.press_in_task(key),
            _ => return self.press_in_lists(key),
        }
        Vec::new()
    }

    fn press_in_lists(&mut self, key: Key) -> Vec<Effect> {
        let panel = self.panels.focus;
        match key {
            Key::Tab | Key::Right => self.panels.turn(false, self.robots.is_some()),
            Key::BackTab | Key::Left => self.panels.turn(true, self.robots.is_some()),
            Key::Char('/') => self.asking = Asking::Filter(self.filter.text().to_owned()),
            Key::Enter => return self.open_task(),
            _ => {
                let Some(step) = Step::of(key, self.page() / 2) else { return Vec::new() };
                match panel {
                    Panel::Tasks(section) => {
                        let ids = matching(&self.rows, section, &self.filter).map(|row| &row.id);
                        self.panels.step(step, panel, ids);
                    }
                    Panel::Robots => {
                        let robots = self.robots.iter().flat_map(BTreeMap::values);
                        let ids = matching_robots(robots, &self.filter).map(|robot| &robot.id);
                        self.panels.step(step, panel, ids);
                    }
                }
            }
        }
        Vec::new()
    }

    fn press_in_task(&mut self, key: Key) {
        let (page, lines) = (self.page(), self.task_lines().len());
        if let (Some(step), Some(task)) = (Step::of(key, page), &mut self.task) {
            task.top = step.from(task.top, lines.saturating_sub(page));
        }
    }

    fn press_in_log(&mut self, key: Key) -> Vec<Effect> {
        let page = self.page();
        let Some(log) = &mut self.log else { return Vec::new() };
        if matches!(key, Key::Tab | Key::BackTab) {
            let Some(next) = log.next_container(key == Key::BackTab) else { return Vec::new() };
            // The leading one is asked for without a name, which may not be known yet.
            let name = (next > 0).then(|| log.containers[next].clone());
            return self.open_log(name);
        }
        log.step(key, page);
        Vec::new()
    }

    fn type_filter(&mut self, mut text: String, key: Key) {
        match key {
            Key::Enter => return,
            Key::Escape => text.clear(),
            Key::Backspace => drop(text.pop()),
            Key::Char(letter) if text.chars().count() < FILTER => text.push(letter),
            _ => {}
        }
        // What fits is seen while it is typed.
        self.filter = Filter::parse(&text);
        if key != Key::Escape {
            self.asking = Asking::Filter(text);
        }
    }

    fn go_back(&mut self, key: Key) -> Vec<Effect> {
        if self.log.take().is_some() {
            return vec![Effect::Unfollow];
        }
        if self.task.take().is_some() {
            return Vec::new();
        }
        if key == Key::Char('q') {
            return vec![Effect::Quit];
        }
        if self.filter.is_empty() {
            self.say("q quits", false);
        }
        self.filter = Filter::default();
        Vec::new()
    }

    /// The task that keys are about.
    fn current(&self) -> Option<Id> {
        if let Some(log) = &self.log {
            return Some(log.id.clone());
        }
        if let Some(task) = &self.task {
            return Some(task.id.clone());
        }
        let Panel::Tasks(section) = self.panels.focus else { return None };
        let window = self.tasks(section, 1);
        window.items.first().map(|row| row.id.clone())
    }

    fn ask_cancel(&mut self) -> Vec<Effect> {
        let Some(id) = self.current() else { return Vec::new() };
        match self.rows.get(&id) {
            Some(row) if row.state.is_terminal() => {
                self.say(&format!("{} has ended as {}", id.name, row.state), true);
            }
            _ => self.asking = Asking::Cancel(id),
        }
        Vec::new()
    }

    fn open_task(&mut self) -> Vec<Effect> {
        let Some(id) = self.current() else { return Vec::new() };
        self.task =
            Some(TaskView { id: id.clone(), seen: None, trouble: None, top: 0, asked: true, stale: false });
        vec![Effect::Look(id)]
    }

    fn open_log(&mut self, container: Option<String>) -> Vec<Effect> {
        let Some(id) = self.current() else { return Vec::new() };
        let known = self.log.take().map(|log| log.containers);
        let seen = self.task.as_ref().and_then(|task| task.seen.as_ref());
        let containers = known.or_else(|| seen.map(|seen| detail::containers(&seen.task)));
        let ask = containers.is_none().then(|| Effect::Look(id.clone()));
        self.tickets += 1;
        let ticket = self.tickets;
        self.log = Some(LogView::new(id.clone(), container.clone(), containers.unwrap_or_default(), ticket));
        ask.into_iter().chain([Effect::Follow { id, container, ticket }]).collect()
    }

    fn log_of(&mut self, ticket: u64) -> Option<&mut LogView> {
        self.log.as_mut().filter(|log| log.ticket == ticket)
    }

    /// Remembers that the open task is no longer as it was seen.
    fn touch(&mut self, id: &Id) {
        if let Some(task) = self.task.as_mut().filter(|task| task.id == *id) {
            task.stale = true;
        }
    }

    fn look_at_clock(&mut self, now: Timestamp) -> Vec<Effect> {
        self.now = now;
        if self.link == Link::Live {
            self.history.observe(now.as_second(), &self.rows);
        }
        if self.notice.as_ref().is_some_and(|notice| notice.until <= now.as_second()) {
            self.notice = None;
        }
        match &mut self.task {
            // One request at a time, and no more than the clock is looked at.
            Some(task) if task.stale && !task.asked => {
                (task.stale, task.asked) = (false, true);
                vec![Effect::Look(task.id.clone())]
            }
            _ => Vec::new(),
        }
    }

    fn show(&mut self, id: &Id, looked: Result<Box<Looked>, String>) {
        if let (Ok(looked), Some(log)) = (&looked, self.log.as_mut().filter(|log| log.id == *id)) {
            log.containers = detail::containers(&looked.task);
        }
        let Some(task) = self.task.as_mut().filter(|task| task.id == *id) else { return };
        task.asked = false;
        match looked {
            Ok(looked) => (task.seen, task.trouble) = (Some(looked), None),
            Err(words) => task.trouble = Some(plain(&words)),
        }
    }

    fn say(&mut self, words: &str, is_bad: bool) {
        self.notice = Some(Notice { words: plain(words), is_bad, until: self.now.as_second() + NOTICE });
    }
}

#[cfg(test)]
mod tests;

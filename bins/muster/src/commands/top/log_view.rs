//! The log of a task, as much of it as somebody may scroll through.

use std::collections::VecDeque;

use super::key::{Key, Step};
use super::row::Id;
use crate::output::table::plain;

/// Lines that are kept.
const LINES: usize = 10_000;
/// Longest line in bytes; a longer one becomes several.
const LINE: usize = 4096;
/// Columns that a key moves sideways.
const SHIFT: usize = 20;
/// Blanks for a tabulator.
const TAB: &str = "    ";

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Its text, harmless on a terminal.
    pub text: String,
    /// It is not from the task but about the log.
    pub is_note: bool,
}

/// A log that is being looked at.
#[derive(Debug)]
pub struct LogView {
    /// Whose.
    pub id: Id,
    /// Of which container; none is the leading one.
    pub container: Option<String>,
    /// The containers there are, the leading one first.
    pub containers: Vec<String>,
    /// Which of all that were opened this is.
    pub ticket: u64,
    /// Columns that are left out at the left.
    pub shift: usize,
    /// Nothing more will come.
    pub ended: bool,
    lines: VecDeque<LogLine>,
    /// What came behind the end of the last line.
    rest: Vec<u8>,
    /// Lines below what is shown; 0 follows the end.
    below: usize,
}

impl LogView {
    /// A log of which nothing was seen.
    pub fn new(id: Id, container: Option<String>, containers: Vec<String>, ticket: u64) -> Self {
        Self {
            id,
            container,
            containers,
            ticket,
            shift: 0,
            ended: false,
            lines: VecDeque::new(),
            rest: Vec::new(),
            below: 0,
        }
    }

    /// Takes the next part of the log.
    pub fn put(&mut self, part: &[u8]) {
        for byte in part {
            if *byte == b'\n' || self.rest.len() >= LINE {
                let line = harmless(&std::mem::take(&mut self.rest));
                self.push(LogLine { text: line, is_note: false });
            }
            if *byte != b'\n' {
                self.rest.push(*byte);
            }
        }
    }

    /// Takes a remark about the log.
    pub fn note(&mut self, words: &str) {
        if !self.rest.is_empty() {
            let line = harmless(&std::mem::take(&mut self.rest));
            self.push(LogLine { text: line, is_note: false });
        }
        self.push(LogLine { text: plain(words), is_note: true });
    }

    /// True if new lines are shown as they come.
    pub fn is_following(&self) -> bool {
        self.below == 0
    }

    /// True if nothing came yet.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.rest.is_empty()
    }

    /// Moves as a key says. True if it is such a key.
    pub fn step(&mut self, key: Key, page: usize) -> bool {
        match key {
            Key::Left => self.shift = self.shift.saturating_sub(SHIFT),
            Key::Right => self.shift = (self.shift + SHIFT).min(LINE),
            Key::Char('f') => self.below = 0,
            _ => {
                let Some(step) = Step::of(key, page) else { return false };
                let last = self.len().saturating_sub(page);
                let top = last.saturating_sub(self.below);
                self.below = last - step.from(top, last);
            }
        }
        true
    }

    /// The lines that a screen of this height shows.
    pub fn visible(&self, height: usize) -> Vec<LogLine> {
        let rest = (!self.rest.is_empty()).then(|| LogLine { text: harmless(&self.rest), is_note: false });
        let all = self.lines.iter().cloned().chain(rest);
        let top = self.len().saturating_sub(height).saturating_sub(self.below);
        all.skip(top).take(height).collect()
    }

    /// The place of the container after this one; nothing if there is no other.
    pub fn next_container(&self, back: bool) -> Option<usize> {
        let count = self.containers.len();
        if count < 2 {
            return None;
        }
        let name = self.container.as_deref();
        let at = self.containers.iter().position(|known| Some(known.as_str()) == name).unwrap_or(0);
        Some((at + if back { count - 1 } else { 1 }) % count)
    }

    /// The name of the container that is shown, as far as it is known.
    pub fn container_name(&self) -> &str {
        let leading = self.containers.first().map_or("", String::as_str);
        self.container.as_deref().unwrap_or(leading)
    }

    fn len(&self) -> usize {
        self.lines.len() + usize::from(!self.rest.is_empty())
    }

    fn push(&mut self, line: LogLine) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
        // Whoever reads further up goes on reading there.
        if self.below > 0 {
            self.below = (self.below + 1).min(self.lines.len());
        }
    }
}

/// A line as it would stand on paper: no colours, no moves of the cursor, nothing that a terminal obeys.
fn harmless(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = console::strip_ansi_codes(&text);
    // What was written over is not seen.
    let text = text.trim_end_matches('\r');
    let text = text.rsplit('\r').next().unwrap_or_default();
    plain(&text.replace('\t', TAB))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> LogView {
        let id = Id { namespace: "default".into(), name: "a".into() };
        LogView::new(id, None, vec!["addon".to_owned(), "rules".to_owned(), "pages".to_owned()], 1)
    }

    fn shown(view: &LogView, height: usize) -> Vec<String> {
        view.visible(height).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn lines_are_put_together_from_parts_and_the_end_is_followed() {
        let mut view = view();
        view.put(b"one\ntw");
        view.put(b"o\nthr");
        assert_eq!(shown(&view, 9), ["one", "two", "thr"]);
        assert_eq!(shown(&view, 2), ["two", "thr"]);
        view.note("that was all");
        assert_eq!(shown(&view, 2), ["thr", "that was all"]);
        assert!(view.visible(1)[0].is_note);
    }

    #[test]
    fn nothing_in_a_log_moves_the_cursor() {
        let mut view = view();
        view.put(b"\x1b[31mred\x1b[0m\tok\n10%\r20%\r\n\x07bell\x1b]0;title\x07\n\xff\n");
        assert_eq!(shown(&view, 9)[..2], ["red    ok", "20%"]);
        assert!(
            shown(&view, 9).iter().all(|line| !line.chars().any(char::is_control)),
            "{:?}",
            shown(&view, 9)
        );
    }

    #[test]
    fn who_scrolls_up_stays_there_while_more_comes() {
        let mut view = view();
        for number in 0..20 {
            view.put(format!("{number}\n").as_bytes());
        }
        assert!(view.step(Key::PageUp, 5));
        assert_eq!(shown(&view, 5), ["10", "11", "12", "13", "14"]);
        view.put(b"more\n");
        assert_eq!(shown(&view, 5)[0], "10");
        assert!(!view.is_following());
        view.step(Key::Home, 5);
        assert_eq!(shown(&view, 5)[0], "0");
        view.step(Key::Char('G'), 5);
        assert!(view.is_following());
        assert_eq!(shown(&view, 5)[4], "more");
    }

    #[test]
    fn a_log_without_end_is_kept_within_limits() {
        let mut view = view();
        view.put(&vec![b'x'; 3 * LINE]);
        assert_eq!(shown(&view, 9).iter().map(String::len).collect::<Vec<_>>(), [LINE, LINE, LINE]);
        for number in 0..LINES + 5 {
            view.put(format!("{number}\n").as_bytes());
        }
        assert_eq!(view.len(), LINES);
    }

    #[test]
    fn containers_follow_each_other_in_a_circle() {
        let mut view = view();
        assert_eq!((view.next_container(false), view.next_container(true)), (Some(1), Some(2)));
        view.container = Some("pages".to_owned());
        assert_eq!((view.next_container(false), view.next_container(true)), (Some(0), Some(1)));
        assert_eq!(view.container_name(), "pages");
        view.containers.truncate(1);
        assert_eq!(view.next_container(false), None);
    }
}

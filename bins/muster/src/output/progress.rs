//! A line that says how far a long piece of work is, on a terminal only.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Work with fewer steps is over before anybody reads a line about it.
const WORTH_SHOWING: usize = 50;
/// Time between two looks.
const EVERY: Duration = Duration::from_millis(100);

/// How far a piece of work is.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    total: usize,
    shown: bool,
    visible: bool,
    drawn: Option<Instant>,
}

impl Progress {
    /// Progress of `total` steps of which nothing is done.
    pub fn new(what: &'static str, total: usize) -> Self {
        let shown = total > WORTH_SHOWING && io::stderr().is_terminal();
        Self { what, total, shown, visible: false, drawn: None }
    }

    /// Draws the line, if it is time to.
    pub fn step(&mut self, done: usize) {
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY);
        if self.shown && due {
            self.write(&format!("\r\x1b[K{}", line(self.what, done, self.total)));
            self.drawn = Some(Instant::now());
            self.visible = true;
        }
    }

    /// Removes the line, so that another can be printed.
    pub fn clear(&mut self) {
        if std::mem::replace(&mut self.visible, false) {
            self.write("\r\x1b[K");
        }
    }

    fn write(&mut self, text: &str) {
        let mut stream = io::stderr().lock();
        if stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_err() {
            self.shown = false;
        }
    }
}

fn line(what: &str, done: usize, total: usize) -> String {
    let percent = done.saturating_mul(100).checked_div(total).unwrap_or(100);
    format!("{what} {done} of {total} ({percent} %)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        assert_eq!(line("applied", 60, 240), "applied 60 of 240 (25 %)");
        assert_eq!(line("applied", 0, 0), "applied 0 of 0 (100 %)");
    }

    #[test]
    fn nothing_is_drawn_for_little_work() {
        assert!(!Progress::new("applied", WORTH_SHOWING).shown);
    }
}

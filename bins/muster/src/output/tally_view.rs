//! Shows how far many tasks are: a bar on a terminal, lines otherwise.

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::streams;
use super::tally::Tally;

/// Time between two lines where there is no terminal.
const EVERY: Duration = Duration::from_secs(2);

/// Where progress is shown.
pub struct TallyView {
    begun: Instant,
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    Lines { last: Instant, text: String },
}

impl TallyView {
    /// Shows nothing yet.
    pub fn new(total: usize) -> Self {
        let begun = Instant::now();
        if !io::stderr().is_terminal() {
            return Self { begun, shown: Shown::Lines { last: begun, text: String::new() } };
        }
        let length = u64::try_from(total).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("[{bar:30}] {msg}").map(|style| style.progress_chars("=> "));
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { begun, shown: Shown::Bar(bar) }
    }

    /// Shows how far it is, if it is time to.
    pub fn show(&mut self, tally: &Tally) {
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_length(u64::try_from(tally.total()).unwrap_or(u64::MAX));
                bar.set_position(u64::try_from(tally.done()).unwrap_or(u64::MAX));
                bar.set_message(tally.line(self.begun.elapsed()));
            }
            Shown::Lines { last, text } => {
                if last.elapsed() < EVERY {
                    return;
                }
                let line = tally.line(self.begun.elapsed());
                *last = Instant::now();
                if *text != line {
                    streams::note(&line);
                    *text = line;
                }
            }
        }
    }

    /// Says what came of it, in place of how far it is.
    pub fn end(self, tally: &Tally) {
        if let Shown::Bar(bar) = self.shown {
            bar.finish_and_clear();
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        streams::note(format!("{} in {seconds:.1}s", tally.summary()));
    }
}

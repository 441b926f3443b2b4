//! Colours, sixteen at most, and what stands for them where there are none.

use muster_types::State;
use ratatui::style::{Color, Modifier, Style};

/// Which colours there are.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    /// Colours, unless the user wants none (<https://no-color.org>).
    pub fn chosen_by(no_color: Option<&std::ffi::OsStr>) -> Self {
        Self { colour: no_color.is_none_or(std::ffi::OsStr::is_empty) }
    }

    fn ink(self, color: Color) -> Style {
        if self.colour { Style::new().fg(color) } else { Style::new() }
    }

    /// What can be read over.
    pub fn dim(self) -> Style {
        if self.colour { Style::new().fg(Color::DarkGray) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    /// What the eye looks for.
    pub fn title(self) -> Style {
        self.ink(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// The list that has the keys.
    pub fn focus(self) -> Style {
        self.ink(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// The line that is chosen.
    pub fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What went wrong.
    pub fn bad(self) -> Style {
        self.ink(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// What goes well.
    pub fn good(self) -> Style {
        self.ink(Color::Green)
    }

    /// A state of a task.
    pub fn state(self, state: State) -> Style {
        match state {
            State::Running => self.ink(Color::Green),
            State::Pending => self.ink(Color::Cyan),
            State::Created => self.dim(),
            State::Ready => self.ink(Color::Blue),
            State::Postponed | State::QuotaBlocked => self.ink(Color::Yellow),
            State::Succeeded => Style::new(),
            State::Failed => self.ink(Color::Red),
            State::Canceled => self.ink(Color::Magenta),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_means_no_colour_in_any_style() {
        let paint = Paint::chosen_by(Some("1".as_ref()));
        let mut styles =
            vec![paint.dim(), paint.title(), paint.focus(), Paint::chosen(), paint.bad(), paint.good()];
        styles.extend(State::ALL.iter().map(|state| paint.state(*state)));
        assert!(styles.iter().all(|style| style.fg.is_none() && style.bg.is_none()), "{styles:?}");
        assert!(Paint::chosen_by(Some("".as_ref())).bad().fg.is_some(), "an empty variable says nothing");
        assert!(Paint::chosen_by(None).bad().fg.is_some());
    }
}

//! What a user presses.

/// A key that means something here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    BackTab,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C, which leaves from anywhere.
    Interrupt,
    /// A letter, digit or sign.
    Char(char),
}

/// How far a key moves in something that is longer than the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Back(usize),
    On(usize),
    First,
    Last,
}

impl Step {
    /// The step of a key on a screen with so many lines; nothing if it is no such key.
    pub fn of(key: Key, page: usize) -> Option<Self> {
        Some(match key {
            Key::Up | Key::Char('k') => Self::Back(1),
            Key::Down | Key::Char('j') => Self::On(1),
            Key::PageUp => Self::Back(page.max(1)),
            Key::PageDown | Key::Char(' ') => Self::On(page.max(1)),
            Key::Home | Key::Char('g') => Self::First,
            Key::End | Key::Char('G') => Self::Last,
            _ => return None,
        })
    }

    /// The place after the step, of those from 0 to `last`.
    pub fn from(self, place: usize, last: usize) -> usize {
        match self {
            Self::Back(by) => place.min(last).saturating_sub(by),
            Self::On(by) => place.saturating_add(by).min(last),
            Self::First => 0,
            Self::Last => last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_between_the_ends() {
        let step = |key, place| Step::of(key, 10).map(|step| step.from(place, 20));
        assert_eq!(step(Key::Up, 0), Some(0));
        assert_eq!(step(Key::Char('j'), 20), Some(20));
        assert_eq!(step(Key::PageDown, 5), Some(15));
        assert_eq!(step(Key::PageUp, 99), Some(10), "a place that is gone counts as the last");
        assert_eq!((step(Key::Home, 7), step(Key::Char('G'), 7)), (Some(0), Some(20)));
        assert_eq!(step(Key::Enter, 7), None);
    }
}

//! The terminal: taken over whole, and given back as it was, however this ends.

use std::io;
use std::thread;

use anyhow::Context as _;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc::Sender;

use super::event::Event;
use super::key::Key;
use super::model::Model;
use super::paint::Paint;
use super::screen;
use crate::output::streams;

/// A terminal that is drawn on. It is given back when dropped; a panic gives it back before it says anything.
pub struct Terminal {
    terminal: DefaultTerminal,
    paint: Paint,
}

impl Terminal {
    /// Takes the terminal over.
    pub fn take(paint: Paint) -> anyhow::Result<Self> {
        let terminal = ratatui::try_init().context("the terminal cannot be drawn on")?;
        streams::hush(true);
        Ok(Self { terminal, paint })
    }

    /// Columns and lines.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws what is different from before.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|frame| screen::draw(frame, model, self.paint)).map(drop)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // If it cannot be given back there is nobody to tell.
        drop(self.terminal.show_cursor());
        drop(ratatui::try_restore());
        streams::hush(false);
    }
}

/// Reads keys on a thread of its own, which ends with the process.
pub fn read_keys(events: Sender<Event>) {
    thread::spawn(move || {
        loop {
            let event = match event::read() {
                Ok(event::Event::Key(key)) => match key_of(key) {
                    Some(key) => Event::Key(key),
                    None => continue,
                },
                Ok(event::Event::Resize(columns, lines)) => Event::Size(columns, lines),
                Ok(_) => continue,
                Err(_) => Event::NoInput,
            };
            let is_last = matches!(event, Event::NoInput);
            if events.blocking_send(event).is_err() || is_last {
                return;
            }
        }
    });
}

fn key_of(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char(_) if control || key.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_c_is_not_the_letter_c() {
        let press = |code, modifiers| key_of(KeyEvent::new(code, modifiers));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::NONE), Some(Key::Char('c')));
        assert_eq!(press(KeyCode::Char('G'), KeyModifiers::SHIFT), Some(Key::Char('G')));
        assert_eq!(press(KeyCode::Char('r'), KeyModifiers::CONTROL), None, "nothing is done by accident");
        assert_eq!(press(KeyCode::F(1), KeyModifiers::NONE), None);
    }
}

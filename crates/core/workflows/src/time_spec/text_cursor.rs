//! Reading a text piece by piece, knowing where in it one is.

use super::TimeSpecError;

/// A place in a part of a text.
#[derive(Debug, Clone, Copy)]
pub struct TextCursor<'a> {
    rest: &'a str,
    /// Which character of the whole text comes next, from 1.
    position: usize,
}

impl<'a> TextCursor<'a> {
    /// The start of a part whose first character has this position in the whole.
    pub fn new(part: &'a str, position: usize) -> Self {
        Self { rest: part, position }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// True if everything was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next character.
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Goes past a character if it is the next.
    pub fn take(&mut self, wanted: char) -> bool {
        let found = self.rest.strip_prefix(wanted);
        if let Some(rest) = found {
            self.rest = rest;
            self.position += 1;
        }
        found.is_some()
    }

    /// Goes past the next character, whatever it is.
    pub fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.take(next);
        Some(next)
    }

    /// Reads all digits that come next.
    pub fn digits(&mut self) -> &'a str {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        self.position += length;
        digits
    }

    /// Reads a number of exactly so many digits.
    pub fn number(&mut self, digits: usize, what: &str) -> Result<i64, TimeSpecError> {
        let start = *self;
        let found = self.rest.bytes().take(digits).take_while(u8::is_ascii_digit).count();
        if found < digits {
            return Err(start.error(format!("{what} needs {digits} digits")));
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        self.position += digits;
        number.parse().map_err(|_| start.error(format!("{what} is not a number")))
    }

    /// What is wrong here.
    pub fn error(&self, reason: impl Into<String>) -> TimeSpecError {
        TimeSpecError::at(self.position, reason)
    }
}

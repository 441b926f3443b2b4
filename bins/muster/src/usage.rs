//! A command line that clap accepts and that still makes no sense.

use clap::CommandFactory as _;
use clap::error::ErrorKind;

use crate::cli::Cli;

/// What is wrong with the use of a verb.
#[derive(Debug)]
pub struct UsageError {
    verb: &'static str,
    message: String,
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UsageError {}

impl UsageError {
    /// An error in the use of `verb`.
    pub fn new(verb: &'static str, message: impl Into<String>) -> Self {
        Self { verb, message: message.into() }
    }

    /// Says it as clap says its own, with the usage of the verb, and ends the program.
    pub fn exit(&self) -> ! {
        let mut command = Cli::command();
        command.build();
        let verb = command.find_subcommand_mut(self.verb);
        match verb {
            Some(verb) => verb.error(ErrorKind::ArgumentConflict, &self.message).exit(),
            None => command.error(ErrorKind::ArgumentConflict, &self.message).exit(),
        }
    }
}

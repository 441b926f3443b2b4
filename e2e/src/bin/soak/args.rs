//! What a soak is asked for on its command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};

pub const USAGE: &str =
    "usage: cargo xtask soak [--minutes N] [--store sqlite|postgres] [--seed S] [--history FILE] [--calm]

  --minutes N     how long users ask and things go wrong (default 30); after that, all that was asked for ends
  --seconds N     the same in seconds
  --store STORE   sqlite: one server, on a small disk; postgres: two servers of one database (default sqlite)
  --seed S        what users ask for and what goes wrong; not when (default: by the clock)
  --history FILE  write the history, a line of JSON per entry
  --calm          nothing goes wrong
  --judge FILE    judge a history that was written before";
const MINUTES: u64 = 30;

/// Where servers keep everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// A file of one server.
    Sqlite,
    /// A database of two servers.
    Postgres,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub time: Duration,
    pub store: StoreKind,
    pub seed: u64,
    pub history: Option<PathBuf>,
    /// Nothing goes wrong.
    pub is_calm: bool,
    /// A history to judge, instead of a new one.
    pub judge: Option<PathBuf>,
}

impl Wanted {
    /// `None` if help was asked for.
    pub fn parse(arguments: &[String], seed: u64) -> anyhow::Result<Option<Self>> {
        let mut wanted = Self {
            time: Duration::from_mins(MINUTES),
            store: StoreKind::Sqlite,
            seed,
            history: None,
            is_calm: false,
            judge: None,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            match flag.as_str() {
                "-h" | "--help" | "help" => return Ok(None),
                "--calm" => {
                    wanted.is_calm = true;
                    continue;
                }
                _ => {}
            }
            let value = rest.next().with_context(|| format!("{flag} needs a value\n{USAGE}"))?;
            let number = || value.parse().with_context(|| format!("`{value}` is not a number\n{USAGE}"));
            match flag.as_str() {
                "--minutes" => wanted.time = Duration::from_mins(number()?),
                "--seconds" => wanted.time = Duration::from_secs(number()?),
                "--seed" => wanted.seed = number()?,
                "--history" => wanted.history = Some(value.into()),
                "--judge" => wanted.judge = Some(value.into()),
                "--store" => {
                    wanted.store = match value.as_str() {
                        "sqlite" => StoreKind::Sqlite,
                        "postgres" => StoreKind::Postgres,
                        other => bail!("there is no store `{other}`\n{USAGE}"),
                    };
                }
                other => bail!("there is no flag `{other}`\n{USAGE}"),
            }
        }
        Ok(Some(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Option<Wanted>> {
        Wanted::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>(), 7)
    }

    #[test]
    fn half_an_hour_on_sqlite_is_what_nobody_asks_for() {
        let wanted = parsed("").unwrap().unwrap();
        assert_eq!((wanted.time, wanted.store, wanted.seed), (Duration::from_mins(30), StoreKind::Sqlite, 7));
        let wanted = parsed("--minutes 2 --store postgres --seed 3").unwrap().unwrap();
        assert_eq!(
            (wanted.time, wanted.store, wanted.seed),
            (Duration::from_mins(2), StoreKind::Postgres, 3)
        );
        assert_eq!(parsed("--calm --help").unwrap(), None);
    }

    #[test]
    fn flags_that_make_no_sense_are_refused_with_the_usage() {
        for line in ["--minutes", "--minutes x", "--frob 3", "--store paper"] {
            let error = format!("{:#}", parsed(line).unwrap_err());
            assert!(error.contains("usage: cargo xtask soak"), "{line}: {error}");
        }
    }
}

//! The last of what programs wrote, for the report of their end: whoever reads only that sees why.

use std::collections::BTreeMap;

use muster_ports::logs::Logs;
use muster_types::attempt::Handle;

/// How much of a log goes with a report.
const TAIL: u64 = 4 << 10;
/// Containers whose logs do.
const MOST: usize = 8;

/// The last of each log, as text. A program's output and its errors are one log, in the order they were written.
pub fn read_tails(logs: &impl Logs, handle: &Handle, containers: &[String]) -> BTreeMap<String, String> {
    containers.iter().take(MOST).filter_map(|name| Some((name.clone(), tail(logs, handle, name)?))).collect()
}

fn tail(logs: &impl Logs, handle: &Handle, container: &str) -> Option<String> {
    let end = logs.read(handle, container, u64::MAX, 1).ok()?.end;
    let part = logs.read(handle, container, end.saturating_sub(TAIL), usize::try_from(TAIL).ok()?).ok()?;
    // A character that is cut by the beginning is left out.
    let torn = part.bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let text = String::from_utf8_lossy(&part.bytes[torn..]).into_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use muster_ports::clock::Millis;
    use muster_ports::logs::{LogError, LogPart};

    use super::*;

    struct OneLog(Vec<u8>);

    impl Logs for OneLog {
        fn read(&self, _: &Handle, container: &str, offset: u64, max: usize) -> Result<LogPart, LogError> {
            if container != "addon" {
                return Err(LogError::NotFound);
            }
            let end = self.0.len();
            let from = usize::try_from(offset).unwrap_or(end).min(end);
            let bytes = self.0[from..].iter().copied().take(max).collect();
            Ok(LogPart { offset: from as u64, bytes, end: end as u64 })
        }

        fn offset_at(&self, _: &Handle, _: &str, _: Millis) -> Result<u64, LogError> {
            Err(LogError::NotFound)
        }
    }

    fn tails(log: &str) -> BTreeMap<String, String> {
        let handle = Handle { task: "u".to_owned(), attempt: 1 };
        read_tails(&OneLog(log.into()), &handle, &["addon".to_owned(), "silent".to_owned()])
    }

    #[test]
    fn a_short_log_comes_whole_and_a_silent_container_not_at_all() {
        assert_eq!(tails("hello\n"), [("addon".to_owned(), "hello\n".to_owned())].into());
        assert!(tails("").is_empty());
    }

    #[test]
    fn of_a_long_log_the_end_comes_in_whole_characters() {
        let found = &tails(&format!("{}end", "\u{fc}".repeat(5000)))["addon"];
        assert!(found.ends_with("\u{fc}end") && found.len() <= 4096, "{}", found.len());
        assert!(!found.contains(char::REPLACEMENT_CHARACTER));
    }
}

//! Where in a log to begin. Blocking, and never more than a block of the log in memory.

use muster_ports::clock::Millis;
use muster_ports::logs::{LogError, Logs};
use muster_ports::runtime::Handle;

/// Bytes that are read at once.
pub const BLOCK: usize = 64 * 1024;

/// Where a reader wants to begin.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogStart {
    /// With the last so many lines.
    pub tail: Option<u64>,
    /// With what was written at or after this time.
    pub since: Option<Millis>,
}

impl LogStart {
    /// The offset this means now; the later one if both are asked for.
    pub fn find(self, logs: &dyn Logs, handle: &Handle, container: &str) -> Result<u64, LogError> {
        let tail = self.tail.map(|lines| find_tail(logs, handle, container, lines)).transpose()?;
        let since = self.since.map(|time| logs.offset_at(handle, container, time)).transpose()?;
        Ok(tail.max(since).unwrap_or(0))
    }
}

/// Where the last `lines` lines begin. A line that is not finished counts.
fn find_tail(logs: &dyn Logs, handle: &Handle, container: &str, lines: u64) -> Result<u64, LogError> {
    let first = logs.read(handle, container, 0, 1)?;
    let (start, end) = (first.offset, first.end);
    let mut at = if lines == 0 { start } else { end };
    let mut seen = 0;
    while at > start {
        let wanted = at.saturating_sub(BLOCK as u64).max(start);
        let part = logs.read(handle, container, wanted, usize::try_from(at - wanted).unwrap_or(BLOCK))?;
        for (index, _) in part.bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            let behind = part.offset + index as u64 + 1;
            // The end of the last line begins no other.
            if behind < end && behind <= at {
                seen += 1;
                if seen == lines {
                    return Ok(behind);
                }
            }
        }
        if part.offset > wanted {
            // What comes before is no longer kept.
            return Ok(part.offset.min(at));
        }
        at = wanted;
    }
    Ok(if lines == 0 { end } else { start })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Text(Vec<u8>, usize);

    impl Logs for Text {
        fn read(
            &self,
            _: &Handle,
            _: &str,
            offset: u64,
            max: usize,
        ) -> Result<muster_ports::logs::LogPart, LogError> {
            assert!(max <= BLOCK, "a whole log is never read at once");
            let from = usize::try_from(offset).expect("a small offset").max(self.1).min(self.0.len());
            let bytes = self.0[from..(from + max).min(self.0.len())].to_vec();
            Ok(muster_ports::logs::LogPart { offset: from as u64, bytes, end: self.0.len() as u64 })
        }

        fn offset_at(&self, _: &Handle, _: &str, time: Millis) -> Result<u64, LogError> {
            Ok(u64::try_from(time.0).unwrap_or(0))
        }
    }

    fn tail(text: &str, forgotten: usize, lines: u64) -> String {
        let logs = Text(text.as_bytes().to_vec(), forgotten);
        let handle = Handle { task: "u".to_owned(), attempt: 1 };
        let start = LogStart { tail: Some(lines), since: None };
        let at = start.find(&logs, &handle, "c").expect("a place");
        text[usize::try_from(at).expect("a small offset")..].to_owned()
    }

    #[test]
    fn the_last_lines_are_found() {
        assert_eq!(tail("a\nb\nc\n", 0, 0), "");
        assert_eq!(tail("a\nb\nc\n", 0, 1), "c\n");
        assert_eq!(tail("a\nb\nc\n", 0, 2), "b\nc\n");
        assert_eq!(tail("a\nb\nc\n", 0, 9), "a\nb\nc\n");
        assert_eq!(tail("a\nb\nc", 0, 1), "c");
        assert_eq!(tail("a\n\n\n", 0, 2), "\n\n");
        assert_eq!(tail("", 0, 3), "");
        assert_eq!(tail("abc", 0, 1), "abc");
    }

    #[test]
    fn lines_longer_than_a_block_are_found() {
        let long = "x".repeat(3 * BLOCK);
        let text = format!("{long}\n{long}\nend\n");
        assert_eq!(tail(&text, 0, 2), format!("{long}\nend\n"));
        assert_eq!(tail(&text, 0, 3), text);
    }

    #[test]
    fn what_is_no_longer_kept_is_not_looked_for() {
        assert_eq!(tail("old\nnew\n", 4, 5), "new\n");
    }

    #[test]
    fn the_later_of_two_starts_counts() {
        let logs = Text(b"a\nb\nc\n".to_vec(), 0);
        let handle = Handle { task: "u".to_owned(), attempt: 1 };
        let start = LogStart { tail: Some(1), since: Some(Millis(2)) };
        assert_eq!(start.find(&logs, &handle, "c").unwrap(), 4);
        let start = LogStart { tail: Some(9), since: Some(Millis(2)) };
        assert_eq!(start.find(&logs, &handle, "c").unwrap(), 2);
    }

    proptest::proptest! {
        #[test]
        fn the_tail_is_what_splitting_the_whole_text_gives(text in "[a\n]{0,200}", lines in 0_u64..12) {
            let all: Vec<&str> = text.split_inclusive('\n').collect();
            let skipped = all.len().saturating_sub(usize::try_from(lines).unwrap());
            proptest::prop_assert_eq!(tail(&text, 0, lines), all[skipped..].concat());
        }
    }
}

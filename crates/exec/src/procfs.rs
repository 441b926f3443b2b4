//! What the kernel says of processes: the few fields that tell whose they are.

use std::fs;

/// One process, as `/proc/<pid>/stat` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its number.
    pub pid: i32,
    /// It ended and was not waited for.
    pub zombie: bool,
    /// Its parent.
    pub parent: i32,
    /// Its session.
    pub session: i32,
    /// When it started, in clock ticks since boot. With the number it names a process for ever.
    pub start_ticks: u64,
}

/// One process, if it is there.
pub fn stat_of(pid: i32) -> Option<ProcessStat> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// All processes. Those that come and go meanwhile may be missed.
pub fn processes() -> impl Iterator<Item = ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(stat_of)
}

/// Names this run of the machine.
pub fn boot_id() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_string())
}

/// Now, on the clock of [`ProcessStat::start_ticks`].
pub(crate) fn ticks_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    let (seconds, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    seconds * per_second + nanos * per_second / 1_000_000_000
}

fn parse(text: &str) -> Option<ProcessStat> {
    let pid = text.split_once(' ')?.0.parse().ok()?;
    // The name is in parentheses and may hold anything, also parentheses.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse().ok();
    Some(ProcessStat {
        pid,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: number(1)?,
        session: number(3)?,
        start_ticks: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_do_not_confuse() {
        let text = "77 (a) b (c) S 5 6 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2";
        let stat = ProcessStat { pid: 77, zombie: false, parent: 5, session: 7, start_ticks: 4242 };
        assert_eq!(parse(text), Some(stat));
        assert_eq!(parse("77 (a"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn this_process_is_found_and_started_before_now() {
        let me = i32::try_from(std::process::id()).unwrap();
        let stat = processes().find(|stat| stat.pid == me).unwrap();
        assert_eq!(stat.parent, rustix::process::getppid().unwrap().as_raw_nonzero().get());
        assert!(stat.start_ticks <= ticks_now());
        assert!(boot_id().is_some_and(|id| id.len() == 36));
    }
}

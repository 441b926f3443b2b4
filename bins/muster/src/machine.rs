//! What this machine has to offer.

use std::fs;
use std::num::NonZero;

/// Cores and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Cores this process may use.
    pub cores: u64,
    /// Bytes of memory; `None` if it cannot be told.
    pub memory: Option<u64>,
}

impl Machine {
    /// What this process can use.
    pub fn of_this_process() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let memory = fs::read_to_string("/proc/meminfo").ok().and_then(|text| read_total(&text));
        Self { cores: u64::try_from(cores).unwrap_or(1), memory }
    }
}

/// The total in the words of the kernel.
fn read_total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_bytes() {
        assert_eq!(read_total("MemTotal:       24526892 kB\nMemFree: 1 kB\n"), Some(24_526_892 * 1024));
        assert_eq!(read_total("MemTotal: lots\n"), None);
        assert_eq!(read_total(""), None);
    }

    #[test]
    fn this_machine_has_something_to_offer() {
        assert!(Machine::of_this_process().cores >= 1);
    }
}

//! What this machine is.

use std::fs;
use std::num::NonZero;

use muster_types::robot_status::DeviceInfo;

/// What this machine says of itself.
pub fn device_info() -> DeviceInfo {
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    DeviceInfo {
        hostname: text(system.nodename()),
        platform: text(system.sysname()).to_lowercase(),
        arch: text(system.machine()),
        kernel: text(system.release()),
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        cpus: u32::try_from(cpus).unwrap_or(1),
        memory: fs::read_to_string("/proc/meminfo").ok().and_then(|text| read_total(&text)).unwrap_or(0),
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
    fn this_machine_says_what_it_is() {
        let device = device_info();
        assert!(device.cpus > 0 && device.memory > 0, "{device:?}");
        assert_eq!(device.platform, "linux");
    }
}

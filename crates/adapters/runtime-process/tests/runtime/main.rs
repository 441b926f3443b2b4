//! The runtime contract, kept by a real shepherd: this test program starts itself as one.

mod contract;
mod deaths;
mod files;
mod images;
mod limits;
mod takeover;
mod yard;

use muster_runtime_process::{SHEPHERD_VARIABLE, shepherd_main};

/// Not a test of its own: what this program does when it was started as a shepherd.
#[test]
fn shepherd_entry() {
    if std::env::var_os(SHEPHERD_VARIABLE).is_some() {
        shepherd_main();
        std::process::exit(0);
    }
}

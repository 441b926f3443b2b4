//! One target under libFuzzer: `MUSTER_FUZZ_TARGET` names it. `cargo xtask fuzz` builds and starts this.

#![no_main]

use std::sync::OnceLock;
use std::{env, process};

use libfuzzer_sys::fuzz_target;
use muster_fuzz::Target;

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(
    init: {
        let name = env::var("MUSTER_FUZZ_TARGET").unwrap_or_default();
        let Some(target) = muster_fuzz::find(&name) else {
            eprintln!("MUSTER_FUZZ_TARGET is {name:?}, which is no target");
            process::exit(2);
        };
        TARGET.set(*target).ok();
    },
    |input: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.run)(input);
        }
    }
);

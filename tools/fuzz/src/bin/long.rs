//! The long run of one target: libFuzzer chooses the inputs by the code that they reach. `cargo xtask fuzz TARGET` builds
//! and starts this program; the variable `PTO_FUZZ_TARGET` says which target.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pto_fuzz::{Target, find};

fn target() -> &'static Target {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("PTO_FUZZ_TARGET").unwrap_or_default();
        find(&name).unwrap_or_else(|| panic!("PTO_FUZZ_TARGET is \"{name}\", which is no target"))
    })
}

fuzz_target!(|bytes: &[u8]| (target().feed)(bytes));

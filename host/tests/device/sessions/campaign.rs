//! Campaigns: random programs over streams, with and without troubles. `pto_host::session::soak` makes them, and `pto soak --sessions` runs
//! as many as one likes; `PTO_SESSION_SEEDS` sets how many of them run here.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use pto_host::session::{Drive, SessionOptions, soak};

use super::support::{device, options, pool};

/// Programs that one session runs, one after the other.
const A_SESSION: u64 = 100;

/// In virtual time: the choices of session, firmware and device come from the seed.
#[test]
fn troubles_in_virtual_time() {
    let seeds = std::env::var("PTO_SESSION_SEEDS").ok().and_then(|text| text.parse().ok());
    let seeds = seeds.unwrap_or(25_000);
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let report = soak::soak(0..seeds, threads, |_| ControlFlow::Continue(()));
    println!("{report:?}");
    assert!(report.failures.is_empty(), "{}", report.failures[0]);
    assert_eq!(report.seeds, seeds);
}

/// On the clock of this machine, many programs in each session.
#[test]
fn troubles_in_every_order() {
    for seed in 0..40 {
        let drive = Some(Drive::Stepped { seed });
        let session = device(pool()).session(SessionOptions { drive, ..options() }).unwrap();
        let free = || session.with_device(|device| device.describe().gm_free_bytes).unwrap();
        let mut before = 0;
        for program in 0..A_SESSION {
            let done = soak::troubled(&session, seed << 32 | program);
            done.unwrap_or_else(|failed| panic!("session {seed}: {failed}"));
            // The first one has made the arena of the runs.
            if program == 1 {
                before = free();
            }
        }
        drop(session.stream().unwrap());
        session.reset().unwrap();
        assert!(free() >= before.saturating_sub(1 << 20), "session {seed} keeps memory");
    }
}

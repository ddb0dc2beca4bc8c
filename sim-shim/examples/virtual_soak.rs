//! A campaign: `cargo run --release -p pto-sim-shim --example virtual_soak -- [first seed] [count] [threads] [calm]`.
//! `calm`: nothing goes wrong in any scenario.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;

use pto_sim_shim::virtual_time::soak::Troubles;
use pto_sim_shim::virtual_time::{SoakOptions, soak};

fn main() {
    let arg = |n| std::env::args().nth(n).map(|text| text.parse::<u64>().expect("a number"));
    let (first, count) = (arg(1).unwrap_or(0), arg(2).unwrap_or(1_000));
    let mut options = SoakOptions { stop_after: 5, ..SoakOptions::default() };
    if let Some(threads) = arg(3).and_then(|n| NonZeroUsize::new(usize::try_from(n).ok()?)) {
        options.threads = threads;
    }
    if std::env::args().nth(4).is_some_and(|word| word == "calm") {
        options.troubles = Troubles::None;
    }
    let start = Instant::now();
    let report = soak(first..first + count, &options, |_| ControlFlow::Continue(()));
    let seconds = start.elapsed().as_secs_f64();
    for failure in &report.failures {
        println!("{failure}");
    }
    println!(
        "{} seeds, {} runs, {} tasks, {} injected, {} faulted, {} failures, hash {:016x}, {seconds:.2} s",
        report.seeds,
        report.runs,
        report.tasks,
        report.injected,
        report.faulted,
        report.failures.len(),
        report.hash
    );
}

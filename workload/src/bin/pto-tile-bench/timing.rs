//! How long something takes, on a machine that may do other things meanwhile.

use std::time::{Duration, Instant};

const REPETITIONS: usize = 30;
/// How long one repetition takes at least.
const SPAN: Duration = Duration::from_millis(2);

/// The fastest of several repetitions, in nanoseconds.
pub(crate) fn fastest_ns(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..REPETITIONS {
        let (start, mut runs) = (Instant::now(), 0u32);
        while start.elapsed() < SPAN {
            run();
            runs += 1;
        }
        let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
        best = best.min(nanoseconds / f64::from(runs));
    }
    best
}

//! How long something takes, on a machine that may do other things meanwhile.

use std::time::{Duration, Instant};

const REPETITIONS: usize = 30;
/// How long one repetition takes at least.
const SPAN: Duration = Duration::from_millis(2);

/// The fastest of several repetitions, in nanoseconds.
pub(crate) fn fastest_ns(mut run: impl FnMut()) -> f64 {
    (0..REPETITIONS).map(|_| once_ns(&mut run)).fold(f64::INFINITY, f64::min)
}

/// One repetition.
fn once_ns(run: &mut impl FnMut()) -> f64 {
    let (start, mut runs) = (Instant::now(), 0u32);
    while start.elapsed() < SPAN {
        run();
        runs += 1;
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(runs)
}

/// Two ways to do the same.
pub(crate) struct Pair {
    /// The fastest repetition of each, in nanoseconds.
    pub(crate) fastest: [f64; 2],
    /// The median of how much longer the second one took than the first one of its pair.
    pub(crate) ratio: f64,
}

/// Times two ways in turns, so that whatever else the machine does meets both.
pub(crate) fn paired_ns(mut first: impl FnMut(), mut second: impl FnMut()) -> Pair {
    let (mut fastest, mut ratios) = ([f64::INFINITY; 2], Vec::new());
    for _ in 0..REPETITIONS {
        let times = [once_ns(&mut first), once_ns(&mut second)];
        fastest = [fastest[0].min(times[0]), fastest[1].min(times[1])];
        ratios.push(times[1] / times[0]);
    }
    ratios.sort_by(f64::total_cmp);
    Pair { fastest, ratio: ratios[ratios.len() / 2] }
}

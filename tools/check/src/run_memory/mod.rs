//! The memory of a run without a device. Tests, benchmarks and `pto check` run the firmware's builders on it.
//!
//! [`RunWords`] are the words that the instances of every run share; [`StreamWords`] add what the streaming builder has
//! of its own. Both are ordinary vectors, so that they also work under loom and under shuttle. No scheduler runs by itself: a
//! [`Machine`](pto_aicpu_fw::Machine) of the caller replaces the schedulers. [`layer()`] is the
//! program with which submissions and replays are measured.

mod layer;
mod run;
mod stream;

pub use layer::{LAYER, layer};
pub use run::{GENERATION, PAYLOADS, RunSizes, RunWords};
pub use stream::{StreamRun, StreamSizes, StreamWords};

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

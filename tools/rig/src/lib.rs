//! The memory of a run without a device: tests, benchmarks and the checker give it to the firmware's builders.
//!
//! [`RunWords`] are the words that the instances of every run share; [`StreamWords`] add what the streaming builder has
//! of its own. Both are ordinary vectors, so that they work plain, under loom and under shuttle, and nothing runs in them
//! unless the caller runs it: a [`BuilderHost`](pto_aicpu_fw::BuilderHost) stands in for the schedulers. [`layer()`] is the
//! program that submission and replay are measured with.

mod layer;
mod run;
mod stream;

pub use layer::{LAYER, layer};
pub use run::{GENERATION, PAYLOADS, RunSizes, RunWords};
pub use stream::{StreamRun, StreamSizes, StreamWords};

fn many<T: Default>(count: usize) -> Vec<T> {
    (0..count).map(|_| T::default()).collect()
}

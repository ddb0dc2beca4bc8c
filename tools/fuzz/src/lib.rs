//! Fuzz targets: every format that comes from outside is read with random input. The reader may accept or refuse an input. A panic,
//! an endless loop or a read beyond the input is a defect.
//!
//! ```text
//! corpus/TARGET/* --Mutator--> bytes --Target::feed--> returns, or panics
//!   (corpus.rs)  (mutator.rs)          (targets/)
//! ```
//! Two runs share the targets: `tests/corpus.rs` feeds the corpus and a fixed number of mutations of it, the same ones in
//! every run, on any toolchain; `src/bin/long.rs` lets libFuzzer choose (`cargo xtask fuzz TARGET`). An input that once
//! broke something stays in the corpus.

mod choices;
pub mod corpus;
mod mutator;
mod targets;

pub use mutator::Mutator;
pub use targets::{TARGETS, Target, calls, find};

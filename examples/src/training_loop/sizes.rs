//! How large the model is, and what it begins with.

use std::vec::Vec;

use crate::host::job::index;

/// How large the model is, and how it is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingSizes {
    /// Rows of the data.
    pub batch: u64,
    /// Columns of the data, rows of the weights.
    pub inner: u64,
    /// Columns of the weights.
    pub outer: u64,
    /// Rows and columns of a tile of the weights; it divides both.
    pub tile: u64,
    /// Rounds.
    pub iterations: u64,
    /// The step is this, divided by `inner`.
    pub rate: f32,
    /// From which data and weights are drawn.
    pub seed: u64,
}

impl Default for TrainingSizes {
    /// Weights of 16 MiB and 1,000 rounds.
    fn default() -> Self {
        Self {
            batch: 8,
            inner: 2048,
            outer: 2048,
            tile: 128,
            iterations: 1000,
            rate: 0.05,
            seed: 1,
        }
    }
}

/// Numbers that a name and a seed decide.
pub(super) fn drawn(seed: u64, name: &str, count: u64, scale: f32) -> Vec<f32> {
    let mut random = crate::host::random::Rng::new(seed, name);
    let mut values = random.units(index(count));
    values.iter_mut().for_each(|value| *value *= scale);
    values
}

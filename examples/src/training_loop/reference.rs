//! The same training in f64, by another way: the gradient is `X^T D`, so that after any number of rounds the weights are
//! `W0 - rate X^T A`, where `A` is the sum of all `D`. A round costs `batch^2 outer` instead of `batch inner outer`.

use std::vec;
use std::vec::Vec;

use super::sizes::{TrainingSizes, drawn};
use crate::host::job::index;

/// The data, and the weights in the beginning.
pub(super) struct Problem {
    pub(super) x: Vec<f32>,
    pub(super) weights: Vec<f32>,
    pub(super) target: Vec<f32>,
}

impl Problem {
    /// What the seed decides. The targets are those of other weights, so that there is something to learn.
    pub(super) fn drawn(sizes: &TrainingSizes) -> Self {
        let TrainingSizes { batch, inner, outer, seed, .. } = *sizes;
        let scale = (inner as f32).sqrt().recip();
        let x = drawn(seed, "x", batch * inner, 1.0);
        let weights = drawn(seed, "weights", inner * outer, scale);
        let true_weights = drawn(seed, "true weights", inner * outer, 2.0 * scale);
        let sums = product(&x, &true_weights, [batch, inner, outer]);
        #[expect(clippy::cast_possible_truncation, reason = "the programs take f32")]
        let target = sums.into_iter().map(|sum| sum.tanh() as f32).collect();
        Self { x, weights, target }
    }

    /// `X` transposed.
    pub(super) fn x_transposed(&self, sizes: &TrainingSizes) -> Vec<f32> {
        let (batch, inner) = (index(sizes.batch), index(sizes.inner));
        let at = |k: usize| (0..batch).map(move |b| self.x[b * inner + k]);
        (0..inner).flat_map(at).collect()
    }
}

/// `a b` in f64, of matrices of `m x k` and `k x n`.
fn product(a: &[f32], b: &[f32], [m, k, n]: [u64; 3]) -> Vec<f64> {
    let (m, k, n) = (index(m), index(k), index(n));
    let mut sums = vec![0.0; m * n];
    for (row, sums) in a.chunks(k).zip(sums.chunks_mut(n)) {
        for (factor, other) in row.iter().zip(b.chunks(n)) {
            for (sum, other) in sums.iter_mut().zip(other) {
                *sum += f64::from(*factor) * f64::from(*other);
            }
        }
    }
    sums
}

/// The training so far.
pub(super) struct Reference {
    sizes: TrainingSizes,
    /// `X W0`.
    start: Vec<f64>,
    /// `X X^T`.
    gram: Vec<f64>,
    target: Vec<f64>,
    /// `A`.
    sum: Vec<f64>,
    losses: Vec<f64>,
}

impl Reference {
    pub(super) fn new(sizes: &TrainingSizes, problem: &Problem) -> Self {
        let TrainingSizes { batch, inner, outer, .. } = *sizes;
        let transposed = problem.x_transposed(sizes);
        Self {
            sizes: *sizes,
            start: product(&problem.x, &problem.weights, [batch, inner, outer]),
            gram: product(&problem.x, &transposed, [batch, inner, batch]),
            target: problem.target.iter().map(|target| f64::from(*target)).collect(),
            sum: vec![0.0; index(batch * outer)],
            losses: Vec::new(),
        }
    }

    fn rate(&self) -> f64 {
        f64::from(self.sizes.rate / self.sizes.inner as f32)
    }

    /// One round.
    pub(super) fn round(&mut self) {
        let (batch, outer, rate) = (index(self.sizes.batch), index(self.sizes.outer), self.rate());
        let mut deltas = self.start.clone();
        for (row, deltas) in deltas.chunks_mut(outer).enumerate() {
            for (other, sums) in self.sum.chunks(outer).enumerate() {
                let factor = rate * self.gram[row * batch + other];
                deltas.iter_mut().zip(sums).for_each(|(delta, sum)| *delta -= factor * sum);
            }
        }
        let mut loss = 0.0;
        for ((delta, target), sum) in deltas.iter_mut().zip(&self.target).zip(&mut self.sum) {
            let y = delta.tanh();
            let error = y - target;
            loss += error * error;
            *delta = error - error * (y * y);
            *sum += *delta;
        }
        self.losses.push(loss / deltas.len() as f64);
    }

    /// The losses of the rounds.
    pub(super) fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// The weights.
    pub(super) fn weights(&self, problem: &Problem) -> Vec<f64> {
        let (inner, outer) = (index(self.sizes.inner), index(self.sizes.outer));
        let mut weights: Vec<f64> = problem.weights.iter().map(|one| f64::from(*one)).collect();
        for (row, sums) in self.sum.chunks(outer).enumerate() {
            for (k, weights) in weights.chunks_mut(outer).enumerate() {
                let factor = self.rate() * f64::from(problem.x[row * inner + k]);
                weights.iter_mut().zip(sums).for_each(|(weight, sum)| *weight -= factor * sum);
            }
        }
        weights
    }
}

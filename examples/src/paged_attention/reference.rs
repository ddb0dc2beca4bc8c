//! What `paged_attention` should give: plain softmax attention in `f64`, one query head at a time.
//!
//! Written from the definition, not from the graph: it looks tokens up one by one, takes the softmax over the
//! whole context at once, and knows neither units nor running sums.

use std::vec;
use std::vec::Vec;

use crate::args::Size;
use crate::host::check::{Expected, UNIT_ROUNDOFF};
use crate::host::job::index;
use crate::host::parallel;
use crate::paged_attention::inputs::{AttentionShape, AttentionTensors};

/// Relative error of the kernels' exponential, in roundings, with the rounding of its argument.
const EXP_ROUNDINGS: f64 = 4.0;

/// The result for every query head of every request, with a tolerance.
#[must_use]
pub fn reference(shape: &AttentionShape, tensors: &AttentionTensors) -> Vec<Expected> {
    let mut out = vec![Expected::default(); tensors.q.len()];
    parallel::rows(&mut out, index(shape.head_dim.get()), |row, out| {
        let heads = index(shape.heads());
        Head { shape, tensors, request: row / heads, head: row % heads }.attend(out);
    });
    out
}

struct Head<'a> {
    shape: &'a AttentionShape,
    tensors: &'a AttentionTensors,
    request: usize,
    head: usize,
}

impl Head<'_> {
    fn attend(&self, out: &mut [Expected]) {
        let dim = out.len();
        let query =
            &self.tensors.q[(self.request * index(self.shape.heads()) + self.head) * dim..][..dim];
        let scale = 1.0 / (dim as f64).sqrt();
        let mut steepest = 0.0_f64;
        let scores: Vec<f64> = self
            .places(dim)
            .map(|at| {
                let (mut dot, mut magnitude) = (0.0, 0.0);
                for (q, k) in query.iter().zip(&self.tensors.k[at..at + dim]) {
                    let product = f64::from(*q) * f64::from(*k);
                    dot += product;
                    magnitude += product.abs();
                }
                steepest = steepest.max(magnitude * scale);
                dot * scale
            })
            .collect();
        // Of a context that is masked altogether nothing remains: its weights are 0, not 0 / 0.
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let max = if max == f64::NEG_INFINITY { 0.0 } else { max };
        let total: f64 = scores.iter().map(|score| (score - max).exp()).sum();
        let total = if total == 0.0 { 1.0 } else { total };
        let mut largest = 0.0_f64;
        for (score, at) in scores.iter().zip(self.places(dim)) {
            let weight = (score - max).exp() / total;
            for (out, v) in out.iter_mut().zip(&self.tensors.v[at..at + dim]) {
                out.value += weight * f64::from(*v);
                largest = largest.max(f64::from(*v).abs());
            }
        }
        let tolerance = self.roundings(dim, steepest) * UNIT_ROUNDOFF * largest;
        out.iter_mut().for_each(|out| out.tolerance = tolerance);
    }

    /// The error of a result, in roundings of the largest value of the context, to first order. The output is
    /// a mean of values with weights `e^score / sum`. A score is off by `dim + 2` roundings of the sum of
    /// magnitudes of its products, and a weight's error is twice that (it is in the sum as well); inside a block
    /// numerator and denominator add up to `block_size` terms each; each merge of a block rescales both.
    fn roundings(&self, dim: usize, steepest: f64) -> f64 {
        let blocks = self.shape.blocks_of(self.tokens() as u64) as f64;
        let scores = 2.0 * (dim as f64 + 2.0) * steepest;
        let sums = 2.0 * self.shape.block_size.get() as f64;
        let merges = 2.0 * (EXP_ROUNDINGS + 2.0) * blocks;
        scores + sums + merges + 4.0 * EXP_ROUNDINGS
    }

    fn tokens(&self) -> usize {
        self.tensors.context_lens[self.request].unsigned_abs() as usize
    }

    /// Where in the cache the vector of each token of the context begins.
    fn places(&self, dim: usize) -> impl Iterator<Item = usize> {
        let [block_size, kv_heads, width] =
            [self.shape.block_size, self.shape.kv_heads, self.shape.max_blocks]
                .map(|size: Size| index(size.get()));
        let kv_head = self.head / index(self.shape.rows.get());
        let row = &self.tensors.block_table[self.request * width..][..width];
        (0..self.tokens()).map(move |token| {
            let block = row[token / block_size].unsigned_abs() as usize;
            ((block * block_size + token % block_size) * kv_heads + kv_head) * dim
        })
    }
}

#[cfg(test)]
mod tests {
    use super::reference;
    use crate::host::Params;
    use crate::paged_attention::inputs::{AttentionShape, AttentionTensors};
    use crate::paged_attention::job::PARAMS;
    use std::vec;

    fn shape(given: &[(&str, &str)]) -> AttentionShape {
        let mut params = Params::defaults(PARAMS);
        for (name, value) in given {
            params.set(name, value).unwrap();
        }
        AttentionShape::new(&params).unwrap()
    }

    #[test]
    fn by_hand() {
        // One request, one head of the cache, two query heads; three tokens in blocks 1 and 0.
        let shape = shape(&[
            ("batch", "1"),
            ("heads", "2"),
            ("kv_heads", "1"),
            ("head_dim", "1"),
            ("block_size", "2"),
            ("max_context", "4"),
        ]);
        let ln2 = core::f32::consts::LN_2;
        let tensors = AttentionTensors {
            q: vec![1.0, 0.0],
            k: vec![ln2, 77.0, 0.0, 0.0],
            v: vec![8.0, 77.0, 2.0, 4.0],
            block_table: vec![1, 0],
            context_lens: vec![3],
            num_blocks: 2,
        };
        let out = reference(&shape, &tensors);
        // Weights 1, 1, 2 for the first head and 1, 1, 1 for the second.
        assert!((out[0].value - (2.0 + 4.0 + 16.0) / 4.0).abs() < 1e-6);
        assert!((out[1].value - (2.0 + 4.0 + 8.0) / 3.0).abs() < 1e-12);
        assert!(out.iter().all(|out| out.tolerance > 0.0 && out.tolerance < 1e-4));
    }
}

//! What `decoder_layer` should give: one request at a time, from the definitions, in `f64`, with what roundings may do.
//!
//! It looks tokens up one by one, takes each softmax over the whole context at once, computes sines and cosines itself, and knows
//! neither tiles nor blocks.

use std::vec;
use std::vec::Vec;

use crate::decoder_layer::inputs::{DecoderShape, DecoderTensors};
use crate::host::check::Expected;
use crate::host::job::index;
use crate::host::parallel;
use crate::host::rounding::{Rounded, project, rms_norm, silu_mul, sum};

/// What the norms add to the mean of the squares.
pub const EPSILON: f32 = 1e-5;
/// The base of the angles of the rotary embedding.
const BASE: f64 = 10_000.0;
/// Roundings with which a block is merged into what a row of attention has so far.
const MERGE_ROUNDINGS: f64 = 4.0;

/// The output of the layer.
#[must_use]
pub fn reference(shape: &DecoderShape, tensors: &DecoderTensors) -> Vec<Expected> {
    let hidden = index(shape.hidden.get());
    let mut out = vec![Expected::default(); tensors.x.len()];
    parallel::rows(&mut out, hidden, |request, out| {
        let x = tensors.x[request * hidden..][..hidden].iter().map(|x| Rounded::exact(*x));
        let result = layer(shape, tensors, request, &x.collect::<Vec<_>>());
        out.iter_mut().zip(result).for_each(|(out, result)| *out = result.expected());
    });
    out
}

/// What the layer makes of one request, whose token is `x`.
#[must_use]
pub fn layer(
    shape: &DecoderShape,
    tensors: &DecoderTensors,
    request: usize,
    x: &[Rounded],
) -> Vec<Rounded> {
    ReferenceRequest { shape, tensors, request }.layer(x)
}

/// The angle of plane `plane` at a position.
#[must_use]
pub fn angle(position: u64, plane: u64, head_dim: u64) -> f64 {
    position as f64 * BASE.powf(-2.0 * plane as f64 / head_dim as f64)
}

struct ReferenceRequest<'a> {
    shape: &'a DecoderShape,
    tensors: &'a DecoderTensors,
    request: usize,
}

impl ReferenceRequest<'_> {
    fn layer(&self, x: &[Rounded]) -> Vec<Rounded> {
        let (hidden, inner) =
            (index(self.shape.hidden.get()), index(self.shape.intermediate.get()));
        let [wqkv, wo, wg, wu, wd] = &self.tensors.weights;
        let (first, second) = self.tensors.norms.split_at(hidden);

        let normed = rms_norm(x, first, EPSILON);
        let attended = self.attention(&project(&normed, wqkv, wqkv.len() / hidden));
        let middle = added(x, &project(&attended, wo, hidden));
        let normed = rms_norm(&middle, second, EPSILON);
        let (gate, up) = (project(&normed, wg, inner), project(&normed, wu, inner));
        let gated: Vec<_> = gate.iter().zip(&up).map(|(gate, up)| silu_mul(*gate, *up)).collect();
        added(&middle, &project(&gated, wd, hidden))
    }

    /// All heads, side by side, of the projections of query, key and value.
    fn attention(&self, qkv: &[Rounded]) -> Vec<Rounded> {
        let attention = &self.shape.attention;
        let [dim, kv_heads, group] =
            [attention.head_dim, attention.kv_heads, attention.rows].map(|size| index(size.get()));
        let last = self.tensors.tokens(self.request) - 1;
        let (q, kv) = qkv.split_at(group * kv_heads * dim);
        let (new_k, new_v) = kv.split_at(kv_heads * dim);
        let q: Vec<_> = q.chunks(dim).flat_map(|head| rotated(head, last as u64)).collect();
        let new_k: Vec<_> = new_k.chunks(dim).flat_map(|head| rotated(head, last as u64)).collect();
        let mut out = Vec::with_capacity(q.len());
        for kv_head in 0..kv_heads {
            let part = kv_head * dim..(kv_head + 1) * dim;
            let keys = self.history(&self.tensors.k, &new_k, part.clone());
            let values = self.history(&self.tensors.v, new_v, part);
            for head in q[kv_head * group * dim..][..group * dim].chunks(dim) {
                out.extend(self.head(head, &keys, &values));
            }
        }
        out
    }

    /// What one head of the cache holds of each token, the one that is decoded included.
    fn history(
        &self,
        cache: &[f32],
        new: &[Rounded],
        part: core::ops::Range<usize>,
    ) -> Vec<Vec<Rounded>> {
        let last = self.tensors.tokens(self.request) - 1;
        let before = (0..last).map(|token| {
            let token_range = self.tensors.token_range(&self.shape.attention, self.request, token);
            cache[token_range][part.clone()].iter().map(|value| Rounded::exact(*value)).collect()
        });
        before.chain([new[part.clone()].to_vec()]).collect()
    }

    fn head(&self, q: &[Rounded], keys: &[Vec<Rounded>], values: &[Vec<Rounded>]) -> Vec<Rounded> {
        let scale = Rounded::once(1.0 / (q.len() as f64).sqrt());
        let dot = |key: &Vec<Rounded>| sum(q.iter().zip(key).map(|(q, k)| *q * *k)) * scale;
        let scores: Vec<Rounded> = keys.iter().map(dot).collect();
        // A shift of all scores changes no weight, and neither does its error.
        let max = scores.iter().fold(f64::NEG_INFINITY, |max, score| max.max(score.value));
        let shift = Rounded { value: -max, variance: 0.0 };
        let weights: Vec<Rounded> = scores.iter().map(|score| (*score + shift).exp()).collect();
        let total = sum(weights.iter().copied());
        let merges = MERGE_ROUNDINGS * self.shape.attention.blocks_of(keys.len() as u64) as f64;
        let column = |column: usize| {
            let weighted = weights.iter().zip(values).map(|(weight, v)| *weight * v[column]);
            (sum(weighted) / total).rounded(merges)
        };
        (0..q.len()).map(column).collect()
    }
}

/// A head, rotated in the planes of its elements `i` and `i + dim / 2`.
fn rotated(head: &[Rounded], position: u64) -> Vec<Rounded> {
    let (low, high) = head.split_at(head.len() / 2);
    let turn = |plane: usize| {
        let angle = angle(position, plane as u64, head.len() as u64);
        (Rounded::once(angle.cos()), Rounded::once(angle.sin()))
    };
    let minus = Rounded::exact(-1.0);
    let lows = low.iter().zip(high).enumerate().map(|(plane, (x, y))| {
        let (cos, sin) = turn(plane);
        *x * cos + *y * sin * minus
    });
    let highs = low.iter().zip(high).enumerate().map(|(plane, (x, y))| {
        let (cos, sin) = turn(plane);
        *y * cos + *x * sin
    });
    lows.chain(highs).collect()
}

fn added(a: &[Rounded], b: &[Rounded]) -> Vec<Rounded> {
    a.iter().zip(b).map(|(a, b)| *a + *b).collect()
}

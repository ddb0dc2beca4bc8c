//! Attention: for each query the scores of all keys, their softmax, and the sum of values with these weights. A unit is a query.

use super::elementwise::Places;
use super::memory::{In, Out};
use super::product::converted;
use crate::DType;
use crate::element::{Element, with_type};

/// Numbers of an attention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    pub(crate) scale: Option<f64>,
    pub(crate) causal: bool,
    pub(crate) softcap: f64,
}

/// Runs units.
pub(crate) fn run(
    attention: Attention,
    inputs: &[Option<&In<'_>>],
    output: &mut Out<'_>,
    units: (usize, usize),
) {
    let given = |at: usize| inputs.get(at).copied().flatten();
    let (Some(q), Some(k), Some(v)) = (given(0), given(1), given(2)) else { return };
    let rank = q.ty.rank();
    let (queries, depth) = (q.ty.shape[rank - 2], q.ty.shape[rank - 1]);
    let (keys, width) = (k.ty.shape[rank - 2], v.ty.shape[rank - 1]);
    #[expect(clippy::cast_precision_loss, reason = "an extent")]
    let scale = attention.scale.unwrap_or(1.0 / (depth as f64).sqrt());
    let heads: Vec<(usize, usize)> =
        (0..rank - 2).map(|at| (q.ty.shape[at], k.ty.shape[at])).collect();
    let mask = given(3).map(|mask| {
        let scores = [&q.ty.shape[..rank - 1], &[keys]].concat();
        (mask, Places::of(&mask.ty.shape, &scores))
    });
    let (q, k, v) = (converted::<f64>(q), converted::<f64>(k), converted::<f64>(v));
    let mut scores = vec![0.0_f64; keys];
    for unit in units.0..units.0 + units.1 {
        let (head, query) = (unit / queries, unit % queries);
        let own = head_of(&heads, head);
        let row = &q[unit * depth..(unit + 1) * depth];
        for (key, score) in scores.iter_mut().enumerate() {
            let at = (own * keys + key) * depth;
            let sum: f64 = row.iter().zip(&k[at..at + depth]).map(|(a, b)| a * b).sum();
            let mut x = sum * scale;
            if attention.softcap != 0.0 {
                x = attention.softcap * (x / attention.softcap).tanh();
            }
            if let Some((mask, places)) = &mask {
                let at = places.at(unit * keys + key);
                match mask.ty.dtype {
                    DType::Bool => {
                        x = if mask.elements::<u8>()[at] != 0 { x } else { f64::NEG_INFINITY }
                    }
                    dtype => x += with_type!(dtype, T => mask.elements::<T>()[at].to_f64()),
                }
            }
            if attention.causal && key > query {
                x = f64::NEG_INFINITY;
            }
            *score = x;
        }
        let largest = scores
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
        scores.iter_mut().for_each(|x| *x = (*x - largest).exp());
        let sum: f64 = scores.iter().sum();
        let mut result = vec![0.0_f64; width];
        for (key, weight) in scores.iter().enumerate() {
            let at = (own * keys + key) * width;
            result.iter_mut().zip(&v[at..at + width]).for_each(|(to, x)| *to += weight / sum * x);
        }
        with_type!(output.ty.dtype, T => {
            output.elements::<T>(unit * width, width).iter_mut().zip(&result).for_each(|(to, x)| *to = T::from_f64(*x));
        });
    }
}

/// The head of keys that serves a head of queries.
fn head_of(extents: &[(usize, usize)], head: usize) -> usize {
    let (mut rest, mut own, mut step) = (head, 0, 1);
    for (of_q, of_k) in extents.iter().rev() {
        let at = rest % of_q;
        rest /= of_q;
        own += at / (of_q / of_k).max(1) * step;
        step *= of_k;
    }
    own
}

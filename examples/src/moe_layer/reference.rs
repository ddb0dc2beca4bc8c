//! What `moe_layer` should give: one token at a time, from the definitions, in `f64`, with what roundings may do.
//!
//! Where two experts have logits that roundings may exchange, either choice is right: the choices that were found are checked
//! against the logits, and the output against the choices.

use std::vec::Vec;
use std::{format, vec};

use crate::host::check::{ElementPosition, Expected, Verdict};
use crate::host::job::index;
use crate::host::parallel;
use crate::host::rounding::{Rounded, project, silu_mul, sum};
use crate::moe_layer::inputs::{MoeShape, MoeTensors};

/// The logits of each token.
#[must_use]
pub fn logits(shape: &MoeShape, tensors: &MoeTensors) -> Vec<Vec<Rounded>> {
    let experts = index(shape.experts.get());
    let token = |x: &[f32]| project(&exact(x), &tensors.router, experts);
    tensors.x.chunks(index(shape.hidden.get())).map(token).collect()
}

/// Whether the choices are the largest logits of each token, in order, as far as roundings let that be known.
#[must_use]
pub fn judge(shape: &MoeShape, logits: &[Vec<Rounded>], choices: &[i32]) -> Verdict {
    let top_k = index(shape.top_k.get());
    let mut wrong = logits.len().abs_diff(choices.len() / top_k) as u64;
    let mut first_wrong = None;
    for ((token, logits), chosen) in (0..).zip(logits).zip(choices.chunks(top_k)) {
        if are_largest(logits, chosen) {
            continue;
        }
        wrong += 1;
        first_wrong.get_or_insert_with(|| ElementPosition {
            tensor: "choices",
            index: vec![token],
            found: format!("{chosen:?}"),
            expected: format!("{:?}", largest(logits, top_k)),
        });
    }
    Verdict::exact(logits.len() as u64, wrong, first_wrong)
}

/// The experts with the largest logits, the largest first.
fn largest(logits: &[Rounded], top_k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].value.total_cmp(&logits[*a].value));
    order.truncate(top_k);
    order
}

fn are_largest(logits: &[Rounded], chosen: &[i32]) -> bool {
    let mut left: Vec<usize> = (0..logits.len()).collect();
    chosen.iter().all(|chosen| {
        let Some(at) = left.iter().position(|expert| i32::try_from(*expert) == Ok(*chosen)) else {
            return false;
        };
        let found = logits[left.swap_remove(at)].expected();
        // Of what is left nothing is larger by more than both may be off. NaN is neither larger nor smaller: any order with
        // it is right.
        !left.iter().any(|other| {
            let other = logits[*other].expected();
            other.value - found.value > other.tolerance + found.tolerance
        })
    })
}

/// The output, for these choices, which are numbers of experts.
#[must_use]
pub fn output(
    shape: &MoeShape,
    tensors: &MoeTensors,
    logits: &[Vec<Rounded>],
    choices: &[i32],
) -> Vec<Expected> {
    let (hidden, top_k) = (index(shape.hidden.get()), index(shape.top_k.get()));
    let mut out = vec![Expected::default(); tensors.x.len()];
    parallel::rows(&mut out, hidden, |token, out| {
        let x = exact(&tensors.x[token * hidden..][..hidden]);
        let chosen: Vec<usize> = choices[token * top_k..][..top_k]
            .iter()
            .map(|expert| expert.unsigned_abs() as usize)
            .collect();
        let weights =
            softmax(&chosen.iter().map(|expert| logits[token][*expert]).collect::<Vec<_>>());
        let mut sums = x.clone();
        for (expert, weight) in chosen.into_iter().zip(weights) {
            let result = mlp(shape, tensors, expert, &x);
            sums.iter_mut().zip(result).for_each(|(sum, y)| *sum = *sum + weight * y);
        }
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum.expected());
    });
    out
}

/// What one expert makes of a token.
fn mlp(shape: &MoeShape, tensors: &MoeTensors, expert: usize, x: &[Rounded]) -> Vec<Rounded> {
    let (hidden, inner) = (index(shape.hidden.get()), index(shape.intermediate.get()));
    let own = expert * hidden * inner..(expert + 1) * hidden * inner;
    let gate = project(x, &tensors.wg[own.clone()], inner);
    let up = project(x, &tensors.wu[own.clone()], inner);
    let gated: Vec<_> = gate.iter().zip(&up).map(|(gate, up)| silu_mul(*gate, *up)).collect();
    project(&gated, &tensors.wd[own], hidden)
}

fn softmax(logits: &[Rounded]) -> Vec<Rounded> {
    let max = logits.iter().fold(f64::NEG_INFINITY, |max, logit| max.max(logit.value));
    let shift = Rounded { value: -max, variance: 0.0 };
    let powers: Vec<_> = logits.iter().map(|logit| (*logit + shift).exp()).collect();
    let total = sum(powers.iter().copied());
    powers.into_iter().map(|power| power / total).collect()
}

fn exact(x: &[f32]) -> Vec<Rounded> {
    x.iter().map(|x| Rounded::exact(*x)).collect()
}

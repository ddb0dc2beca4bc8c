//! What the programs of `../programs/shapes.h` give: the shapes that programs of the field have.

use crate::table::{Good, ProgramTensors};

/// Programs that run in every hosting mode.
pub(crate) const SHAPES: &[Good] = &[
    ("attention_1", |t| attended(t, 1, 3)),
    ("attention_2", |t| attended(t, 2, 2)),
    ("attention_4", |t| attended(t, 4, 4)),
    ("attention_manual", |t| attended(t, 4, 2)),
    ("attention_rounds", |t| attended(t, 3, 2)),
    ("alternating", |t| {
        let product = |at: usize, t: &ProgramTensors| {
            (0..8).map(|k| t.a[at / 8 * 8 + k] * t.b[k * 8 + at % 8]).sum::<f32>()
        };
        t.out(|at, t| if at / 64 % 2 == 0 { product(at % 64, t) } else { t.a[at] + t.b[at] })
    }),
    ("empty_ring", |t| t.out(|at, _| if at < 256 { small(at / 32) } else { 0.0 })),
    ("many_producers", |mut t| {
        t.b = vec![6.0; 1024];
        t.out(|_, _| 3.0 + 4.0 + 5.0 + 6.0)
    }),
    ("many_names", |t| t.out(|at, _| if at / 32 < 4 { 14.0 } else { 13.0 })),
    ("dummy_tree", |t| t.out(|_, _| 7.0)),
    ("wide", |t| t.out(|_, _| 64.0)),
    ("mix_in_scopes", |t| {
        let mut of_a_round = [3, 0, 0];
        // A lone vector kernel leaves its mark for the lane that ran it: the first one.
        (of_a_round[1], of_a_round[2]) = (4, 2);
        t.counted(of_a_round.map(|marks| 2 * marks))
    }),
    ("spmd_tiles", |t| t.out(|at, t| t.a[at] + small(at / 32) + 1.0)),
    ("sync_start", |t| t.counted([3; 24])),
    ("graph_keys", |t| {
        t.out(|at, _| {
            if at < 256 {
                9.0
            } else if at < 512 {
                12.0
            } else {
                0.0
            }
        })
    }),
    ("graph_rounds", |t| t.out(|at, t| 5.0 * t.a[at])),
    ("graph_scalars", |t| t.out(|_, _| 10.0)),
];

/// Whether a program computes what is not exact in floats.
pub(crate) fn has_exponentials(entry: &str) -> bool {
    entry.starts_with("attention")
}

/// Whether all numbers agree to four decimals.
pub(crate) fn is_close(found: &ProgramTensors, expected: &ProgramTensors) -> bool {
    let close = |(one, other): (&f32, &f32)| (one - other).abs() <= 1e-4 * (1.0 + other.abs());
    found.out.iter().zip(&expected.out).all(close)
        && found.a == expected.a
        && found.counts == expected.counts
}

fn small(number: usize) -> f32 {
    f32::from(u16::try_from(number).unwrap())
}

/// Keys or values: row by row as the kernel makes them.
fn pattern(seed: usize, row: usize, column: usize) -> f64 {
    let at = (16 * row + column) * 7 + seed;
    f64::from(u16::try_from(at % 13).unwrap()) / 13.0 - 0.5
}

/// Attention of `batch` sequences over `pages` pages of 16 tokens, in one go and in doubles.
fn attended(mut t: ProgramTensors, batch: usize, pages: usize) -> ProgramTensors {
    let query: Vec<f64> = t.a.iter().map(|value| f64::from(*value)).collect();
    for (number, out) in t.out.chunks_exact_mut(16).enumerate().take(16 * batch) {
        let first = number / 16 * pages * 16;
        let tokens = first..first + pages * 16;
        let score = |token| {
            (0..16).map(|i| query[16 * number + i] * pattern(3, token, i)).sum::<f64>() * 0.25
        };
        let weights: Vec<f64> = tokens.clone().map(|token| score(token).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for (i, value) in out.iter_mut().enumerate() {
            let total: f64 = tokens
                .clone()
                .zip(&weights)
                .map(|(token, weight)| weight * pattern(5, token, i))
                .sum();
            *value = rounded(total / sum);
        }
    }
    t
}

#[expect(clippy::cast_possible_truncation, reason = "to the nearest float")]
fn rounded(value: f64) -> f32 {
    value as f32
}

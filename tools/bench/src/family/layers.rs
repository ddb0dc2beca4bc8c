//! Shapes of whole programs: blocked Cholesky, a transformer.

use crate::csr::Csr;

/// The right-looking factorisation of a matrix of `n` by `n` blocks, as many as `tasks` allow. Each task also
/// waits for the one that wrote its block before.
pub(super) fn cholesky(tasks: u32) -> Csr {
    let count = |n: u64| n * (n + 1) * (n + 2) / 6;
    let blocks = (1_u32..).take_while(|n| count((*n).into()) <= tasks.into()).last().unwrap_or(1);
    let n = blocks as usize;
    let mut csr = Csr::with_capacity(tasks, 3 * tasks as usize);
    // Who wrote each block of the lower half last.
    let mut written: Vec<Option<u32>> = vec![None; n * n];
    for step in 0..n {
        let factor = csr.add(written[step * n + step]);
        written[step * n + step] = Some(factor);
        for row in step + 1..n {
            let solved = csr.add([factor].into_iter().chain(written[row * n + step]));
            written[row * n + step] = Some(solved);
        }
        for row in step + 1..n {
            for column in step + 1..=row {
                let left = written[row * n + step];
                let upper = written[column * n + step].filter(|_| column != row);
                let before = written[row * n + column];
                let updated = csr.add(left.into_iter().chain(upper).chain(before));
                written[row * n + column] = Some(updated);
            }
        }
    }
    csr
}

const HEADS: u32 = 16;
const TILES: u32 = 32;
/// Two norms; for each head query, key, value, scores, softmax, context; the projection; for each tile of the
/// feed-forward block up and down; the sum.
const LAYER: u32 = 4 + 6 * HEADS + 2 * TILES;

/// Layers of a transformer, one after the other.
pub(super) fn transformer(tasks: u32) -> Csr {
    let layers = (tasks / LAYER).max(1);
    let mut csr = Csr::with_capacity(layers * LAYER, 2 * tasks as usize);
    let mut input = None;
    for _ in 0..layers {
        let norm = csr.add(input);
        let heads: Vec<u32> = (0..HEADS).map(|_| attention_head(&mut csr, norm)).collect();
        // The sum with the layer's input is in the projection.
        let attention = csr.add(heads.into_iter().chain(input));
        let norm = csr.add([attention]);
        let tiles: Vec<u32> = (0..TILES)
            .map(|_| {
                let up = csr.add([norm]);
                csr.add([up])
            })
            .collect();
        input = Some(csr.add(tiles.into_iter().chain([attention])));
    }
    csr
}

/// Returns the task that has the head's context.
fn attention_head(csr: &mut Csr, norm: u32) -> u32 {
    let [query, key, value] = [0; 3].map(|_| csr.add([norm]));
    let scores = csr.add([query, key]);
    let softmax = csr.add([scores]);
    csr.add([softmax, value])
}

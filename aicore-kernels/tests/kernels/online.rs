//! The four attention kernels chained over blocks, against one softmax over all columns in `f64`.

use pto_aicore_kernels::UpdateFlags;
use pto_aicore_kernels::args::scalar_word;

use crate::support::{GuardedMatrix, U, XorShift64, assert_close, call, gamma};

struct Attention {
    q: GuardedMatrix,
    k: GuardedMatrix,
    v: GuardedMatrix,
    scale: f32,
    blocks: Vec<usize>,
}

impl Attention {
    fn random(rows: usize, head_dim: usize, blocks: &[usize], limit: f64, seed: u64) -> Self {
        let mut rng = XorShift64::new(seed);
        let cols = blocks.iter().sum();
        Self {
            q: GuardedMatrix::random((rows, head_dim), 1, limit, &mut rng),
            k: GuardedMatrix::random((cols, head_dim), 2, limit, &mut rng),
            v: GuardedMatrix::random((cols, head_dim), 3, 1.0, &mut rng),
            scale: 0.25,
            blocks: blocks.to_vec(),
        }
    }

    /// What a graph does: four tasks a block.
    fn run(&mut self) -> GuardedMatrix {
        let (rows, head_dim) = (self.q.rows, self.q.cols);
        let mut out = GuardedMatrix::unset((rows, head_dim), 4);
        let [mut m, mut l, mut m_acc, mut l_acc] =
            [(); 4].map(|()| GuardedMatrix::unset((1, rows), 0));
        let [mut o, mut o_acc] = [(); 2].map(|()| GuardedMatrix::unset((rows, head_dim), 2));
        let [m, l, m_acc, l_acc] =
            [&mut m, &mut l, &mut m_acc, &mut l_acc].map(GuardedMatrix::address);
        let (o_ld, out_ld) = (o.stride(), out.stride());
        let [o, o_acc, out_address] = [&mut o, &mut o_acc, &mut out].map(GuardedMatrix::address);
        let [q_ld, k_ld, v_ld] = [&self.q, &self.k, &self.v].map(GuardedMatrix::stride);
        let [q, mut k, mut v] = [&mut self.q, &mut self.k, &mut self.v].map(GuardedMatrix::address);
        let (r, h) = (rows as u64, head_dim as u64);
        for (i, &cols) in self.blocks.iter().enumerate() {
            let mut s = GuardedMatrix::unset((rows, cols), 1);
            let (s_ld, cols) = (s.stride(), cols as u64);
            let s = s.address();
            let scale = scalar_word(self.scale);
            call("attention_qk", &[q, k, s, r, cols, h, q_ld, k_ld, s_ld]);
            call("attention_softmax_partial", &[s, s, m, l, r, cols, s_ld, s_ld, scale]);
            call("attention_pv", &[s, v, o, r, cols, h, s_ld, v_ld, o_ld]);
            let flags = position(i, self.blocks.len()).bits();
            let update = [m, l, o, m_acc, l_acc, o_acc, out_address, r, h, o_ld, out_ld, flags];
            call("attention_update", &update);
            (k, v) = (k + cols * k_ld * 4, v + cols * v_ld * 4);
        }
        out.assert_guards();
        out
    }

    /// Each weight has a relative error from its exponent: that of the dot product, the rounding of
    /// `scale * s`, and the roundings of the differences of maxima, which add up to at most the
    /// range of the scores; then 2 `U` for its exp and 4 `U` for every merge (exp, product, sum).
    /// Summing adds `gamma` of the roundings. The maxima themselves cancel. Numerator and
    /// denominator both have this error.
    fn check(&self, out: &GuardedMatrix) {
        let (cols, head_dim) = (self.k.rows, self.q.cols);
        let scale = f64::from(self.scale);
        for row in 0..self.q.rows {
            let products = |c: usize| {
                (0..head_dim).map(move |i| self.q.f64_at(row, i) * self.k.f64_at(c, i) * scale)
            };
            let scores: Vec<f64> = (0..cols).map(|c| products(c).sum()).collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let min = scores.iter().copied().fold(f64::INFINITY, f64::min);
            let dot_error =
                |c| gamma(head_dim.div_ceil(4) + 3) * products(c).map(f64::abs).sum::<f64>();
            let exponent_error =
                (0..cols).map(|c| dot_error(c) + U * scores[c].abs()).fold(0.0, f64::max);
            let exponent_error = exponent_error + U * (max - min);
            let merges = 4 * self.blocks.len();
            let one_side = exponent_error.exp_m1() + gamma(2 + merges + cols);
            let relative = (2.0 * one_side + U) * (1.0 + 2.0 * one_side);
            let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
            let total: f64 = weights.iter().sum();
            for i in 0..head_dim {
                let weighted = |c: usize| weights[c] * self.v.f64_at(c, i) / total;
                let exact: f64 = (0..cols).map(weighted).sum();
                let magnitude: f64 = (0..cols).map(|c| weighted(c).abs()).sum();
                let what = || format!("blocks {:?}, {row}, {i}", self.blocks);
                assert_close(out.at(row, i), exact, relative * magnitude, what);
            }
        }
    }
}

fn position(block: usize, blocks: usize) -> UpdateFlags {
    let mut flags = UpdateFlags::empty();
    flags.set(UpdateFlags::FIRST, block == 0);
    flags.set(UpdateFlags::LAST, block + 1 == blocks);
    flags
}

#[test]
fn blocks_equal_one_softmax() {
    let blockings: [&[usize]; 5] =
        [&[1], &[64], &[16, 16, 16, 16], &[7, 33, 1, 16], &[1, 2, 3, 4, 5, 6]];
    for (seed, blocks) in (0..).zip(blockings) {
        for (rows, head_dim) in [(1, 1), (4, 16), (7, 33), (16, 64)] {
            let mut attention = Attention::random(rows, head_dim, blocks, 2.0, seed);
            let out = attention.run();
            attention.check(&out);
        }
    }
}

#[test]
fn blocks_with_scores_of_ten_thousand_equal_one_softmax() {
    // 0.25 * 16 * 50 * 50 = 1e4; with scores that far apart one weight is nearly everything.
    for seed in 10..20 {
        let mut attention = Attention::random(5, 16, &[9, 16, 3], 50.0, seed);
        let out = attention.run();
        attention.check(&out);
    }
}

#[test]
fn a_maximum_that_rises_or_falls_from_block_to_block() {
    for direction in [1.0, -1.0] {
        let mut attention = Attention::random(3, 8, &[4; 8], 1.0, 30);
        let step = |c: usize| f32::from(u16::try_from(c / 4).unwrap()) * direction;
        attention.q = GuardedMatrix::new((3, 8), 1, |_, _| 4.0);
        let k = attention.k.clone();
        attention.k = GuardedMatrix::new((32, 8), 2, |c, i| k.at(c, i) + step(c));
        let out = attention.run();
        attention.check(&out);
    }
}

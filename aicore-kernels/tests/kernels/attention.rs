//! `attention_softmax_partial` and the single step of `attention_update`.

use pto_aicore_kernels::UpdateFlags;
use pto_aicore_kernels::args::scalar_word;

use crate::support::{GuardedMatrix, LENGTHS, TINY, U, XorShift64, assert_close, call, gamma};

struct Block {
    p: GuardedMatrix,
    m: GuardedMatrix,
    l: GuardedMatrix,
}

fn softmax(s: &mut GuardedMatrix, p_gap: usize, scale: f32) -> Block {
    let (rows, cols) = (s.rows, s.cols);
    let mut block = Block {
        p: GuardedMatrix::unset((rows, cols), p_gap),
        m: GuardedMatrix::unset((1, rows), 0),
        l: GuardedMatrix::unset((1, rows), 0),
    };
    let (p_ld, s_ld) = (block.p.stride(), s.stride());
    let Block { p, m, l } = &mut block;
    let out = [p.address(), m.address(), l.address()];
    let shape = [rows as u64, cols as u64];
    let scale = scalar_word(scale);
    let kernel = "attention_softmax_partial";
    call(kernel, &[s.address(), out[0], out[1], out[2], shape[0], shape[1], s_ld, p_ld, scale]);
    for operand in [p, m, l] {
        operand.assert_guards();
    }
    block
}

/// The bounds, with `x = scale * s` and `m` its maximum, both rounded: `m` has a relative error of
/// `U`. The exponent `x - m` has an absolute one of `U (|x| + |m| + |x - m|)`, and exp one of 2
/// `U`. To the sum each element brings its own, and `gamma(cols / 8 + 4)`.
fn check_row(s: &GuardedMatrix, block: &Block, row: usize, scale: f32) {
    let x: Vec<f64> = s.row(row).iter().map(|&s| f64::from(s) * f64::from(scale)).collect();
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let what = || format!("{} x {}, row {row}", s.rows, s.cols);
    assert_close(block.m.at(0, row), max, U * max.abs(), what);
    let (mut sum, mut sum_error) = (0.0, 0.0);
    for (col, x) in x.iter().enumerate() {
        let exponent_error = U * (x.abs() + max.abs() + (x - max).abs()) * (1.0 + 4.0 * U);
        let p = (x - max).exp();
        let tolerance = p * ((exponent_error).exp_m1() + 2.0 * U) * (1.0 + 4.0 * U) + TINY;
        assert_close(block.p.at(row, col), p, tolerance, what);
        sum += p;
        sum_error += tolerance;
    }
    let tolerance = sum_error + gamma(s.cols / 8 + 4) * (sum + sum_error);
    assert_close(block.l.at(0, row), sum, tolerance, what);
}

#[test]
fn softmax_partial_is_within_its_bounds() {
    let mut rng = XorShift64::new(7);
    for (limit, scale) in [(1.0, 1.0), (30.0, 0.125), (1e4, 1.0), (1e4, -0.3), (5.0, 0.0)] {
        for cols in LENGTHS.into_iter().filter(|&cols| cols > 0) {
            let mut s = GuardedMatrix::random((3, cols), 2, limit, &mut rng);
            let block = softmax(&mut s, 1, scale);
            for row in 0..3 {
                check_row(&s, &block, row, scale);
            }
        }
    }
}

#[test]
fn softmax_partial_in_place_has_the_same_bits() {
    let mut rng = XorShift64::new(8);
    for cols in LENGTHS {
        let mut s = GuardedMatrix::random((5, cols), 3, 20.0, &mut rng);
        let block = softmax(&mut s, 3, 0.7);
        let (mut m, mut l) = (GuardedMatrix::unset((1, 5), 0), GuardedMatrix::unset((1, 5), 0));
        let (address, ld) = (s.address(), s.stride());
        let (rows, cols) = (5, cols as u64);
        let out = [m.address(), l.address()];
        let scale = scalar_word(0.7);
        let kernel = "attention_softmax_partial";
        call(kernel, &[address, address, out[0], out[1], rows, cols, ld, ld, scale]);
        assert_eq!(
            [s.bits(), m.bits(), l.bits()],
            [block.p.bits(), block.m.bits(), block.l.bits()]
        );
    }
}

#[test]
fn softmax_partial_of_infinities_and_nan() {
    let inf = f32::INFINITY;
    let rows = [[-inf, -inf, -inf], [-inf, 2.0, -inf], [inf, 1.0, 2.0], [f32::NAN, 1.0, 2.0]];
    let block = softmax(&mut GuardedMatrix::new((4, 3), 0, |row, col| rows[row][col]), 0, 1.0);
    assert_eq!((block.m.at(0, 0), block.l.at(0, 0), block.p.row(0)), (-inf, 0.0, &[0.0; 3][..]));
    assert_eq!((block.m.at(0, 1), block.l.at(0, 1)), (2.0, 1.0));
    assert_eq!(block.p.row(1), [0.0, 1.0, 0.0]);
    assert!(block.l.at(0, 2).is_nan() && block.l.at(0, 3).is_nan() && block.m.at(0, 3).is_nan());
}

#[test]
fn softmax_partial_of_no_columns_is_a_masked_row() {
    let block = softmax(&mut GuardedMatrix::unset((2, 0), 0), 0, 1.0);
    assert_eq!((block.m.row(0), block.l.row(0)), (&[f32::NEG_INFINITY; 2][..], &[0.0; 2][..]));
}

/// One call of `attention_update` on one row of one element.
fn update(block: [f32; 3], acc: [f32; 3], flags: UpdateFlags) -> ([f32; 3], Option<f32>) {
    let [mut m, mut l, mut o] = block.map(|value| GuardedMatrix::vector(&[value]));
    let [mut m_acc, mut l_acc, mut o_acc] = acc.map(|value| GuardedMatrix::vector(&[value]));
    let mut out = GuardedMatrix::unset((1, 1), 0);
    let args = [&mut m, &mut l, &mut o, &mut m_acc, &mut l_acc, &mut o_acc, &mut out];
    let mut words: Vec<u64> = args.into_iter().map(GuardedMatrix::address).collect();
    words.extend([1, 1, 1, 1, flags.bits()]);
    call("attention_update", &words);
    for operand in [&m_acc, &l_acc, &o_acc, &out] {
        operand.assert_guards();
    }
    let untouched = out.bits() == GuardedMatrix::unset((1, 1), 0).bits();
    let acc = [m_acc.at(0, 0), l_acc.at(0, 0), o_acc.at(0, 0)];
    (acc, (!untouched).then(|| out.at(0, 0)))
}

#[test]
fn update_first_does_not_read_and_last_alone_writes_out() {
    let unset = [f32::NAN; 3];
    let block = [1.0, 4.0, 6.0];
    assert_eq!(update(block, unset, UpdateFlags::FIRST), (block, None));
    assert_eq!(update(block, unset, UpdateFlags::all()), (block, Some(1.5)));
    assert_eq!(update(block, block, UpdateFlags::empty()), ([1.0, 8.0, 12.0], None));
    assert_eq!(update(block, block, UpdateFlags::LAST), ([1.0, 8.0, 12.0], Some(1.5)));
    // Unknown flags do not matter.
    let unknown = UpdateFlags::from_bits_retain(!3 | 2);
    assert_eq!(update(block, block, unknown), ([1.0, 8.0, 12.0], Some(1.5)));
}

#[test]
fn update_ignores_masked_blocks_at_every_position() {
    let (masked, block) = ([f32::NEG_INFINITY, 0.0, 0.0], [-3.0, 2.0, 5.0]);
    assert_eq!(update(masked, block, UpdateFlags::LAST), (block, Some(2.5)));
    assert_eq!(update(block, masked, UpdateFlags::LAST), (block, Some(2.5)));
    assert_eq!(update(masked, masked, UpdateFlags::LAST), (masked, Some(0.0)));
    assert_eq!(update(masked, [f32::NAN; 3], UpdateFlags::all()), (masked, Some(0.0)));
}

#[test]
fn update_keeps_a_nan() {
    for i in 0..3 {
        let mut bad = [1.0, 2.0, 3.0];
        bad[i] = f32::NAN;
        let (_, out) = update(bad, [1.0, 2.0, 3.0], UpdateFlags::LAST);
        assert!(out.unwrap().is_nan(), "in the block, {i}");
        let (_, out) = update([1.0, 2.0, 3.0], bad, UpdateFlags::LAST);
        assert!(out.unwrap().is_nan(), "in the accumulator, {i}");
    }
}

#[test]
fn update_with_distant_maxima_keeps_the_larger() {
    let (small, large) = ([-1e4, 3.0, 5.0], [1e4, 2.0, 8.0]);
    assert_eq!(update(small, large, UpdateFlags::LAST), (large, Some(4.0)));
    assert_eq!(update(large, small, UpdateFlags::LAST), (large, Some(4.0)));
}

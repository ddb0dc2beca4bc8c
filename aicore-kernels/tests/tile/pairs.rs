//! Functions of pairs and comparisons, on every type, in every spread.

use std::cmp::Ordering;

use pto_aicore_kernels::tile::{Binary, Compare, DType, Op, Spread, TileType, spread};

use crate::number::{Float, Integer, Number, SplitMix64, is_same, read, write};
use crate::rig::{Small, V};

const ROWS: u16 = 6;
const COLS: u16 = 19;

/// Which element of the second operand meets row `r`, column `c`.
type Meets = fn(usize, usize) -> usize;

/// The second operand of each spread, and which of its elements meets row `r`, column `c`.
fn operands(dtype: DType) -> [(Spread, TileType, Meets); 5] {
    let tile = |rows, cols| TileType::tile(dtype, rows, cols);
    [
        (Spread::Same, tile(ROWS, COLS), |r, c| r * usize::from(COLS) + c),
        (Spread::Row, tile(ROWS, 1), |r, _| r),
        (Spread::Row, tile(1, ROWS), |r, _| r),
        (Spread::Col, tile(1, COLS), |_, c| c),
        (Spread::One, tile(1, 1), |_, _| 0),
    ]
}

fn reference(function: Binary, a: Number, b: Number) -> Number {
    let nan = |a: f64, b: f64| if a.is_nan() || b.is_nan() { Some(f64::NAN) } else { None };
    match (a, b) {
        (Float(a), Float(b)) => Float(match function {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::Max => nan(a, b).unwrap_or(if b > a { b } else { a }),
            Binary::Min => nan(a, b).unwrap_or(if b < a { b } else { a }),
        }),
        (Integer(a), Integer(b)) => Integer(match function {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a.wrapping_mul(b),
            Binary::Div => a / b,
            Binary::Max => a.max(b),
            Binary::Min => a.min(b),
        }),
        _ => panic!("two kinds"),
    }
}

fn compared(function: Compare, a: Number, b: Number) -> bool {
    let order = a.partial_cmp(&b);
    match function {
        Compare::Less => order == Some(Ordering::Less),
        Compare::LessEqual => order.is_some_and(Ordering::is_le),
        Compare::Greater => order == Some(Ordering::Greater),
        Compare::GreaterEqual => order.is_some_and(Ordering::is_ge),
        Compare::Equal => order == Some(Ordering::Equal),
        Compare::NotEqual => order != Some(Ordering::Equal),
    }
}

/// Random elements; without zeros, where integers are divided by them.
fn elements(random: &mut SplitMix64, dtype: DType, count: usize, has_zero: bool) -> Vec<u8> {
    let is_zero = |bytes: &[u8]| !has_zero && bytes.iter().all(|byte| *byte == 0);
    let next = |_| loop {
        let element = random.element(dtype);
        if !is_zero(&element) {
            return element;
        }
    };
    (0..count).flat_map(next).collect()
}

#[test]
fn every_pair_of_every_type_in_every_spread() {
    let mut random = SplitMix64(31);
    for dtype in DType::ALL {
        for function in Binary::ALL.iter().copied() {
            for (spread, second, index) in operands(dtype) {
                let first = TileType::tile(dtype, ROWS, COLS);
                let ops = vec![Op::Binary { function, a: V(0), b: V(1), spread }];
                let small = Small { inputs: vec![first, second], output: first, ops };
                let a = random.elements(dtype, first.elements());
                let has_zero = function != Binary::Div || dtype.is_float();
                let b = elements(&mut random, dtype, second.elements(), has_zero);
                let (out, _) = small.run(&[a.clone(), b.clone()]);
                for (at, (r, c)) in cells().enumerate() {
                    let a = read(dtype, &a[at * dtype.bytes()..][..dtype.bytes()]);
                    let b = read(dtype, &b[index(r, c) * dtype.bytes()..][..dtype.bytes()]);
                    let expected = write(dtype, reference(function, a, b));
                    let found = out.element(dtype, at);
                    let name = function.name();
                    assert!(
                        is_same(dtype, found, &expected),
                        "{name} {spread:?} {dtype}: {a:?}, {b:?}: {found:?}, not {expected:?}"
                    );
                }
            }
        }
    }
}

fn cells() -> impl Iterator<Item = (usize, usize)> {
    (0..usize::from(ROWS)).flat_map(|r| (0..usize::from(COLS)).map(move |c| (r, c)))
}

#[test]
fn every_comparison_of_every_type_in_every_spread() {
    let mut random = SplitMix64(32);
    for dtype in DType::ALL {
        for function in Compare::ALL.iter().copied() {
            for (spread, second, index) in operands(dtype) {
                let first = TileType::tile(dtype, ROWS, COLS);
                let ops = vec![Op::Compare { function, a: V(0), b: V(1), spread }];
                let output = first.with(DType::U8);
                let small = Small { inputs: vec![first, second], output, ops };
                let a = random.elements(dtype, first.elements());
                let b = random.elements(dtype, second.elements());
                let (out, _) = small.run(&[a.clone(), b.clone()]);
                for (at, (r, c)) in cells().enumerate() {
                    let a = read(dtype, &a[at * dtype.bytes()..][..dtype.bytes()]);
                    let b = read(dtype, &b[index(r, c) * dtype.bytes()..][..dtype.bytes()]);
                    let expected = u8::from(compared(function, a, b));
                    assert_eq!(
                        out.bytes()[at],
                        expected,
                        "{} {dtype}: {a:?}, {b:?}",
                        function.name()
                    );
                }
            }
        }
    }
}

#[test]
fn a_scalar_may_come_first() {
    let tile = TileType::tile(DType::F32, 3, 5);
    let bits = u64::from(2.0f32.to_bits());
    let ops = vec![
        Op::Constant { dtype: DType::F32, bits },
        Op::Binary { function: Binary::Sub, a: V(1), b: V(0), spread: Spread::FirstOne },
    ];
    let small = Small { inputs: vec![tile], output: tile, ops };
    let x: Vec<f32> = (0..15u8).map(f32::from).collect();
    let (out, cycles) = small.run(&[bytemuck::cast_slice(&x).to_vec()]);
    let expected: Vec<f32> = x.iter().map(|x| 2.0 - x).collect();
    assert_eq!((bytemuck::cast_slice::<u8, f32>(out.bytes()), cycles), (&*expected, 45));
}

#[test]
fn shapes_choose_their_spread() {
    let tile = |rows, cols| TileType::tile(DType::F32, rows, cols);
    let scalar = TileType::scalar(DType::F32);
    for (a, b, expected) in [
        (tile(4, 8), tile(4, 8), Some(Spread::Same)),
        (tile(4, 8), tile(4, 1), Some(Spread::Row)),
        (tile(4, 8), tile(1, 4), Some(Spread::Row)),
        (tile(4, 8), tile(1, 8), Some(Spread::Col)),
        (tile(4, 8), tile(8, 1), Some(Spread::Col)),
        (tile(8, 8), tile(1, 8), Some(Spread::Row)),
        (tile(4, 8), scalar, Some(Spread::One)),
        (scalar, tile(4, 8), Some(Spread::FirstOne)),
        (scalar, scalar, Some(Spread::Same)),
        (tile(4, 8), tile(2, 8), None),
        (tile(4, 1), tile(4, 8), None),
    ] {
        assert_eq!(spread(a, b), expected, "{a} and {b}");
    }
}

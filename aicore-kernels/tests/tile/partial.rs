//! Partial tiles: what does not count is never read, written or counted.

use pto_aicore_kernels::tile::op::Moves;
use pto_aicore_kernels::tile::{Binary, DType, FaultCause, Op, Reduce, Spread, TileType, Unary};

use crate::rig::{Small, V};

fn floats(bytes: &[u8]) -> &[f32] {
    bytemuck::cast_slice(bytes)
}

/// The output before a run, as a float.
fn untouched() -> f32 {
    f32::from_bits(0xA5A5_A5A5)
}

#[test]
fn a_softmax_of_a_remainder() {
    let tile = TileType::tile(DType::F32, 4, 8);
    let binary = |function, a, b| Op::Binary { function, a: V(a), b: V(b), spread: Spread::Row };
    let ops = vec![
        Op::Reduce { function: Reduce::RowMax, x: V(0) },
        binary(Binary::Sub, 0, 1),
        Op::Unary { function: Unary::Exp, x: V(2) },
        Op::Reduce { function: Reduce::RowSum, x: V(3) },
        binary(Binary::Div, 3, 4),
    ];
    let small = Small { inputs: vec![tile], output: tile, ops };
    // What does not count is NaN, and would spoil every sum.
    let mut x = vec![f32::NAN; 32];
    for r in 0..3 {
        for c in 0..5 {
            x[r * 8 + c] = (r * 5 + c) as f32 * 0.25;
        }
    }
    let (out, cycles) =
        small.run_partial(&[bytemuck::cast_slice(&x).to_vec()], &[[3, 5], [3, 5]]).unwrap();
    assert_eq!(cycles, 15 + 3 + 15 + 15 + 3 + 15 + 15);
    let out = floats(out.bytes());
    for r in 0..4 {
        for c in 0..8 {
            let found = out[r * 8 + c];
            if r >= 3 || c >= 5 {
                assert_eq!(found.to_bits(), untouched().to_bits(), "{r}, {c}");
                continue;
            }
            let total: f64 = (0..5).map(|i| (f64::from(i) * 0.25).exp()).sum();
            let exact = (c as f64 * 0.25).exp() / total;
            assert!((f64::from(found) - exact).abs() < 1e-7, "{r}, {c}: {found}, not {exact}");
        }
    }
}

#[test]
fn a_mean_divides_by_what_counts() {
    let tile = TileType::tile(DType::F32, 2, 8);
    let output = TileType::tile(DType::F32, 2, 1);
    let ops = vec![Op::Reduce { function: Reduce::RowMean, x: V(0) }];
    let small = Small { inputs: vec![tile], output, ops };
    let x: Vec<f32> = (0..16u8).map(f32::from).collect();
    let (out, _) =
        small.run_partial(&[bytemuck::cast_slice(&x).to_vec()], &[[2, 3], [2, 1]]).unwrap();
    assert_eq!(floats(out.bytes()), [1.0, 9.0]);
}

#[test]
fn a_product_of_remainders() {
    let tile = TileType::tile(DType::F32, 8, 8);
    let moves = Moves::default();
    let ops = vec![Op::Matmul { a: V(0), b: V(1), acc: None, moves }];
    let small = Small { inputs: vec![tile, tile], output: tile, ops };
    let part = |rows: usize, cols: usize| {
        let mut x = vec![f32::NAN; 64];
        for r in 0..rows {
            for c in 0..cols {
                x[r * 8 + c] = (r * 3 + c) as f32;
            }
        }
        x
    };
    let (a, b) = (part(5, 3), part(3, 6));
    let inputs = [bytemuck::cast_slice(&a).to_vec(), bytemuck::cast_slice(&b).to_vec()];
    let (out, cycles) = small.run_partial(&inputs, &[[5, 3], [3, 6], [5, 6]]).unwrap();
    assert_eq!(cycles, 15 + 18 + 5 * 3 * 6 + 30);
    for (at, found) in floats(out.bytes()).iter().enumerate() {
        let (r, c) = (at / 8, at % 8);
        if r >= 5 || c >= 6 {
            assert_eq!(found.to_bits(), untouched().to_bits());
        } else {
            let expected: f32 = (0..3).map(|p| a[r * 8 + p] * b[p * 8 + c]).sum();
            assert_eq!(*found, expected);
        }
    }
    let refused = small.run_partial(&inputs, &[[5, 3], [4, 6], [5, 6]]).unwrap_err();
    assert_eq!(refused.cause, FaultCause::Remainders { a: [5, 3], b: [4, 6] });
    let refused = small.run_partial(&inputs, &[[5, 3], [3, 6], [6, 6]]).unwrap_err();
    assert_eq!(refused.cause, FaultCause::StoreTooSmall { source: [5, 6], view: [6, 6] });
}

#[test]
fn columns_reduced_over_the_rows_that_count() {
    for function in [Reduce::ColSum, Reduce::ColMax] {
        let tile = TileType::tile(DType::F32, 6, 20);
        let output = TileType::tile(DType::F32, 1, 20);
        let small =
            Small { inputs: vec![tile], output, ops: vec![Op::Reduce { function, x: V(0) }] };
        let x: Vec<f32> =
            (0..120).map(|at| if at / 20 < 4 { at as f32 } else { f32::NAN }).collect();
        let input = [bytemuck::cast_slice(&x).to_vec()];
        let (out, cycles) = small.run_partial(&input, &[[4, 18], [1, 18]]).unwrap();
        assert_eq!(cycles, 72 + 18 + 18);
        for (c, found) in floats(out.bytes()).iter().enumerate().take(18) {
            let mut column = (0..4).map(|r| (r * 20 + c) as f32);
            let expected =
                if function == Reduce::ColSum { column.sum() } else { column.next_back().unwrap() };
            assert_eq!(*found, expected);
        }
    }
}

#[test]
fn where_nothing_counts_sums_are_zero_and_maxima_the_lowest() {
    let tile = TileType::tile(DType::F32, 4, 8);
    let x = bytemuck::cast_slice(&[3.0f32; 32]).to_vec();
    let rows = TileType::tile(DType::F32, 4, 1);
    let cols = TileType::tile(DType::F32, 1, 8);
    for (function, output, counted, extents, expected) in [
        (Reduce::RowSum, rows, [4, 0], [4, 1], 0.0),
        (Reduce::RowMax, rows, [4, 0], [4, 1], f32::NEG_INFINITY),
        (Reduce::ColSum, cols, [0, 8], [1, 8], 0.0),
        (Reduce::ColMax, cols, [0, 8], [1, 8], f32::NEG_INFINITY),
    ] {
        let ops = vec![Op::Reduce { function, x: V(0) }];
        let small = Small { inputs: vec![tile], output, ops };
        let (out, _) = small.run_partial(std::slice::from_ref(&x), &[counted, extents]).unwrap();
        assert!(floats(out.bytes()).iter().all(|found| *found == expected), "{}", function.name());
    }
    let ops = vec![Op::Matmul { a: V(0), b: V(1), acc: None, moves: Moves::default() }];
    let inputs = vec![TileType::tile(DType::F32, 4, 8), TileType::tile(DType::F32, 8, 4)];
    let output = TileType::tile(DType::F32, 4, 4);
    let small = Small { inputs, output, ops };
    let (out, _) = small.run_partial(&[x.clone(), x], &[[4, 0], [0, 4], [4, 4]]).unwrap();
    assert_eq!(floats(out.bytes()), [0.0; 16]);
}

#[test]
fn a_mask_counts_as_much_as_its_view() {
    let tile = TileType::tile(DType::U8, 2, 4);
    let ops = vec![Op::Load { param: 0, offset: [0, 0], mask: Some(V(1)) }];
    let small = Small { inputs: vec![tile, tile], output: tile, ops };
    let inputs = [vec![5; 8], vec![1, 0, 1, 0, 0, 1, 0, 1]];
    let (out, _) = small.run_partial(&inputs, &[[2, 3], [2, 4], [2, 3]]).unwrap();
    assert_eq!(out.bytes(), [5, 0, 5, 0xA5, 0, 5, 0, 0xA5]);
    let refused = small.run_partial(&inputs, &[[2, 4], [2, 3], [2, 4]]).unwrap_err();
    assert_eq!(refused.cause, FaultCause::Remainders { a: [2, 4], b: [2, 3] });
}

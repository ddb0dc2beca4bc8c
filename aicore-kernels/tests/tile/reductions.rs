//! Reductions of rows and columns on every type, and the sort.

use pto_aicore_kernels::tile::{DType, Op, Reduce, TileType};

use crate::number::{Float, Integer, Number, Random, read, ulps, write};
use crate::rig::{Small, V};

const ROWS: usize = 7;
/// Columns: blocks of 64 and of 16, whole ones and partial ones.
const COLS: [usize; 3] = [43, 64, 149];

fn is_by_rows(function: Reduce) -> bool {
    matches!(function, Reduce::RowSum | Reduce::RowMax | Reduce::RowMean)
}

fn result_type(function: Reduce, dtype: DType, cols: usize) -> TileType {
    let cols = u16::try_from(cols).unwrap();
    let dtype = match function {
        Reduce::RowMax | Reduce::ColMax => dtype.maximum(),
        _ => dtype.sum(),
    };
    if is_by_rows(function) { TileType::tile(dtype, 7, 1) } else { TileType::tile(dtype, 1, cols) }
}

/// The result, and the sum of the magnitudes that went into it.
fn reference(function: Reduce, line: &[Number]) -> (Number, f64) {
    match line[0] {
        Float(_) => {
            let line: Vec<f64> =
                line.iter().map(|x| if let Float(x) = x { *x } else { 0.0 }).collect();
            let size = line.iter().map(|x| x.abs()).sum();
            let sum: f64 = line.iter().sum();
            let most = line.iter().fold(f64::NEG_INFINITY, |a, b| {
                if b.is_nan() || a.is_nan() { f64::NAN } else { a.max(*b) }
            });
            let value = match function {
                Reduce::RowSum | Reduce::ColSum => sum,
                Reduce::RowMean => sum / line.len() as f64,
                Reduce::RowMax | Reduce::ColMax => most,
            };
            (Float(value), size)
        }
        Integer(_) => {
            let length = line.len() as i128;
            let line = line.iter().map(|x| if let Integer(x) = x { *x } else { 0 });
            let value = match function {
                Reduce::RowSum | Reduce::ColSum => line.sum(),
                Reduce::RowMean => line.sum::<i128>() / length,
                Reduce::RowMax | Reduce::ColMax => line.max().unwrap(),
            };
            (Integer(value), 0.0)
        }
    }
}

#[test]
fn every_reduction_of_every_type() {
    let mut random = Random(41);
    for dtype in DType::ALL {
        for function in Reduce::ALL.iter().copied() {
            for cols in COLS {
                reduces(&mut random, dtype, function, cols);
            }
        }
    }
}

fn reduces(random: &mut Random, dtype: DType, function: Reduce, cols: usize) {
    let input = TileType::tile(dtype, 7, u16::try_from(cols).unwrap());
    let output = result_type(function, dtype, cols);
    let ops = vec![Op::Reduce { function, x: V(0) }];
    let small = Small { inputs: vec![input], output, ops };
    let x: Vec<u8> = (0..ROWS * cols).flat_map(|_| moderate(random, dtype)).collect();
    let (out, cycles) = small.run(std::slice::from_ref(&x));
    let results = output.elements() as u64;
    let steps = if function == Reduce::RowMean { 3 } else { 2 };
    assert_eq!(cycles, (ROWS * cols) as u64 + steps * results, "{}", function.name());
    let at =
        |r: usize, c: usize| read(dtype, &x[(r * cols + c) * dtype.bytes()..][..dtype.bytes()]);
    for place in 0..output.elements() {
        let line: Vec<Number> = if is_by_rows(function) {
            (0..cols).map(|c| at(place, c)).collect()
        } else {
            (0..ROWS).map(|r| at(r, place)).collect()
        };
        let (expected, size) = reference(function, &line);
        let found = out.element(output.dtype, place);
        assert_close(output.dtype, found, expected, size, function.name());
    }
}

/// A number whose sums do not overflow, or NaN now and then.
fn moderate(random: &mut Random, dtype: DType) -> Vec<u8> {
    if dtype.is_float() {
        let value = if random.below(200) == 0 { f64::NAN } else { random.unit() * 100.0 };
        return write(dtype, Float(value));
    }
    let low = if dtype.is_unsigned() { 0 } else { -50 };
    write(dtype, Integer(low + random.below(100) as i128))
}

fn assert_close(dtype: DType, found: &[u8], expected: Number, size: f64, name: &str) {
    let failed = || format!("{name} {dtype}: {:?}, not {expected:?}", read(dtype, found));
    match (read(dtype, found), expected) {
        // The reference adds in another order, in double precision.
        (Float(found), Float(exact)) => {
            let is_close =
                (found - exact).abs() <= size * 1e-14 || ulps(dtype, found, exact) <= 0.500_001;
            assert!(is_close || (found.is_nan() && exact.is_nan()), "{}", failed());
        }
        _ => assert_eq!(found, write(dtype, expected), "{}", failed()),
    }
}

#[test]
fn thirty_two_scores_are_sorted() {
    let (scores, indices) = (TileType::tile(DType::F32, 1, 32), TileType::tile(DType::U32, 1, 32));
    for k in 1..=32u16 {
        let mut random = Random(u64::from(k));
        let ops = vec![
            Op::Iota { dtype: DType::U32, cols: 32 },
            Op::Sort32 { scores: V(0), indices: V(1) },
            Op::TopK { pairs: V(2), k },
        ];
        let output = TileType::tile(DType::I32, 1, k);
        let small = Small { inputs: vec![scores], output, ops };
        let x: Vec<f32> = (0..indices.cols).map(|_| (random.unit() * 5.0).round() as f32).collect();
        let (out, cycles) = small.run(&[bytemuck::cast_slice(&x).to_vec()]);
        let mut expected: Vec<i32> = (0..32).collect();
        expected.sort_by(|a, b| x[*b as usize].total_cmp(&(x[*a as usize] + 0.0)).then(a.cmp(b)));
        let expected_scores: Vec<f32> = expected.iter().map(|i| x[*i as usize]).collect();
        let found: &[i32] = bytemuck::cast_slice(out.bytes());
        let found_scores: Vec<f32> = found.iter().map(|i| x[*i as usize]).collect();
        assert_eq!(found_scores, expected_scores[..usize::from(k)]);
        for pair in found.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            assert!(x[a as usize] > x[b as usize] || a < b, "equal scores by index: {found:?}");
        }
        assert_eq!(cycles, 32 + 5 * 32 + u64::from(k));
    }
}

//! Reductions of rows and columns on every type, and the sort.

use pto_aicore_kernels::tile::{DType, Op, Reduce, TileType};

use crate::number::{Float, Integer, Number, SplitMix64, read, ulps, write};
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
    let mut random = SplitMix64(41);
    for dtype in DType::ALL {
        for function in Reduce::ALL.iter().copied() {
            for cols in COLS {
                reduces(&mut random, dtype, function, cols);
            }
        }
    }
}

fn reduces(random: &mut SplitMix64, dtype: DType, function: Reduce, cols: usize) {
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
    for index in 0..output.elements() {
        let line: Vec<Number> = if is_by_rows(function) {
            (0..cols).map(|c| at(index, c)).collect()
        } else {
            (0..ROWS).map(|r| at(r, index)).collect()
        };
        let (expected, size) = reference(function, &line);
        let found = out.element(output.dtype, index);
        assert_close(output.dtype, found, expected, size, function.name());
    }
}

/// A number whose sums do not overflow, or NaN now and then.
fn moderate(random: &mut SplitMix64, dtype: DType) -> Vec<u8> {
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

/// The largest and the lowest element, and 0.
fn extremes(dtype: DType) -> [Number; 3] {
    let bits = 8 * dtype.bytes() as u32;
    match dtype {
        DType::F16 => [65_504.0, -65_504.0, 0.0].map(Float),
        DType::BF16 | DType::F32 | DType::F64 => {
            let exponent = if dtype == DType::F64 { 1022 } else { 126 };
            let largest = 2f64.powi(exponent) * 1.875;
            [largest, -largest, 0.0].map(Float)
        }
        _ if dtype.is_unsigned() => [(1 << bits) - 1, 0, 0].map(Integer),
        _ => [(1 << (bits - 1)) - 1, -(1 << (bits - 1)), 0].map(Integer),
    }
}

#[test]
fn the_mean_of_large_elements_does_not_overflow() {
    // Which of the extremes a row has: all of one, and one or two among others.
    let rows: [fn(usize) -> usize; 7] = [
        |_| 0,
        |_| 1,
        |at| at % 2,
        |at| if at == 0 { 0 } else { 1 },
        |at| if at == 7 { 2 } else { 0 },
        |at| if at < 2 { 1 } else { 2 },
        |at| usize::from(at == 20),
    ];
    for dtype in DType::ALL {
        for cols in COLS {
            let input = TileType::tile(dtype, 7, u16::try_from(cols).unwrap());
            let output = result_type(Reduce::RowMean, dtype, cols);
            let ops = vec![Op::Reduce { function: Reduce::RowMean, x: V(0) }];
            let small = Small { inputs: vec![input], output, ops };
            let of = extremes(dtype);
            let elements: Vec<Vec<Number>> =
                rows.iter().map(|row| (0..cols).map(|at| of[row(at)]).collect()).collect();
            let x: Vec<u8> = elements.iter().flatten().flat_map(|x| write(dtype, *x)).collect();
            let (out, _) = small.run(&[x]);
            for (row, line) in elements.iter().enumerate() {
                let found = out.element(output.dtype, row);
                match reference(Reduce::RowMean, line) {
                    (Integer(exact), _) => {
                        assert_eq!(read(output.dtype, found), Integer(exact), "{dtype} {row}");
                    }
                    (Float(_), _) => {
                        let quotient =
                            |x: &Number| if let Float(x) = x { x / cols as f64 } else { 0.0 };
                        let exact: f64 = line.iter().map(quotient).sum();
                        let Float(found) = read(output.dtype, found) else { panic!("{dtype}") };
                        let Float(largest) = of[0] else { panic!("{dtype}") };
                        let error = (found - exact).abs();
                        assert!(error <= largest * 1e-6, "{dtype} {row}: {found:e}, not {exact:e}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_mean_with_an_infinite_element_is_infinite_and_of_two_signs_nan() {
    let (inf, max) = (f64::INFINITY, f64::MAX);
    let rows = [
        ([inf, 1.0, max, max], inf),
        ([max, -inf, max, max], -inf),
        ([inf, max, -inf, 0.0], f64::NAN),
        ([f64::NAN, max, max, max], f64::NAN),
        ([max; 4], max),
        ([-max; 4], -max),
        ([max, max, -max, -max], 0.0),
    ];
    let input = TileType::tile(DType::F64, 7, 4);
    let ops = vec![Op::Reduce { function: Reduce::RowMean, x: V(0) }];
    let small = Small { inputs: vec![input], output: TileType::tile(DType::F64, 7, 1), ops };
    let x: Vec<f64> = rows.iter().flat_map(|(row, _)| *row).collect();
    let (out, _) = small.run(&[bytemuck::cast_slice(&x).to_vec()]);
    for (found, (row, exact)) in bytemuck::cast_slice::<u8, f64>(out.bytes()).iter().zip(rows) {
        assert!(*found == exact || (found.is_nan() && exact.is_nan()), "{row:?}: {found}");
    }
}

#[test]
fn thirty_two_scores_are_sorted() {
    let (scores, indices) = (TileType::tile(DType::F32, 1, 32), TileType::tile(DType::U32, 1, 32));
    for k in 1..=32u16 {
        let mut random = SplitMix64(u64::from(k));
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

//! Matrix products on every type, with and without an addend.

use pto_aicore_kernels::tile::op::Moves;
use pto_aicore_kernels::tile::view::tensor_of;
use pto_aicore_kernels::tile::{
    Call, DType, Direction, Interpreter, Kernel, Op, TileType, TileView,
};

use crate::number::{Float, Integer, Number, SplitMix64, read, ulps, write};
use crate::rig::{Small, V, load, name, store, tensor};

fn elements(random: &mut SplitMix64, dtype: DType, count: usize) -> Vec<u8> {
    let mut next = || {
        if dtype.is_float() {
            return write(dtype, Float(random.unit() * 3.0));
        }
        write(dtype, Integer(i128::from(random.bits() as u8)))
    };
    (0..count).flat_map(|_| next()).collect()
}

fn at(dtype: DType, bytes: &[u8], index: usize) -> Number {
    read(dtype, &bytes[index * dtype.bytes()..][..dtype.bytes()])
}

/// The sum in double precision or in 128 bits, and the sum of the magnitudes.
fn reference(pairs: &[(Number, Number)], acc: Option<Number>) -> (Number, f64) {
    let (mut float, mut integer, mut size) = (0.0, 0i128, 0.0);
    for pair in pairs {
        match pair {
            (Float(a), Float(b)) => {
                float += a * b;
                size += (a * b).abs();
            }
            (Integer(a), Integer(b)) => integer = integer.wrapping_add(a * b),
            _ => panic!("two kinds"),
        }
    }
    match (acc, pairs[0].0) {
        (Some(Float(acc)), _) => (Float(acc + float), size + acc.abs()),
        (Some(Integer(acc)), _) => (Integer(acc + integer), 0.0),
        (None, Float(_)) => (Float(float), size),
        (None, Integer(_)) => (Integer(integer), 0.0),
    }
}

fn check(dtype: DType, [m, k, n]: [u16; 3], has_acc: bool, random: &mut SplitMix64) {
    let (a_tile, b_tile) = (TileType::tile(dtype, m, k), TileType::tile(dtype, k, n));
    let output = TileType::tile(dtype.sum(), m, n);
    let mut inputs = vec![a_tile, b_tile];
    inputs.extend(has_acc.then_some(output));
    let moves = Moves { left: true, right: false, result: true };
    let ops = vec![Op::Matmul { a: V(0), b: V(1), acc: has_acc.then_some(V(2)), moves }];
    let small = Small { inputs: inputs.clone(), output, ops };
    let data: Vec<Vec<u8>> =
        inputs.iter().map(|tile| elements(random, tile.dtype, tile.elements())).collect();
    let (out, cycles) = small.run(&data);
    let (rows, depth, cols) = (usize::from(m), usize::from(k), usize::from(n));
    let moved = rows * depth + rows * cols;
    let loads: usize = inputs.iter().map(|tile| tile.elements()).sum();
    assert_eq!(cycles, (loads + rows * depth * cols + moved + rows * cols) as u64);
    for r in 0..rows {
        for c in 0..cols {
            let pairs: Vec<(Number, Number)> = (0..depth)
                .map(|p| (at(dtype, &data[0], r * depth + p), at(dtype, &data[1], p * cols + c)))
                .collect();
            let acc = has_acc.then(|| at(output.dtype, &data[2], r * cols + c));
            let (expected, size) = reference(&pairs, acc);
            let found = out.element(output.dtype, r * cols + c);
            let failed = format!("{dtype} {m}x{k}x{n} at {r}, {c}: {found:?}, not {expected:?}");
            match (read(output.dtype, found), expected) {
                (Float(found), Float(exact)) => {
                    let is_close = (found - exact).abs() <= size * 1e-14
                        || ulps(output.dtype, found, exact) <= 0.500_001;
                    assert!(is_close, "{failed}");
                }
                _ => assert_eq!(found, write(output.dtype, expected), "{failed}"),
            }
        }
    }
}

#[test]
fn products_of_every_type_and_shape() {
    let mut random = SplitMix64(51);
    for dtype in DType::ALL {
        for shape in [
            [1, 1, 1],
            [4, 8, 8],
            [16, 16, 16],
            [5, 7, 9],
            [1, 33, 17],
            [3, 1, 8],
            [17, 40, 23],
            [8, 40, 32],
            [2, 5, 35],
        ] {
            check(dtype, shape, false, &mut random);
            check(dtype, shape, true, &mut random);
        }
    }
}

#[test]
fn random_shapes() {
    let mut random = SplitMix64(52);
    for _ in 0..150 {
        let mut extent = || u16::try_from(1 + random.below(40)).unwrap();
        let shape = [extent(), extent(), extent()];
        let dtype = DType::ALL[random.below(12)];
        check(dtype, shape, random.below(2) == 0, &mut random);
    }
}

/// The product of a tile of `rows` x `depth` and a tile of `depth` x 40, whose rows are `pitch` apart; with `overwrites`, the right tensor is overwritten between
/// its load and the product.
fn product_of_tensors(
    machine: Interpreter,
    [rows, depth]: [u16; 2],
    pitch: usize,
    overwrites: bool,
) -> Vec<f32> {
    let tile = |[rows, cols]: [u16; 2]| TileType::tile(DType::F32, rows, cols);
    let [left, right, sums] = [[rows, depth], [depth, 40], [rows, 40]].map(tile);
    let params = [
        tensor("a", Direction::In, left),
        tensor("b", Direction::InOut, right),
        tensor("c", Direction::Out, sums),
    ];
    let moves = Moves { left: false, right: false, result: false };
    let mut ops = vec![load(0), load(1), Op::Zeros { dtype: DType::F32, shape: [depth, 40] }];
    ops.extend(overwrites.then(|| store(1, 2)));
    ops.extend([Op::Matmul { a: V(0), b: V(1), acc: None, moves }, store(2, 3)]);
    let kernel = Kernel::check(name("overwrites"), &params, &ops).unwrap();
    let number = |at: usize| (at * 37 % 101) as f32 / 7.0 - 3.0;
    let [left_len, right_rows, sums_len] =
        [usize::from(rows) * usize::from(depth), depth.into(), usize::from(rows) * 40];
    let mut a: Vec<f32> = (0..left_len).map(number).collect();
    // The last row ends with the tensor.
    let mut b = vec![f32::NAN; (right_rows - 1) * pitch + 40];
    for (row, line) in b.chunks_mut(pitch).enumerate() {
        line.iter_mut().zip(0..40).for_each(|(to, col)| *to = number(row * 40 + col + 5));
    }
    let mut c = vec![0.0f32; sums_len];
    let views = [
        TileView::new(tensor_of(&mut a), 0, [depth.into(), 1], [rows, depth]),
        TileView::new(tensor_of(&mut b), 0, [i64::try_from(pitch).unwrap(), 1], [depth, 40]),
        TileView::new(tensor_of(&mut c), 0, [40, 1], [rows, 40]),
    ];
    let call = Call { tensors: &views, scalars: &[] };
    machine.run(&kernel, &call, &mut vec![0; kernel.scratch_words()]).unwrap();
    assert_eq!(b[0] == 0.0, overwrites);
    c
}

#[test]
fn a_product_has_the_values_that_were_loaded() {
    let target = Interpreter::all().next().unwrap();
    // Some are deeper than what one piece of a product has, and deep enough to be read however far their rows are apart.
    for shape in [[4, 16], [3, 33], [8, 64], [6, 150], [9, 150], [1, 290]] {
        let expected = product_of_tensors(target, shape, 40, false);
        assert!(expected.iter().all(|sum| *sum != 0.0 && sum.is_finite()));
        for machine in Interpreter::all() {
            for pitch in [40, 41, 64] {
                for overwrites in [false, true] {
                    let found = product_of_tensors(machine, shape, pitch, overwrites);
                    assert_eq!(found, expected, "{machine:?}, {shape:?}, {pitch}, {overwrites}");
                }
            }
        }
    }
}

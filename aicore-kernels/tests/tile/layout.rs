//! Columns taken apart and put together, broadcasts, selections, constants, masks, offsets.

use pto_aicore_kernels::tile::{
    Call, Compare, DType, Direction, Interpreter, Kernel, Op, Spread, TileType, TileView,
};

use crate::number::SplitMix64;
use crate::rig::{Memory, Small, V, load, name, store, tensor};

/// The elements of a tile of any type, by index.
fn pick(bytes: &[u8], dtype: DType, indices: impl Iterator<Item = usize>) -> Vec<u8> {
    indices.flat_map(|at| bytes[at * dtype.bytes()..][..dtype.bytes()].to_vec()).collect()
}

#[test]
fn slices_and_interleaving_of_every_type() {
    let mut random = SplitMix64(61);
    for dtype in DType::ALL {
        let input = TileType::tile(dtype, 5, 12);
        let half = TileType::tile(dtype, 5, 6);
        let x = random.elements(dtype, 60);
        let run = |output, ops| {
            Small { inputs: vec![input], output, ops }
                .run(std::slice::from_ref(&x))
                .0
                .bytes()
                .to_vec()
        };
        let even = (0..60).filter(|at| at % 2 == 0);
        let odd = (0..60).filter(|at| at % 2 == 1);
        assert_eq!(run(half, vec![Op::SliceEven { x: V(0) }]), pick(&x, dtype, even));
        assert_eq!(run(half, vec![Op::SliceOdd { x: V(0) }]), pick(&x, dtype, odd));
        let again = vec![
            Op::SliceEven { x: V(0) },
            Op::SliceOdd { x: V(0) },
            Op::Interleave { a: V(1), b: V(2) },
        ];
        assert_eq!(run(input, again), x, "{dtype}");
    }
}

#[test]
fn broadcasts_of_every_type() {
    let mut random = SplitMix64(62);
    for dtype in DType::ALL {
        for (rows, cols) in [(1u16, 6u16), (4, 1), (1, 1), (4, 6)] {
            let (input, output) = (TileType::tile(dtype, rows, cols), TileType::tile(dtype, 4, 6));
            let x = random.elements(dtype, input.elements());
            let ops = vec![Op::Broadcast { x: V(0), shape: [4, 6] }];
            let (out, _) = Small { inputs: vec![input], output, ops }.run(std::slice::from_ref(&x));
            let (rows, cols) = (usize::from(rows), usize::from(cols));
            let indices = (0..24).map(|at| (at / 6 % rows) * cols + at % 6 % cols);
            assert_eq!(out.bytes(), pick(&x, dtype, indices), "{dtype} {rows}x{cols}");
        }
    }
}

#[test]
fn selections_copy_from_one_of_two() {
    let mut random = SplitMix64(63);
    for dtype in DType::ALL {
        let tile = TileType::tile(dtype, 3, 11);
        let (a, b) = (random.elements(dtype, 33), random.elements(dtype, 33));
        let mask: Vec<u8> = (0..33).map(|_| random.below(3) as u8).collect();
        let ops = vec![Op::Select { mask: V(2), a: V(0), b: V(1) }];
        let inputs = vec![tile, tile, tile.with(DType::U8)];
        let (out, _) =
            Small { inputs, output: tile, ops }.run(&[a.clone(), b.clone(), mask.clone()]);
        let both = [&a, &b];
        let expected: Vec<u8> = (0..33)
            .flat_map(|at| pick(both[usize::from(mask[at] == 0)], dtype, std::iter::once(at)))
            .collect();
        assert_eq!(out.bytes(), expected, "{dtype}");
    }
}

#[test]
fn constants_rows_of_integers_and_zeros() {
    for dtype in DType::ALL {
        let tile = TileType::tile(dtype, 1, 40);
        let small = |op| Small { inputs: vec![tile], output: tile, ops: vec![op] };
        let x = vec![1; 40 * dtype.bytes()];
        let (zeros, cycles) =
            small(Op::Zeros { dtype, shape: [1, 40] }).run(std::slice::from_ref(&x));
        assert_eq!((zeros.bytes(), cycles), (&*vec![0; 40 * dtype.bytes()], 80));
        let (iota, _) = small(Op::Iota { dtype, cols: 40 }).run(std::slice::from_ref(&x));
        let last = crate::number::write(dtype, crate::number::Integer(39));
        assert_eq!(iota.element(dtype, 39), last);
    }
}

/// A kernel that copies where a mask is set, from an offset to an offset.
#[test]
fn masks_and_offsets() {
    let tile = TileType::tile(DType::F32, 2, 3);
    let params = [
        tensor("x", Direction::In, tile),
        tensor("mask", Direction::In, tile.with(DType::U8)),
        tensor("y", Direction::Out, tile),
    ];
    let ops = [
        load(1),
        Op::Load { param: 0, offset: [1, 1], mask: Some(V(0)) },
        Op::Store { param: 2, source: V(1), offset: [0, 1], mask: Some(V(0)) },
    ];
    let kernel = Kernel::check(name("masked"), &params, &ops).unwrap();
    let x: Vec<f32> = (0..12u8).map(f32::from).collect();
    let mut x = Memory::new(bytemuck::cast_slice(&x));
    let mut mask = Memory::new(&[1, 0, 2, 0, 0, 0]);
    let mut y = Memory::new(bytemuck::cast_slice(&[-1.0f32; 8]));
    let views = [
        TileView::new(x.cells(), 0, [4, 1], [2, 3]),
        TileView::new(mask.cells(), 0, [3, 1], [2, 3]),
        TileView::new(y.cells(), 0, [4, 1], [2, 3]),
    ];
    let call = Call { tensors: &views, scalars: &[] };
    // The third row of `x` and the last elements of `y` are outside or masked: never touched.
    Interpreter::new().run(&kernel, &call, &mut vec![0; kernel.scratch_words()]).unwrap();
    let expected = [-1.0f32, 5.0, -1.0, 7.0, -1.0, -1.0, -1.0, -1.0];
    assert_eq!(bytemuck::cast_slice::<u8, f32>(y.bytes()), expected);
}

#[test]
fn cycles_are_added_by_scalars() {
    let tile = TileType::tile(DType::I32, 1, 1);
    let constant = |value: u64| Op::Constant { dtype: DType::I64, bits: value };
    let params = [tensor("x", Direction::InOut, tile)];
    let ops = [
        load(0),
        constant(1000),
        constant(24),
        Op::Compare { function: Compare::Less, a: V(2), b: V(1), spread: Spread::Same },
        Op::Select { mask: V(3), a: V(1), b: V(2) },
        Op::AddCycles { x: V(4) },
        store(0, 0),
    ];
    let kernel = Kernel::check(name("waits"), &params, &ops).unwrap();
    let mut x = Memory::new(&[1, 0, 0, 0]);
    let views = [TileView::new(x.cells(), 0, [1, 1], [1, 1])];
    let call = Call { tensors: &views, scalars: &[] };
    let cycles = Interpreter::new().run(&kernel, &call, &mut vec![0; kernel.scratch_words()]);
    assert_eq!(cycles, Ok(1002));
}

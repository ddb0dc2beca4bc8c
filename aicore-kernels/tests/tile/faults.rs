//! Faults of a run: what leaves a tensor, divides by zero, or is called with the wrong things.

use pto_aicore_kernels::tile::{
    Binary, Call, DType, Direction, FaultCause, Interpreter, Kernel, Name, Op, Param, ParamKind,
    Spread, TileType, TileView,
};

use crate::rig::{Memory, V, load, name, store, tensor};

fn copies() -> Kernel {
    let tile = TileType::tile(DType::F32, 4, 8);
    let params = [tensor("x", Direction::In, tile), tensor("y", Direction::Out, tile)];
    Kernel::check(name("copies"), &params, &[load(0), store(1, 0)]).unwrap()
}

/// Runs the copy from a view of 32 elements to a whole tensor.
fn from(first: i64, strides: [i64; 2], counted: [u16; 2]) -> Result<u64, (String, FaultCause)> {
    let (mut x, mut y) = (Memory::new(&[0; 128]), Memory::new(&[0; 128]));
    let kernel = copies();
    let views = [
        TileView::new(x.cells(), first, strides, counted),
        TileView::new(y.cells(), 0, [8, 1], counted),
    ];
    let call = Call { tensors: &views, scalars: &[] };
    let result = Interpreter::new().run(&kernel, &call, &mut vec![0; kernel.scratch_words()]);
    result.map_err(|fault| (fault.to_string(), fault.cause))
}

#[test]
fn a_tile_that_leaves_its_tensor_names_kernel_operand_and_index() {
    assert_eq!(from(0, [8, 1], [4, 8]), Ok(64));
    let (text, cause) = from(1, [8, 1], [4, 8]).unwrap_err();
    assert_eq!(cause, FaultCause::OutOfTensor { at: [3, 7], element: 32, elements: 32 });
    assert_eq!(
        text,
        "Kernel copies, instruction 0 (load), operand x: the tile leaves its tensor at row 3, column 7: that is \
         element 32 of 32. Give the view a remainder, or choose another tile."
    );
    for (first, strides, counted, at, element) in [
        (-1, [8, 1], [4, 8], [0, 0], -1),
        (8, [8, 1], [4, 8], [3, 0], 32),
        (0, [8, -1], [4, 8], [0, 1], -1),
        (31, [-8, -1], [4, 8], [0, 0], 0),
        (0, [i64::MAX, i64::MAX], [4, 8], [0, 1], i64::MAX),
        (i64::MIN, [i64::MIN, 1], [4, 8], [0, 0], i64::MIN),
        (0, [9, 1], [4, 8], [3, 5], 32),
    ] {
        match from(first, strides, counted) {
            Ok(_) => assert_eq!((first, strides), (31, [-8, -1])),
            Err((_, cause)) => {
                assert_eq!(
                    cause,
                    FaultCause::OutOfTensor { at, element, elements: 32 },
                    "{first} {strides:?}"
                );
            }
        }
    }
    // A remainder keeps it inside.
    assert!(from(8, [8, 1], [3, 8]).is_ok() && from(0, [9, 1], [3, 8]).is_ok());
    assert!(from(-5, [8, 1], [0, 8]).is_ok(), "nothing is read of a tile without rows");
}

#[test]
fn a_store_that_leaves_its_tensor_writes_nothing() {
    let (mut x, mut y) = (Memory::new(&[1; 128]), Memory::new(&[7; 120]));
    let kernel = copies();
    let views =
        [TileView::new(x.cells(), 0, [8, 1], [4, 8]), TileView::new(y.cells(), 0, [8, 1], [4, 8])];
    let call = Call { tensors: &views, scalars: &[] };
    let fault =
        Interpreter::new().run(&kernel, &call, &mut vec![0; kernel.scratch_words()]).unwrap_err();
    assert_eq!(fault.cause, FaultCause::OutOfTensor { at: [3, 6], element: 30, elements: 30 });
    assert_eq!((fault.param, fault.instruction), (Some(name("y")), Some(1)));
    assert_eq!(y.bytes(), [7; 120]);
}

#[test]
fn an_integer_is_not_divided_by_zero() {
    let tile = TileType::tile(DType::I16, 2, 3);
    let params = [tensor("x", Direction::InOut, tile), tensor("d", Direction::In, tile)];
    let divide = Op::Binary { function: Binary::Div, a: V(0), b: V(1), spread: Spread::Same };
    let ops = [load(0), load(1), divide, store(0, 2)];
    let kernel = Kernel::check(name("divides"), &params, &ops).unwrap();
    let mut x = Memory::new(&[9; 12]);
    let mut d = Memory::new(bytemuck::cast_slice(&[1i16, 2, 3, 4, 0, 6]));
    let views =
        [TileView::new(x.cells(), 0, [3, 1], [2, 3]), TileView::new(d.cells(), 0, [3, 1], [2, 3])];
    let call = Call { tensors: &views, scalars: &[] };
    let fault =
        Interpreter::new().run(&kernel, &call, &mut vec![0; kernel.scratch_words()]).unwrap_err();
    assert_eq!(fault.cause, FaultCause::DivisionByZero { at: [1, 1], spread: Spread::Same });
    assert_eq!(
        fault.to_string(),
        "Kernel divides, instruction 2 (div): the divisor is zero at row 1, column 1."
    );
}

#[test]
fn calls_have_what_the_kernel_needs() {
    let tile = TileType::tile(DType::F32, 2, 2);
    let scalar = Param { name: Name::new("s").unwrap(), kind: ParamKind::Scalar(DType::F32) };
    let params = [tensor("x", Direction::InOut, tile), scalar];
    let add = Op::Binary { function: Binary::Add, a: V(0), b: V(1), spread: Spread::One };
    let ops = [load(0), Op::Scalar { param: 1 }, add, store(0, 2)];
    let kernel = Kernel::check(name("adds"), &params, &ops).unwrap();
    let mut x = Memory::new(bytemuck::cast_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0]));
    let run =
        |x: &mut Memory, from: usize, counted, scalars: &[u64], tensors: usize, words: usize| {
            let views = vec![TileView::new(&x.cells()[from..], 0, [2, 1], counted); tensors];
            let call = Call { tensors: &views, scalars };
            Interpreter::new().run(&kernel, &call, &mut vec![0; words]).map_err(|fault| fault.cause)
        };
    let words = kernel.scratch_words();
    let half = u64::from(0.5f32.to_bits());
    assert_eq!(run(&mut x, 0, [2, 2], &[half], 1, words), Ok(12));
    assert_eq!(bytemuck::cast_slice::<u8, f32>(x.bytes()), [1.5, 2.5, 3.5, 4.5, 5.0]);
    let tensors = |found| Err(FaultCause::Tensors { needed: 1, found });
    assert_eq!(run(&mut x, 0, [2, 2], &[half], 0, words), tensors(0));
    assert_eq!(run(&mut x, 0, [2, 2], &[half], 2, words), tensors(2));
    assert_eq!(
        run(&mut x, 0, [2, 2], &[], 1, words),
        Err(FaultCause::Scalars { needed: 1, found: 0 })
    );
    let view_too_large = Err(FaultCause::ViewTooLarge { view: [3, 2], tile: [2, 2] });
    assert_eq!(run(&mut x, 0, [3, 2], &[half], 1, words), view_too_large);
    assert_eq!(run(&mut x, 1, [2, 2], &[half], 1, words), Err(FaultCause::Misaligned));
    let scratch = Err(FaultCause::Scratch { needed: words, found: words - 1 });
    assert_eq!(run(&mut x, 0, [2, 2], &[half], 1, words - 1), scratch);
}

/// A tile whose columns are contiguous is the tensor transposed, whatever part of it counts.
#[test]
fn a_tile_may_be_seen_by_columns() {
    let (rows, cols) = (21, 19);
    let tile = TileType::tile(DType::F32, rows, cols);
    let params = [tensor("x", Direction::In, tile), tensor("y", Direction::Out, tile)];
    let kernel = Kernel::check(name("turns"), &params, &[load(0), store(1, 0)]).unwrap();
    let numbers: Vec<u32> =
        (0..cols.into()).flat_map(|c| (0..32).map(move |r| c * 100 + r)).collect();
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    for counted in [[21, 19], [16, 16], [8, 8], [7, 19], [21, 3], [1, 19], [21, 1], [9, 17]] {
        let (mut x, mut y) = (Memory::new(&bytes), Memory::new(&[0; 21 * 19 * 4]));
        let by_column = TileView::new(x.cells(), 2, [1, 32], counted);
        let views = [by_column, TileView::new(y.cells(), 0, [19, 1], counted)];
        let call = Call { tensors: &views, scalars: &[] };
        Interpreter::new().run(&kernel, &call, &mut vec![0; kernel.scratch_words()]).unwrap();
        let found: Vec<u32> =
            y.bytes().as_chunks::<4>().0.iter().map(|x| u32::from_le_bytes(*x)).collect();
        for (at, found) in (0_u32..).zip(found) {
            let (row, col) = (at / 19, at % 19);
            let is_counted = row < counted[0].into() && col < counted[1].into();
            let expected = if is_counted { col * 100 + row + 2 } else { 0 };
            assert_eq!(found, expected, "{counted:?} at row {row}, column {col}");
        }
    }
}

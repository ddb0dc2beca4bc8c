//! The reduction of collectives: every element type and operation, lengths around whole groups, and the tensor at every position between the parts.

use pto_abi::block::BlockContext;
use pto_aicore_kernels::combine::combine;
use pto_aicore_kernels::tile::DType;
use pto_graph::ElementType;
use pto_graph::group::{Reduction, part_stride};

use crate::number::{Float, Integer, SplitMix64, is_same, read, write};

/// Elements: fewer than a group, whole groups, and more.
const LENGTHS: [usize; 6] = [1, 15, 16, 17, 64, 100];

/// Memory that is aligned to every element type, with these bytes.
fn words(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0; bytes.len().div_ceil(8).max(1)];
    bytemuck::cast_slice_mut::<_, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

fn address(words: &mut [u64]) -> u64 {
    words.as_mut_ptr().expose_provenance() as u64
}

/// What two elements become. Half precision is computed in `f32`, and NaN is never dropped.
fn op(dtype: DType, left: &[u8], right: &[u8], reduction: Reduction) -> Vec<u8> {
    let number = match (read(dtype, left), read(dtype, right)) {
        (Float(x), Float(_)) if x.is_nan() => Float(x),
        (Float(_), Float(y)) if y.is_nan() => Float(y),
        (Float(x), Float(y)) => {
            let value = match reduction {
                Reduction::SUM => x + y,
                Reduction::PROD => x * y,
                Reduction::MAX => {
                    if y > x {
                        y
                    } else {
                        x
                    }
                }
                _ => {
                    if y < x {
                        y
                    } else {
                        x
                    }
                }
            };
            // A double is wide enough for one operation on singles.
            let single = |value| read(DType::F32, &write(DType::F32, Float(value)));
            if dtype == DType::F64 { Float(value) } else { single(value) }
        }
        (Integer(x), Integer(y)) => Integer(match reduction {
            Reduction::SUM => x + y,
            Reduction::PROD => x.wrapping_mul(y),
            Reduction::MAX => x.max(y),
            _ => x.min(y),
        }),
        _ => panic!("one type has integers and floats"),
    };
    write(dtype, number)
}

fn check(element: ElementType, dtype: DType) {
    let mut random = SplitMix64(7);
    let size = dtype.bytes();
    for length in LENGTHS {
        for (parts, before) in [(0, 0), (1, 0), (1, 1), (3, 0), (3, 2), (3, 3)] {
            for &reduction in Reduction::ALL {
                let stride = usize::try_from(part_stride(length as u64)).unwrap();
                let a = random.elements(dtype, length);
                let b = random.elements(dtype, stride * parts);
                let own = |at: usize| a[at * size..][..size].to_vec();
                let expected: Vec<u8> = (0..length)
                    .flat_map(|at| {
                        let part = |of: usize| b[(of * stride + at) * size..][..size].to_vec();
                        let first = (0..before).map(part);
                        let all = first.chain([own(at)]).chain((before..parts).map(part));
                        all.reduce(|left, right| op(dtype, &left, &right, reduction)).unwrap()
                    })
                    .collect();
                let how = u64::from(element.get())
                    | u64::from(reduction.get()) << 8
                    | (length as u64) << 16;
                let which = parts as u64 | (before as u64) << 32;
                let what = format!("{element:?} {reduction:?} {length} {parts} {before}");
                let assert_expected = |found: &[u8]| {
                    let all = found.chunks(size).zip(expected.chunks(size));
                    for (at, (found, expected)) in all.enumerate() {
                        let is_right = is_same(dtype, found, expected);
                        assert!(is_right, "{what}, element {at}: {found:?}, not {expected:?}");
                    }
                };
                let (mut a, mut b) = (words(&a), words(&b));
                let mut out = words(&vec![77; (length + 1) * size]);
                // Two blocks of unequal lengths.
                let each = length.div_ceil(2) as u64;
                for block in 0..2 {
                    let context = BlockContext { block, blocks: 2, lane: 0 }.word();
                    let operands = [address(&mut a), address(&mut b), address(&mut out)];
                    // SAFETY: so many elements of this type are there, and nothing else uses them.
                    unsafe { combine(operands, each, (how, which), context) };
                }
                let (found, rest) = bytemuck::cast_slice::<_, u8>(&out).split_at(length * size);
                assert_expected(found);
                assert_eq!(rest[..size], vec![77; size], "{what}: past the end");
                let context = BlockContext { block: 0, blocks: 1, lane: 0 }.word();
                let own = address(&mut a);
                // SAFETY: so many elements of this type are there, and nothing else uses them.
                unsafe {
                    combine([own, address(&mut b), own], length as u64, (how, which), context)
                };
                assert_expected(&bytemuck::cast_slice::<_, u8>(&a)[..length * size]);
            }
        }
    }
}

#[test]
fn every_type_is_reduced_in_the_order_of_the_parts() {
    for (element, dtype) in [
        (ElementType::F32, DType::F32),
        (ElementType::F16, DType::F16),
        (ElementType::BF16, DType::BF16),
        (ElementType::F64, DType::F64),
        (ElementType::I8, DType::I8),
        (ElementType::U8, DType::U8),
        (ElementType::I16, DType::I16),
        (ElementType::U16, DType::U16),
        (ElementType::I32, DType::I32),
        (ElementType::U32, DType::U32),
        (ElementType::I64, DType::I64),
        (ElementType::U64, DType::U64),
    ] {
        check(element, dtype);
    }
}

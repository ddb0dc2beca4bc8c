//! The reduction of collectives: every element type and operation, lengths beside whole groups, and the tensor at every place between the parts.

use pto_abi::block::BlockContext;
use pto_aicore_kernels::combine::combine;
use pto_aicore_kernels::tile::element::{Element, bf16, f16};
use pto_graph::ElementType;
use pto_graph::group::{Reduction, part_stride};

use crate::support::Random;

/// Elements: fewer than a group, whole groups, and more.
const LENGTHS: [usize; 6] = [1, 15, 16, 17, 64, 100];

fn address<T>(values: &mut [T]) -> u64 {
    values.as_mut_ptr().expose_provenance() as u64
}

/// What two elements become, by the bits of a wider type.
fn op<T: Element>(left: T, right: T, reduction: Reduction) -> T {
    use pto_aicore_kernels::tile::element::Number;
    let (left, right) = (left.widen(), right.widen());
    T::narrow(match reduction {
        Reduction::SUM => left.add(right),
        Reduction::PROD => left.mul(right),
        Reduction::MAX => left.larger(right),
        _ => left.smaller(right),
    })
}

fn check<T: Element + std::fmt::Debug>(element: ElementType) {
    let mut random = Random::new(7);
    for length in LENGTHS {
        for (parts, place) in [(0, 0), (1, 0), (1, 1), (3, 0), (3, 2), (3, 3)] {
            for &reduction in Reduction::ALL {
                let stride = usize::try_from(part_stride(length as u64)).unwrap();
                let mut draw = |count: usize| -> Vec<T> {
                    (0..count).map(|_| T::from_f32(random.within(9.0))).collect()
                };
                let (mut a, mut b) = (draw(length), draw(stride * parts));
                let expected: Vec<T> = (0..length)
                    .map(|at| {
                        let part = |of: usize| b[of * stride + at];
                        let before = (0..place).map(part);
                        let all = before.chain([a[at]]).chain((place..parts).map(part));
                        all.reduce(|left, right| op(left, right, reduction)).unwrap()
                    })
                    .collect();
                let how = u64::from(element.get())
                    | u64::from(reduction.get()) << 8
                    | (length as u64) << 16;
                let which = parts as u64 | (place as u64) << 32;
                let mut out = vec![T::from_f32(77.0); length + 1];
                // Two blocks of unequal lengths.
                let each = length.div_ceil(2) as u64;
                for block in 0..2 {
                    let context = BlockContext { block, blocks: 2, lane: 0 }.word();
                    let operands = [address(&mut a), address(&mut b), address(&mut out)];
                    // SAFETY: so many elements of this type are there, and nobody else uses them.
                    unsafe { combine(operands, each, (how, which), context) };
                }
                let what = format!("{element:?} {reduction:?} {length} {parts} {place}");
                assert_eq!(out[..length], expected, "{what}");
                assert_eq!(out[length], T::from_f32(77.0), "{what}: behind the end");
                let context = BlockContext { block: 0, blocks: 1, lane: 0 }.word();
                let own = address(&mut a);
                // SAFETY: as above.
                unsafe {
                    combine([own, address(&mut b), own], length as u64, (how, which), context)
                };
                assert_eq!(a, expected, "{what} in place");
            }
        }
    }
}

#[test]
fn every_type_is_reduced_in_the_order_of_the_parts() {
    check::<f32>(ElementType::F32);
    check::<f16>(ElementType::F16);
    check::<bf16>(ElementType::BF16);
    check::<f64>(ElementType::F64);
    check::<i8>(ElementType::I8);
    check::<u8>(ElementType::U8);
    check::<i16>(ElementType::I16);
    check::<u16>(ElementType::U16);
    check::<i32>(ElementType::I32);
    check::<u32>(ElementType::U32);
    check::<i64>(ElementType::I64);
    check::<u64>(ElementType::U64);
}

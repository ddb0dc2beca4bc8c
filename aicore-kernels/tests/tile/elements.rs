//! Conversions between element types.

use half::{bf16, f16};
use pto_aicore_kernels::tile::element::Element;
use pto_aicore_kernels::tile::{DType, Op, TileType};

use crate::number::{Float, Integer, SplitMix64, bits, is_same, read, write};
use crate::rig::{Small, V};

#[test]
fn every_half_becomes_the_same_single() {
    for bits in 0..=u16::MAX {
        let singles = [
            (DType::F16, f16::from_bits(bits).widen()),
            (DType::BF16, bf16::from_bits(bits).widen()),
        ];
        for (dtype, found) in singles {
            let exact = read(dtype, &bits.to_le_bytes());
            let exact = write(DType::F32, exact);
            assert!(is_same(DType::F32, &found.to_le_bytes(), &exact), "{dtype} {bits:#06x}");
        }
    }
}

#[test]
fn singles_round_to_the_nearest_half() {
    let mut random = SplitMix64(7);
    // Every neighbourhood of every half, and anything.
    let near = (0..=u16::MAX).flat_map(|bits| {
        let exact = f16::from_bits(bits).to_f32().to_bits();
        (-3i64..=3).chain([0xFFF, 0x1000, 0x1001]).map(move |d| (i64::from(exact) + d) as u32)
    });
    let any = (0..500_000).map(|_| random.bits() as u32).collect::<Vec<_>>();
    for single in near.chain(any) {
        let x = f32::from_bits(single);
        if x.is_nan() {
            assert!(f16::narrow(x).is_nan() && bf16::narrow(x).is_nan(), "{single:#010x}");
            continue;
        }
        let exact = Float(f64::from(x));
        assert_eq!(f16::narrow(x).bits(), bits(DType::F16, exact), "f16 of {single:#010x}");
        assert_eq!(bf16::narrow(x).bits(), bits(DType::BF16, exact), "bf16 of {single:#010x}");
    }
}

#[test]
fn doubles_are_rounded_once() {
    let mut random = SplitMix64(8);
    for _ in 0..300_000 {
        let half = f16::from_bits(random.bits() as u16).to_f64();
        let nudge = f64::from_bits((half * 1.0005).to_bits() ^ (random.bits() & 0xF));
        let tie = half + (half * 2f64.powi(-11)) + half * 2f64.powi(-40) * random.unit();
        for x in [nudge, tie, f64::from_bits(random.bits())] {
            if x.is_nan() {
                continue;
            }
            let (f, b) = (<f16 as Element>::from_f64(x), <bf16 as Element>::from_f64(x));
            assert_eq!(f.bits(), bits(DType::F16, Float(x)), "f16 of {x:e}");
            assert_eq!(b.bits(), bits(DType::BF16, Float(x)), "bf16 of {x:e}");
        }
    }
}

/// Converts elements on every machine and compares each result with the nearest element.
fn converts(from: DType, to: DType, x: &[u8]) {
    let input = TileType::tile(from, 64, 128);
    let ops = vec![Op::Convert { dtype: to, x: V(0) }];
    let small = Small { inputs: vec![input], output: input.with(to), ops };
    let size = from.bytes();
    for part in x.chunks(input.elements() * size) {
        let mut tile = part.to_vec();
        tile.resize(input.elements() * size, 0);
        let (out, cycles) = small.run(std::slice::from_ref(&tile));
        assert_eq!(cycles, 3 * 64 * 128);
        for (at, x) in part.chunks(size).enumerate() {
            let (x, found) = (read(from, x), out.element(to, at));
            let expected = write(to, x);
            assert!(
                is_same(to, found, &expected),
                "{from} to {to}: {x:?}: {found:?}, not {expected:?}"
            );
        }
    }
}

#[test]
fn every_type_becomes_every_type() {
    let mut random = SplitMix64(9);
    for from in DType::ALL {
        for to in DType::ALL {
            converts(from, to, &random.elements(from, 1_000));
        }
    }
}

#[test]
fn every_element_of_sixteen_bits_becomes_every_type() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for from in [DType::F16, DType::BF16, DType::I16, DType::U16] {
        for to in DType::ALL {
            converts(from, to, &all);
        }
    }
}

/// Sums of powers of two with neighbours: where a type has no more bits, these are halves of its last place, and next to them.
#[test]
fn numbers_near_the_middle_of_two_floats_are_rounded_once() {
    let sums = |a: u32| (0..=a).map(move |b| (1_i128 << a) + (1 << b));
    let near = (0..64).flat_map(sums).flat_map(|sum| [sum - 1, sum, sum + 1]);
    let signed: Vec<i128> = near.flat_map(|sum| [sum, -sum]).collect();
    for from in DType::ALL {
        let x: Vec<u8> = signed.iter().flat_map(|x| write(from, Integer(*x))).collect();
        for to in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            converts(from, to, &x);
        }
    }
}

//! Conversions between element types.

use half::{bf16, f16};
use pto_aicore_kernels::tile::element::Element;
use pto_aicore_kernels::tile::{DType, Op, TileType};

use crate::number::{Random, is_same, nearest_bf16, nearest_f16, read, write};
use crate::rig::{Small, V};

#[test]
fn every_half_becomes_the_same_single() {
    for bits in 0..=u16::MAX {
        let (f, b) = (f16::from_bits(bits), bf16::from_bits(bits));
        let is_same = |ours: f32, theirs: f32| {
            ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan())
        };
        assert!(is_same(f.widen(), f.to_f32()), "f16 {bits:#06x}");
        assert!(is_same(b.widen(), b.to_f32()), "bf16 {bits:#06x}");
    }
}

#[test]
fn singles_round_to_the_same_half() {
    let mut random = Random(7);
    // Every neighbourhood of every half, and anything.
    let near = (0..=u16::MAX).flat_map(|bits| {
        let exact = f16::from_bits(bits).to_f32().to_bits();
        (-3i64..=3).chain([0xFFF, 0x1000, 0x1001]).map(move |d| (i64::from(exact) + d) as u32)
    });
    let any = (0..2_000_000).map(|_| random.bits() as u32).collect::<Vec<_>>();
    for bits in near.chain(any) {
        let x = f32::from_bits(bits);
        if x.is_nan() {
            assert!(f16::narrow(x).is_nan() && bf16::narrow(x).is_nan(), "{bits:#010x}");
            continue;
        }
        assert_eq!(f16::narrow(x).to_bits(), f16::from_f32(x).to_bits(), "f16 of {bits:#010x}");
        assert_eq!(bf16::narrow(x).to_bits(), bf16::from_f32(x).to_bits(), "bf16 of {bits:#010x}");
    }
}

#[test]
fn doubles_are_rounded_once() {
    let mut random = Random(8);
    for _ in 0..1_000_000 {
        let half = f16::from_bits(random.bits() as u16).to_f64();
        let nudge = f64::from_bits((half * 1.0005).to_bits() ^ (random.bits() & 0xF));
        let tie = half + (half * 2f64.powi(-11)) + half * 2f64.powi(-40) * random.unit();
        for x in [nudge, tie, f64::from_bits(random.bits())] {
            if x.is_nan() {
                continue;
            }
            let (f, b) = (<f16 as Element>::from_f64(x), <bf16 as Element>::from_f64(x));
            assert_eq!(f.to_bits(), nearest_f16(x).to_bits(), "f16 of {x:e}");
            assert_eq!(b.to_bits(), nearest_bf16(x).to_bits(), "bf16 of {x:e}");
        }
    }
}

#[test]
fn every_type_becomes_every_type() {
    let mut random = Random(9);
    for from in DType::ALL {
        for to in DType::ALL {
            let input = TileType::tile(from, 5, 37);
            let ops = vec![Op::Convert { dtype: to, x: V(0) }];
            let small = Small { inputs: vec![input], output: input.with(to), ops };
            let x = random.elements(from, input.elements());
            let (out, cycles) = small.run(std::slice::from_ref(&x));
            assert_eq!(cycles, 3 * 5 * 37);
            for at in 0..input.elements() {
                let x = read(from, &x[at * from.bytes()..][..from.bytes()]);
                let expected = write(to, x);
                let found = out.element(to, at);
                assert!(
                    is_same(to, found, &expected),
                    "{from} to {to}: {x:?}: {found:?}, not {expected:?}"
                );
            }
        }
    }
}

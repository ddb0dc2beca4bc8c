//! `overlap` and `covers` against sets of bytes.

use pto_abi::GmAddr;
use pto_aicpu_fw::stream::overlap::{Undecided, overlap};
use pto_aicpu_fw::stream::region::Region;
use pto_graph::{ElementType, RawView, TensorView};

use crate::random::{bytes_of, meet, view};
use crate::split_mix::SplitMix64;

#[test]
fn regions_overlap_where_their_bytes_do() {
    let mut random = SplitMix64(1);
    let (mut meeting, mut hulls) = (0, 0);
    for case in 0..60_000 {
        let (one, other) = (view(&mut random, GmAddr(0)), view(&mut random, GmAddr(0)));
        let (a, b) = (Region::of(&one), Region::of(&other));
        let expected = meet(&bytes_of(&one), &bytes_of(&other));
        assert_eq!(overlap(&a, &b), Ok(expected), "case {case}: {one:?} {other:?}");
        assert_eq!(overlap(&b, &a), Ok(expected), "case {case}, turned round");
        meeting += u32::from(expected);
        hulls += u32::from(a.low < b.high && b.low < a.high && !expected);
    }
    assert!(
        meeting > 10_000 && hulls > 2_000,
        "{meeting} meet, {hulls} only nearly: too one-sided"
    );
}

#[test]
fn the_normal_form_touches_the_same_bytes() {
    let mut random = SplitMix64(2);
    for case in 0..20_000 {
        let view = view(&mut random, GmAddr(0));
        let region = Region::of(&view);
        let mut set = vec![0_u64; bytes_of(&view).len()];
        let mut starts = vec![region.low];
        for dim in region.dims() {
            let steps = 0..u64::from(dim.count);
            starts = steps
                .flat_map(|i| starts.iter().map(move |s| s + i * dim.stride).collect::<Vec<_>>())
                .collect();
        }
        for byte in starts.iter().flat_map(|start| *start..*start + region.run) {
            set[usize::try_from(byte / 64).unwrap()] |= 1 << (byte % 64);
        }
        assert_eq!(set, bytes_of(&view), "case {case}: {view:?} {region:?}");
        assert_eq!(starts.iter().max().unwrap() + region.run, region.high);
    }
}

/// Steps of 2 and 3 in every dimension of a large tensor, which meet or miss by one element of the innermost one.
#[test]
fn large_views_of_one_tensor_are_decided() {
    let whole = TensorView::dense(GmAddr(0), ElementType::F32, &[64, 64, 64, 64, 64]);
    let stepped = |step: u32, last: u32| {
        (0..4).fold(whole, |view, dim| view.step(dim, step)).slice(4, last, 1)
    };
    let of = |view: TensorView<'_>| Region::of(&view);
    assert_eq!(overlap(&of(stepped(2, 5)), &of(stepped(3, 5))), Ok(true));
    assert_eq!(overlap(&of(stepped(2, 5)), &of(stepped(3, 6))), Ok(false));
    let (even, odd) = (whole.step(4, 2), whole.slice(4, 1, 63).step(4, 2));
    assert_eq!(overlap(&of(even), &of(odd)), Ok(false));
    assert_eq!(overlap(&of(even.step(0, 3)), &of(even.step(3, 5))), Ok(true));
}

#[test]
fn what_takes_too_long_is_said_not_guessed() {
    let of = |strides: &[u64], offset| {
        let raw = RawView {
            base: GmAddr(0),
            bytes: 1 << 50,
            element: ElementType::U8.get(),
            offset,
            shape: &[6; 5],
            strides,
        };
        Region::of(&TensorView::alleged(&raw))
    };
    let one = of(&[1_000_003_017, 1_103_700_411, 1_217_900_983, 1_344_100_789, 1_481_000_309], 0);
    let strides = [1_051_300_741, 1_163_000_837, 1_279_700_113, 1_409_900_661, 1_559_300_517];
    assert_eq!(overlap(&one, &of(&strides, 501)), Err(Undecided));
}

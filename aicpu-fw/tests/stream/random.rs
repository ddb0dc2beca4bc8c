//! Random views.

use pto_abi::GmAddr;
use pto_graph::{ElementType, RawView, TensorView};

use crate::split_mix::SplitMix64;

/// Elements of the tensors that random views lie in.
pub(crate) const ELEMENTS: u32 = 720;

/// A view of a tensor of [`ELEMENTS`] elements at `base`.
pub(crate) fn view(random: &mut SplitMix64, base: GmAddr) -> TensorView<'static> {
    if random.below(4) == 0 { stated(random, base) } else { cut(random, base) }
}

/// Cut, stepped and transposed out of a dense tensor.
fn cut(random: &mut SplitMix64, base: GmAddr) -> TensorView<'static> {
    let shapes: [&[u32]; 6] =
        [&[720], &[24, 30], &[6, 10, 12], &[2, 5, 6, 12], &[2, 3, 4, 5, 6], &[90, 8]];
    let mut view = TensorView::dense(base, element(random), shapes[random.below(6) as usize]);
    for dim in 0..view.shape().len() {
        if random.below(3) > 0 {
            let extent = view.shape()[dim];
            let start = random.below(extent);
            view = view.slice(dim, start, 1 + random.below(extent - start));
        }
        if random.below(4) == 0 {
            view = view.step(dim, 1 + random.below(4));
        }
    }
    let (a, b) = (random.below(5) as usize, random.below(5) as usize);
    let rank = view.shape().len();
    if a < rank && b < rank { view.transpose(a, b) } else { view }
}

/// Any offset, shape and strides that fit.
fn stated(random: &mut SplitMix64, base: GmAddr) -> TensorView<'static> {
    loop {
        let rank = random.below(6) as usize;
        let shape: Vec<u32> = (0..rank).map(|_| 1 + random.below(6)).collect();
        let strides: Vec<u64> = (0..rank).map(|_| random.below(60).into()).collect();
        let view = TensorView::alleged(&RawView {
            base,
            bytes: u64::from(ELEMENTS) * 4,
            element: element(random).get(),
            offset: random.below(ELEMENTS).into(),
            shape: &shape,
            strides: &strides,
        });
        if view.defect().is_none() {
            return view;
        }
    }
}

fn element(random: &mut SplitMix64) -> ElementType {
    [ElementType::F32, ElementType::F32, ElementType::BF16, ElementType::U8]
        [random.below(4) as usize]
}

/// The bytes that a view touches: one bit each. Written from the definition, element by element.
pub(crate) fn bytes_of(view: &TensorView<'_>) -> Vec<u64> {
    let mut set = vec![0_u64; (ELEMENTS as usize * 8).div_ceil(64)];
    let mut index = vec![0_u32; view.shape().len()];
    loop {
        let start = view.element_address(&index).unwrap().0 - view.base().0;
        for byte in start..start + view.element().bytes() {
            set[usize::try_from(byte / 64).unwrap()] |= 1 << (byte % 64);
        }
        let Some(dim) = (0..index.len()).rev().find(|dim| index[*dim] + 1 < view.shape()[*dim])
        else {
            return set;
        };
        index[dim] += 1;
        index[dim + 1..].fill(0);
    }
}

pub(crate) fn meet(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).any(|(a, b)| a & b != 0)
}

//! Products of matrices, in blocks: a block of rows of `a` times packed columns of `b`.
//!
//! ```text
//! b, converted and packed: panels of `lanes` columns, each k x lanes    a: rows side by side
//! for each 256 of k: for each panel: for each 8 rows: sums in registers
//! ```
//! `f32` and halves are added in `f32`: a sum of 256 products at a time, in ascending order, fused multiply-add where the processor has it. `f64` is added in
//! `f64`, integers in 64 bits that wrap. So the bits of a product are the same on all processors with fused multiply-add, and do not depend on how a
//! product is split into tasks.

use super::function::{double, single};
use super::memory::In;
use crate::element::{Element, with_type};
use crate::operator::{Epilogue, Function, Step};

/// Products that are added before the sum goes to memory.
const DEPTH: usize = 256;

/// A type in which products are added.
pub(crate) trait Sum: Copy + Default + Send + 'static {
    /// The sums of `R` rows times a panel of `lanes` columns, added to what `sums` holds.
    fn panel<const R: usize>(
        a: [&[Self]; R],
        panel: &[Self],
        lanes: usize,
        sums: &mut [Self],
        stride: usize,
    );
    /// [`panel`](Self::panel) of the next `R` rows; gives `R`.
    #[inline(always)]
    fn rows<'a, const R: usize>(
        row: impl Fn(usize) -> &'a [Self],
        panel: &[Self],
        lanes: usize,
        sums: &mut [Self],
        stride: usize,
    ) -> usize {
        Self::panel::<R>(std::array::from_fn(row), panel, lanes, sums, stride);
        R
    }
    fn of<T: Element>(x: T) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn factor(x: f64) -> Self;
    /// A function of elements, of operands that are as long as the result.
    fn apply(function: &Function, operands: &[&[Self]], to: &mut [Self]);
    /// What a product does with its results.
    fn finish(epilogue: &Epilogue, values: &mut [Self]) {
        let one = match epilogue {
            Epilogue::None => return,
            Epilogue::Unary(unary) => Function::Unary(*unary),
            Epilogue::Activation(activation) => Function::Activation(activation.clone()),
            Epilogue::Steps(steps) => return all_steps(steps, values),
        };
        let given = values.to_vec();
        Self::apply(&one, &[&given], values);
    }
    fn to<T: Element>(self) -> T;
    /// The elements as they are, where they have this type.
    fn borrowed<'a>(input: &In<'a>) -> Option<&'a [Self]>;
}

/// Elements that go through all steps at a time, so that they stay in the cache.
const BLOCK: usize = 1024;

fn all_steps<S: Sum>(steps: &[Step], values: &mut [S]) {
    let mut made: Vec<Vec<S>> = vec![vec![S::default(); BLOCK.min(values.len())]; steps.len() + 1];
    for values in values.chunks_mut(BLOCK) {
        let count = values.len();
        made[0][..count].copy_from_slice(values);
        for (at, step) in steps.iter().enumerate() {
            let (before, rest) = made.split_at_mut(at + 1);
            let operands: Vec<_> =
                step.operands.iter().flatten().map(|operand| &before[*operand][..count]).collect();
            S::apply(&step.function, &operands, &mut rest[0][..count]);
        }
        if let Some(last) = made.last() {
            values.copy_from_slice(&last[..count]);
        }
    }
}

/// Columns of a panel.
pub(crate) fn lanes() -> usize {
    if simd::has_512() { 32 } else { 16 }
}

/// Any processor, any type.
#[inline(always)]
fn plain<S: Sum, const R: usize>(
    a: [&[S]; R],
    panel: &[S],
    lanes: usize,
    sums: &mut [S],
    stride: usize,
) {
    for (row, a) in a.iter().enumerate() {
        let sums = &mut sums[row * stride..row * stride + lanes];
        for (x, b) in a.iter().zip(panel.chunks_exact(lanes)) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = sum.add(x.mul(*b));
            }
        }
    }
}

impl Sum for f32 {
    #[inline(always)]
    fn panel<const R: usize>(
        a: [&[Self]; R],
        panel: &[Self],
        lanes: usize,
        sums: &mut [Self],
        stride: usize,
    ) {
        if !simd::panel(a, panel, lanes, sums, stride) {
            plain(a, panel, lanes, sums, stride);
        }
    }
    #[expect(clippy::cast_possible_truncation, reason = "a float of 32 bits at most")]
    #[inline(always)]
    fn of<T: Element>(x: T) -> Self {
        x.to_f64() as Self
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self + other
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self * other
    }
    #[expect(clippy::cast_possible_truncation, reason = "a factor has the type of the elements")]
    fn factor(x: f64) -> Self {
        x as Self
    }
    fn apply(function: &Function, operands: &[&[Self]], to: &mut [Self]) {
        match (function, operands) {
            (Function::Unary(unary), [a]) => single::unary(*unary, a, to),
            (Function::Activation(activation), [a]) => single::activation(activation, a, to),
            (Function::Binary(binary), [a, b]) => single::binary(*binary, a, b, to),
            // `check_epilogue` has no others.
            _ => {}
        }
    }
    #[inline(always)]
    fn to<T: Element>(self) -> T {
        T::from_f64(f64::from(self))
    }
    fn borrowed<'a>(input: &In<'a>) -> Option<&'a [Self]> {
        (input.ty.dtype == crate::DType::F32).then(|| input.elements())
    }
}

impl Sum for f64 {
    fn panel<const R: usize>(
        a: [&[Self]; R],
        panel: &[Self],
        lanes: usize,
        sums: &mut [Self],
        stride: usize,
    ) {
        plain(a, panel, lanes, sums, stride);
    }
    fn of<T: Element>(x: T) -> Self {
        x.to_f64()
    }
    fn add(self, other: Self) -> Self {
        self + other
    }
    fn mul(self, other: Self) -> Self {
        self * other
    }
    fn factor(x: f64) -> Self {
        x
    }
    fn apply(function: &Function, operands: &[&[Self]], to: &mut [Self]) {
        match (function, operands) {
            (Function::Unary(unary), [a]) => double::unary(*unary, a, to),
            (Function::Activation(activation), [a]) => double::activation(activation, a, to),
            (Function::Binary(binary), [a, b]) => double::binary(*binary, a, b, to),
            // `check_epilogue` has no others.
            _ => {}
        }
    }
    fn to<T: Element>(self) -> T {
        T::from_f64(self)
    }
    fn borrowed<'a>(input: &In<'a>) -> Option<&'a [Self]> {
        (input.ty.dtype == crate::DType::F64).then(|| input.elements())
    }
}

impl Sum for i64 {
    fn panel<const R: usize>(
        a: [&[Self]; R],
        panel: &[Self],
        lanes: usize,
        sums: &mut [Self],
        stride: usize,
    ) {
        plain(a, panel, lanes, sums, stride);
    }
    #[expect(clippy::cast_possible_truncation, reason = "sums of integers wrap")]
    fn of<T: Element>(x: T) -> Self {
        x.to_i128() as Self
    }
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn mul(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    #[expect(clippy::cast_possible_truncation, reason = "a factor has the type of the elements")]
    fn factor(x: f64) -> Self {
        x as Self
    }
    fn apply(_: &Function, _: &[&[Self]], _: &mut [Self]) {}
    fn to<T: Element>(self) -> T {
        T::from_i128(i128::from(self))
    }
    fn borrowed<'a>(input: &In<'a>) -> Option<&'a [Self]> {
        (input.ty.dtype == crate::DType::I64).then(|| input.elements())
    }
}

/// All elements, converted, where they have another type.
pub(crate) fn converted<'a, S: Sum>(input: &In<'a>) -> std::borrow::Cow<'a, [S]> {
    match S::borrowed(input) {
        Some(values) => values.into(),
        None => {
            with_type!(input.ty.dtype, T => input.elements::<T>().iter().map(|x| S::of(*x)).collect::<Vec<_>>().into())
        }
    }
}

/// Columns of `b`, packed: `depth` rows of `width` columns in panels of [`lanes`].
pub(crate) struct Packed<S> {
    pub(crate) panels: Vec<S>,
    pub(crate) lanes: usize,
    pub(crate) depth: usize,
    pub(crate) width: usize,
}

impl<S: Sum> Packed<S> {
    pub(crate) fn new(depth: usize, width: usize) -> Self {
        let lanes = lanes();
        Self {
            panels: vec![S::default(); depth * width.next_multiple_of(lanes)],
            lanes,
            depth,
            width,
        }
    }

    /// Puts row `k`: one element for each column.
    #[inline(always)]
    pub(crate) fn put(&mut self, k: usize, row: &[S]) {
        for (panel, chunk) in row.chunks(self.lanes).enumerate() {
            let at = (panel * self.depth + k) * self.lanes;
            self.panels[at..at + chunk.len()].copy_from_slice(chunk);
        }
    }

    /// Columns of the sums.
    pub(crate) const fn stride(&self) -> usize {
        self.width.next_multiple_of(self.lanes)
    }

    /// `rows` rows of `a`, which are `distance` apart, times the packed columns: sums of [`stride`](Self::stride) columns a row.
    pub(crate) fn times(&self, a: &[S], rows: usize, distance: usize, sums: &mut Vec<S>) {
        let stride = self.stride();
        sums.clear();
        sums.resize(rows * stride, S::default());
        let mut first = 0;
        while first < self.depth {
            let depth = DEPTH.min(self.depth - first);
            for column in (0..stride).step_by(self.lanes) {
                let at = (column / self.lanes * self.depth + first) * self.lanes;
                let panel = &self.panels[at..at + depth * self.lanes];
                let part = |row: usize| &a[row * distance + first..row * distance + first + depth];
                let mut row = 0;
                while row < rows {
                    let to = &mut sums[row * stride + column..];
                    row += match rows - row {
                        8.. => S::rows::<8>(|at| part(row + at), panel, self.lanes, to, stride),
                        4.. => S::rows::<4>(|at| part(row + at), panel, self.lanes, to, stride),
                        2.. => S::rows::<2>(|at| part(row + at), panel, self.lanes, to, stride),
                        _ => S::rows::<1>(|at| part(row + at), panel, self.lanes, to, stride),
                    };
                }
            }
            first += depth;
        }
    }
}

/// The panel in vector registers.
#[cfg(target_arch = "x86_64")]
mod simd {
    use std::arch::x86_64::{
        _mm256_add_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_setzero_ps,
        _mm256_storeu_ps, _mm512_add_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_storeu_ps,
    };

    pub(super) fn has_512() -> bool {
        is_x86_feature_detected!("avx512f")
    }

    fn has_256() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    /// Whether this processor has the instructions, and the sums are there.
    #[inline(always)]
    pub(super) fn panel<const R: usize>(
        a: [&[f32]; R],
        panel: &[f32],
        lanes: usize,
        sums: &mut [f32],
        stride: usize,
    ) -> bool {
        let depth = a[0].len();
        let fits = a.iter().all(|row| row.len() == depth)
            && panel.len() == depth * lanes
            && sums.len() >= (R - 1) * stride + lanes;
        assert!(fits, "rows, panel and sums have the extents of a panel");
        if lanes == 32 && has_512() {
            // SAFETY: the processor has AVX-512, and the slices have the extents, both checked above.
            unsafe { wide::<R>(a, panel, sums, stride) }
            return true;
        }
        if lanes == 16 && has_256() {
            // SAFETY: the processor has AVX2 and FMA, and the slices have the extents, both checked above.
            unsafe { narrow::<R>(a, panel, sums, stride) }
            return true;
        }
        false
    }

    /// Panels of 32 columns.
    ///
    /// # Safety
    /// The processor has AVX-512; `a` are rows of the same length, `panel` has 32 elements for each of theirs, `sums` has `R` rows of 32, `stride` apart.
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "two halves of one row of the panel, at bounds that the caller has checked"
    )]
    #[target_feature(enable = "avx512f")]
    unsafe fn wide<const R: usize>(a: [&[f32]; R], panel: &[f32], sums: &mut [f32], stride: usize) {
        let mut so_far = [[_mm512_setzero_ps(); 2]; R];
        for (k, b) in panel.chunks_exact(32).enumerate() {
            // SAFETY: a chunk has 32 elements.
            let b = unsafe { [_mm512_loadu_ps(b.as_ptr()), _mm512_loadu_ps(b.as_ptr().add(16))] };
            for (so_far, a) in so_far.iter_mut().zip(&a) {
                // SAFETY: rows have as many elements as the panel has chunks.
                let x = _mm512_set1_ps(unsafe { *a.get_unchecked(k) });
                so_far[0] = _mm512_fmadd_ps(x, b[0], so_far[0]);
                so_far[1] = _mm512_fmadd_ps(x, b[1], so_far[1]);
            }
        }
        for (row, so_far) in so_far.into_iter().enumerate() {
            let to = &mut sums[row * stride..row * stride + 32];
            for (half, so_far) in so_far.into_iter().enumerate() {
                let to = to[16 * half..].as_mut_ptr();
                // SAFETY: 16 elements follow, of 32.
                unsafe { _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), so_far)) }
            }
        }
    }

    /// Panels of 16 columns.
    ///
    /// # Safety
    /// As [`wide`], with AVX2 and FMA, and 16 columns.
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "two halves of one row of the panel, at bounds that the caller has checked"
    )]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn narrow<const R: usize>(
        a: [&[f32]; R],
        panel: &[f32],
        sums: &mut [f32],
        stride: usize,
    ) {
        let mut so_far = [[_mm256_setzero_ps(); 2]; R];
        for (k, b) in panel.chunks_exact(16).enumerate() {
            // SAFETY: a chunk has 16 elements.
            let b = unsafe { [_mm256_loadu_ps(b.as_ptr()), _mm256_loadu_ps(b.as_ptr().add(8))] };
            for (so_far, a) in so_far.iter_mut().zip(&a) {
                // SAFETY: rows have as many elements as the panel has chunks.
                let x = _mm256_set1_ps(unsafe { *a.get_unchecked(k) });
                so_far[0] = _mm256_fmadd_ps(x, b[0], so_far[0]);
                so_far[1] = _mm256_fmadd_ps(x, b[1], so_far[1]);
            }
        }
        for (row, so_far) in so_far.into_iter().enumerate() {
            let to = &mut sums[row * stride..row * stride + 16];
            for (half, so_far) in so_far.into_iter().enumerate() {
                let to = to[8 * half..].as_mut_ptr();
                // SAFETY: 8 elements follow, of 16.
                unsafe { _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), so_far)) }
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod simd {
    pub(super) const fn has_512() -> bool {
        false
    }

    pub(super) fn panel<const R: usize>(
        _: [&[f32]; R],
        _: &[f32],
        _: usize,
        _: &mut [f32],
        _: usize,
    ) -> bool {
        false
    }
}

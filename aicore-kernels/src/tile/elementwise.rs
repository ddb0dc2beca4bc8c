//! Functions of elements and of pairs of elements, over the part of a tile that counts.

use super::arithmetic::{Number, Real};
use super::element::Element;
use super::fault::FaultCause;
use super::math;
use super::op::{Binary, Compare, Spread, Unary};
use super::wide::Wide;

/// The part of a tile that counts: `rows` by `cols`; the rows are `pitch` elements apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) pitch: usize,
}

impl Grid {
    /// One row instead of many, where they touch.
    fn flat(self) -> Self {
        if self.cols != self.pitch {
            return self;
        }
        let all = self.rows * self.cols;
        Self { rows: 1, cols: all, pitch: all }
    }

    /// The rows of a tile.
    pub(super) fn rows_of<T>(self, tile: &[T]) -> impl Iterator<Item = &[T]> {
        let rows = tile.chunks(self.pitch.max(1)).take(self.rows);
        rows.map(move |row| row.get(..self.cols).unwrap_or(row))
    }

    /// The rows of a tile, to write.
    pub(super) fn rows_of_mut<T>(self, tile: &mut [T]) -> impl Iterator<Item = &mut [T]> {
        let rows = tile.chunks_mut(self.pitch.max(1)).take(self.rows);
        rows.map(move |row| {
            let cols = self.cols.min(row.len());
            row.get_mut(..cols).unwrap_or(&mut [])
        })
    }
}

/// `out = f(x)`.
#[inline(always)]
fn map<A: Copy, B>(wide: Wide, out: &mut [B], x: &[A], grid: Grid, f: impl Fn(A) -> B + Copy) {
    wide.run(|| each(out, x, grid, f));
}

/// `out = f(x)`, where `f` takes tens of instructions.
#[inline(always)]
fn map_long<A: Copy, B>(
    wide: Wide,
    (out, x): (&mut [B], &[A]),
    grid: Grid,
    f: impl Fn(A) -> B + Copy,
) {
    wide.run_widest(
        #[inline(always)]
        || each(out, x, grid, f),
    );
}

#[inline(always)]
fn each<A: Copy, B>(out: &mut [B], x: &[A], grid: Grid, f: impl Fn(A) -> B + Copy) {
    let grid = grid.flat();
    for (out, x) in grid.rows_of_mut(out).zip(grid.rows_of(x)) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = f(*x);
        }
    }
}

/// `out = f(a, b)`. Ways in which a pair meets share a loop where they can, because each loop is compiled for every function and every
/// type. The loops are in this function: a table of functions would need relocations, and the blob of kernels may have none.
#[inline(always)]
fn zip<T: Element, C>(
    wide: Wide,
    out: &mut [C],
    (a, b): (&[T], &[T]),
    (grid, spread): (Grid, Spread),
    f: impl Fn(T, T) -> C + Copy,
) {
    // The grid, and by how many elements the operand that is spread goes on with each row.
    let (grid, step) = match spread {
        Spread::Same => (grid.flat(), grid.flat().pitch),
        Spread::Col => (grid, 0),
        Spread::Row => (grid, 1),
        Spread::One | Spread::FirstOne => (grid.flat(), 0),
    };
    wide.run(|| match spread {
        Spread::Same | Spread::Col => {
            for (row, (out, a)) in grid.rows_of_mut(out).zip(grid.rows_of(a)).enumerate() {
                let b = b.get(row * step..).unwrap_or(&[]);
                for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                    *out = f(*a, *b);
                }
            }
        }
        Spread::Row | Spread::One => {
            for (row, (out, a)) in grid.rows_of_mut(out).zip(grid.rows_of(a)).enumerate() {
                let Some(b) = b.get(row * step).copied() else { return };
                for (out, a) in out.iter_mut().zip(a) {
                    *out = f(*a, b);
                }
            }
        }
        Spread::FirstOne => {
            let Some(a) = a.first().copied() else { return };
            each(out, b, grid, |b| f(a, b));
        }
    });
}

/// A function of each element.
pub(super) fn unary<T: Element>(
    wide: Wide,
    function: Unary,
    (out, x): (&mut [T], &[T]),
    grid: Grid,
) {
    match function {
        Unary::Copy => map(wide, out, x, grid, |x| x),
        Unary::Neg => map(wide, out, x, grid, |x: T| T::narrow(x.widen().negated())),
        Unary::Abs => map(wide, out, x, grid, |x: T| T::narrow(x.widen().magnitude())),
        Unary::Relu => {
            map(wide, out, x, grid, |x: T| T::narrow(x.widen().larger(T::Wide::default())));
        }
        _ => {}
    }
}

/// A function of each element, of floats.
pub(super) fn real<T: Element<Wide: Real>>(
    wide: Wide,
    function: Unary,
    (out, x): (&mut [T], &[T]),
    grid: Grid,
) {
    match function {
        Unary::Exp => map_long(wide, (out, x), grid, |x: T| T::narrow(x.widen().exp())),
        Unary::Rsqrt => map(wide, out, x, grid, |x: T| T::narrow(x.widen().rsqrt())),
        Unary::Log => map_long(wide, (out, x), grid, |x: T| T::narrow(x.widen().ln())),
        Unary::Sqrt => map(wide, out, x, grid, |x: T| T::narrow(x.widen().sqrt())),
        Unary::Tanh => map_long(wide, (out, x), grid, |x: T| T::narrow(x.widen().tanh())),
        Unary::Sigmoid => map_long(wide, (out, x), grid, |x: T| T::narrow(x.widen().sigmoid())),
        Unary::Gelu => map_long(wide, (out, x), grid, |x: T| T::narrow(x.widen().gelu())),
        Unary::Silu => map_long(wide, (out, x), grid, |x: T| T::narrow(x.widen().silu())),
        Unary::Sin => turns(wide, (out, x), grid, math::sin_small, math::sin_large),
        Unary::Cos => turns(wide, (out, x), grid, math::cos_small, math::cos_large),
        Unary::Copy | Unary::Neg | Unary::Abs | Unary::Relu => {
            unary(wide, function, (out, x), grid)
        }
    }
}

/// The sine or cosine: of all elements without branches, then again of the few that are too large for that.
#[inline(always)]
fn turns<T: Element<Wide: Real>>(
    wide: Wide,
    (out, x): (&mut [T], &[T]),
    grid: Grid,
    small: impl Fn(f64) -> f64 + Copy,
    large: fn(f64) -> f64,
) {
    map_long(wide, (out, x), grid, |x: T| T::narrow(x.widen().through_f64(small)));
    let is_large = |x: &T| {
        let value: f64 = x.cast();
        let is_small = value.abs() <= math::LARGE;
        !is_small
    };
    // Without a way out of the loop, so that it becomes vector instructions.
    let any = |row: &[T]| row.iter().fold(false, |found, x| found | is_large(x));
    if !wide.run(|| grid.rows_of(x).fold(false, |found, row| found | any(row))) {
        return;
    }
    for (out, x) in grid.rows_of_mut(out).zip(grid.rows_of(x)) {
        for (out, x) in out.iter_mut().zip(x) {
            if is_large(x) {
                *out = T::from_f64(large(x.cast()));
            }
        }
    }
}

/// A function of pairs. The caller has seen that no divisor is zero.
pub(super) fn binary<T: Element>(
    wide: Wide,
    function: Binary,
    out: &mut [T],
    operands: (&[T], &[T]),
    shape: (Grid, Spread),
) {
    match function {
        Binary::Add => paired(wide, out, operands, shape, T::Wide::add),
        Binary::Sub => paired(wide, out, operands, shape, T::Wide::sub),
        Binary::Mul => paired(wide, out, operands, shape, T::Wide::mul),
        Binary::Div => paired(wide, out, operands, shape, T::Wide::div),
        Binary::Max => paired(wide, out, operands, shape, T::Wide::larger),
        Binary::Min => paired(wide, out, operands, shape, T::Wide::smaller),
    }
}

/// `f` in the type of computation.
#[inline(always)]
fn paired<T: Element>(
    wide: Wide,
    out: &mut [T],
    operands: (&[T], &[T]),
    shape: (Grid, Spread),
    f: impl Fn(T::Wide, T::Wide) -> T::Wide + Copy,
) {
    let f = move |a: T, b: T| T::narrow(f(a.widen(), b.widen()));
    zip(wide, out, operands, shape, f);
}

/// A comparison of pairs.
pub(super) fn compare<T: Element>(
    wide: Wide,
    function: Compare,
    out: &mut [u8],
    operands: (&[T], &[T]),
    shape: (Grid, Spread),
) {
    match function {
        Compare::Less => compared(wide, out, operands, shape, |a, b| a < b),
        Compare::LessEqual => compared(wide, out, operands, shape, |a, b| a <= b),
        Compare::Greater => compared(wide, out, operands, shape, |a, b| a > b),
        Compare::GreaterEqual => compared(wide, out, operands, shape, |a, b| a >= b),
        Compare::Equal => compared(wide, out, operands, shape, |a, b| a == b),
        Compare::NotEqual => compared(wide, out, operands, shape, |a, b| a != b),
    }
}

#[inline(always)]
fn compared<T: Element>(
    wide: Wide,
    out: &mut [u8],
    operands: (&[T], &[T]),
    shape: (Grid, Spread),
    f: impl Fn(T::Wide, T::Wide) -> bool + Copy,
) {
    let f = move |a: T, b: T| u8::from(f(a.widen(), b.widen()));
    zip(wide, out, operands, shape, f);
}

/// `a` where the mask is not zero, `b` elsewhere.
pub(super) fn select<T: Element>(out: &mut [T], mask: &[u8], (a, b): (&[T], &[T]), grid: Grid) {
    let pairs = grid.rows_of(a).zip(grid.rows_of(b)).zip(grid.rows_of(mask));
    for (out, ((a, b), mask)) in grid.rows_of_mut(out).zip(pairs) {
        for (out, ((a, b), mask)) in out.iter_mut().zip(a.iter().zip(b).zip(mask)) {
            *out = if *mask == 0 { *b } else { *a };
        }
    }
}

/// Converts elements to another element type.
pub(super) fn convert<A: Element, B: Element>(wide: Wide, out: &mut [B], x: &[A], grid: Grid) {
    map(wide, out, x, grid, A::cast::<B>);
}

/// Refuses divisors that have no quotient.
pub(super) fn check_divisor<T: Element>(
    divisor: &[T],
    (grid, spread): (Grid, Spread),
) -> Result<(), FaultCause> {
    if T::DTYPE.is_float() {
        return Ok(());
    }
    for (row, divisors) in grid.rows_of(divisor).enumerate() {
        if let Some(col) = divisors.iter().position(|b| b.widen().divides_nothing()) {
            let at = [row, col].map(|index| u32::try_from(index).unwrap_or(u32::MAX));
            return Err(FaultCause::DivisionByZero { at, spread });
        }
    }
    Ok(())
}

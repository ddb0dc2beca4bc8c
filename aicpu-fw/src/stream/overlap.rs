//! Whether two regions have a byte in common: exact, for any strides.
//!
//! Both regions are sums of multiples: bytes `low + sum(stride * i) + 0 .. run`. They meet if a combination of the
//! dimensions of both, with the strides of one of them taken negative, falls into a window of `run + run - 1` values.
//! Turning the negative dimensions round gives one question with positive numbers only:
//!
//! > is there `x` with `0 <= x[k] <= m[k]` and `first <= sum(c[k] * x[k]) <= last`?
//!
//! Regions of one stride, which is the same for both, need one division (`rows_meet`), and one for each run where one of
//! them has few. For the others, four steps that lose nothing decide it. Equal strides are one dimension. A stride within
//! the window's width is *absorbed*: the window grows by its reach. A common divisor of all strides that is wider than the
//! window is divided out. What is left branches over the values of the largest stride, of which the others leave few; two
//! dimensions alone are solved like a greatest common divisor.
//!
//! Cost: views that were cut, stepped and transposed out of one tensor take some dozen steps. Strides that are no
//! multiples of each other can take more; beyond [`MAX_STEPS`] the answer is [`Undecided`], which refuses the task
//! with a fault. There is no guess on either side.
//!
//! Why it is so: `docs/decisions/tensor-map.md`.

use super::region::{Dim, Region, Rows, rows_meet};
use pto_abi::limits::MAX_RANK;

/// Branches that one comparison may take. 4,096 of them are about 50 us; of 10 million random pairs of strided views of
/// rank up to 5, none took more than 200.
pub const MAX_STEPS: u32 = 4096;

/// The comparison would take more than [`MAX_STEPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided;

/// So many runs are compared one by one with the runs of the other region, which costs a division each.
const FEW: u32 = 8;

const TERMS: usize = 2 * MAX_RANK;

/// Whether the regions have a byte in common.
///
/// # Errors
/// [`Undecided`].
#[inline]
pub fn overlap(one: &Region, other: &Region) -> Result<bool, Undecided> {
    if one.high <= other.low || other.high <= one.low {
        return Ok(false);
    }
    match (one.dims(), other.dims()) {
        ([], []) => return Ok(true),
        ([dim], []) | ([], [dim]) => return Ok(rows_meet(rows(one), rows(other), dim.stride)),
        ([a], [b]) if a.stride == b.stride => {
            return Ok(rows_meet(rows(one), rows(other), a.stride));
        }
        ([a], [b]) if a.count <= FEW => return Ok(some_run_meets(one, *a, other, *b)),
        ([a], [b]) if b.count <= FEW => return Ok(some_run_meets(other, *b, one, *a)),
        _ => {}
    }
    Question::of(one, other).solve(&mut Search { steps: MAX_STEPS, failed: [None; 4], next: 0 })
}

const fn rows(region: &Region) -> Rows {
    (region.low, region.high, region.run)
}

/// Whether one of the few runs of a region meets another region of one stride.
fn some_run_meets(few: &Region, dim: Dim, many: &Region, other: Dim) -> bool {
    (0..u64::from(dim.count)).any(|number| {
        let low = few.low.wrapping_add(dim.stride.wrapping_mul(number));
        let high = low.wrapping_add(few.run);
        low < many.high
            && many.low < high
            && rows_meet((low, high, few.run), rows(many), other.stride)
    })
}

/// What a comparison may still do, and what it has tried in vain last: where strides are multiples of each other, the
/// same questions come again.
struct Search {
    steps: u32,
    failed: [Option<Question>; 4],
    next: usize,
}

impl Search {
    fn has_failed(&self, question: &Question) -> bool {
        self.failed.iter().flatten().any(|failed| failed == question)
    }

    fn fail(&mut self, question: Question) {
        if let Some(entry) = self.failed.get_mut(self.next % 4) {
            *entry = Some(question);
        }
        self.next += 1;
    }
}

/// `c * x` with `0 <= x <= m`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Term {
    c: i64,
    m: i64,
}

/// See the module: `first <= sum(terms) <= last`. Terms ascend.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Question {
    terms: [Term; TERMS],
    count: usize,
    first: i64,
    last: i64,
}

impl Question {
    /// `one.low + sum(i * s) + 0 .. one.run` meets `other.low + sum(j * t) + 0 .. other.run`. With the dimensions of
    /// `other` turned round (`j = m - x`), `sum(i * s) + sum(x * t)` lies between
    /// `other.low + reach(other) - one.low - (one.run - 1)` and `.. + (other.run - 1)`.
    fn of(one: &Region, other: &Region) -> Self {
        let mut question = Self { terms: [Term::default(); TERMS], count: 0, first: 0, last: 0 };
        let reach = other.high - other.low - other.run;
        let start = signed(other.low + reach) - signed(one.low);
        question.first = start - signed(one.run) + 1;
        question.last = start + signed(other.run) - 1;
        let (mut a, mut b) = (one.dims().iter().peekable(), other.dims().iter().peekable());
        while let Some(dim) = match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.stride <= y.stride => a.next(),
            (Some(_), None) => a.next(),
            _ => b.next(),
        } {
            question.push(Term { c: signed(dim.stride), m: i64::from(dim.count) - 1 });
        }
        question
    }

    /// Adds a term whose stride is at least that of the others.
    fn push(&mut self, term: Term) {
        let last = self.count.checked_sub(1).and_then(|last| self.terms.get_mut(last));
        match last {
            Some(last) if last.c == term.c => last.m += term.m,
            _ => {
                if let Some(entry) = self.terms.get_mut(self.count) {
                    *entry = term;
                    self.count += 1;
                }
            }
        }
    }

    fn terms(&self) -> &[Term] {
        self.terms.get(..self.count).unwrap_or(&[])
    }

    fn solve(mut self, search: &mut Search) -> Result<bool, Undecided> {
        if !self.simplify() {
            return Ok(false);
        }
        match *self.terms() {
            [] => Ok(self.first <= 0 && 0 <= self.last),
            [a] => Ok(one_term(a, self.first, self.last)),
            [a, b] => Ok(two_terms(a, b, self.first, self.last)),
            [.., largest] => {
                let known = search.has_failed(&self);
                let found = !known && self.branch(largest, search)?;
                if !found && !known {
                    search.fail(self);
                }
                Ok(found)
            }
        }
    }

    /// Tries every value of the largest term that the others can complete.
    fn branch(mut self, largest: Term, search: &mut Search) -> Result<bool, Undecided> {
        self.count -= 1;
        let rest: i64 = self.terms().iter().map(|term| term.c * term.m).sum();
        let low = div_ceil(self.first - rest, largest.c).max(0);
        let high = div_floor(self.last, largest.c).min(largest.m);
        for x in low..=high {
            search.steps = search.steps.checked_sub(1).ok_or(Undecided)?;
            let (first, last) = (self.first - largest.c * x, self.last - largest.c * x);
            if (Self { first, last, ..self }).solve(search)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Absorbs and divides until nothing changes; `false`: there is no solution.
    fn simplify(&mut self) -> bool {
        loop {
            self.absorb();
            let reach: i64 = self.terms().iter().map(|term| term.c * term.m).sum();
            if self.last < 0 || self.first > reach || self.first > self.last {
                return false;
            }
            let divisor = self.terms().iter().fold(0, |divisor, term| gcd(divisor, term.c));
            if divisor <= 1 {
                return true;
            }
            self.first = div_ceil(self.first, divisor);
            self.last = div_floor(self.last, divisor);
            for term in &mut self.terms {
                term.c = div_floor(term.c, divisor);
            }
        }
    }

    /// Takes out the terms whose multiples leave no gap in the window.
    fn absorb(&mut self) {
        let terms = self.terms;
        let mut kept = 0;
        for term in terms.iter().take(self.count) {
            if kept == 0 && term.c <= self.last - self.first + 1 {
                self.first -= term.c * term.m;
            } else if let Some(entry) = self.terms.get_mut(kept) {
                *entry = *term;
                kept += 1;
            }
        }
        self.count = kept;
    }
}

fn one_term(a: Term, first: i64, last: i64) -> bool {
    div_ceil(first, a.c).max(0) <= div_floor(last, a.c).min(a.m)
}

/// Two terms, `a.c < b.c`, both wider than the window.
fn two_terms(a: Term, b: Term, first: i64, last: i64) -> bool {
    let low = div_ceil(first - a.c * a.m, b.c).max(0);
    let high = div_floor(last, b.c).min(b.m);
    if low > high {
        return false;
    }
    // For these `x` of `b`, the window reaches into `0 ..= a.c * a.m`. Where it holds one end of that, the end is a
    // solution; elsewhere only the remainder by `a.c` counts: is it one of the last `width` before a multiple?
    if [low, high].into_iter().any(|x| one_term(a, first - b.c * x, last - b.c * x)) {
        return true;
    }
    let start = rest_of(last - b.c * low, a.c);
    // The first `n` with `(start - b.c * n) mod a.c <= last - first`, where `last` leaves that remainder.
    let step = rest_of(-b.c, a.c);
    let target = (rest_of(-start, a.c), rest_of(-start + last - first, a.c));
    first_hit(step.into(), a.c.into(), target.0.into(), target.1.into())
        .is_some_and(|n| i128::from(low) + n <= i128::from(high))
}

/// The least `n >= 0` with `step * n mod modulus` in the circular range from `low` to `high`.
fn first_hit(step: i128, modulus: i128, low: i128, high: i128) -> Option<i128> {
    if low > high || low == 0 {
        return Some(0);
    }
    if step == 0 {
        return None;
    }
    // As in Euclid's algorithm: either the first lap hits, or the question is asked of the laps.
    let n = wide_div_ceil(low, step);
    if step * n <= high {
        return Some(n);
    }
    if 2 * step > modulus {
        return first_hit(modulus - step, modulus, modulus - high, modulus - low);
    }
    let lap = first_hit(
        wide_rest_of(-modulus, step),
        step,
        wide_rest_of(low, step),
        wide_rest_of(high, step),
    )?;
    Some(wide_div_ceil(low + modulus * lap, step))
}

/// Divisors are strides, which are not zero; a division that cannot panic says so to the compiler.
fn wide_div_ceil(a: i128, b: i128) -> i128 {
    -(-a).checked_div_euclid(b).unwrap_or(0)
}

fn wide_rest_of(a: i128, b: i128) -> i128 {
    a.checked_rem_euclid(b).unwrap_or(0)
}

fn div_floor(a: i64, b: i64) -> i64 {
    a.checked_div_euclid(b).unwrap_or(0)
}

fn rest_of(a: i64, b: i64) -> i64 {
    a.checked_rem_euclid(b).unwrap_or(0)
}

/// Offsets in a tensor; views of more than 2^60 bytes are refused before.
const fn signed(bytes: u64) -> i64 {
    bytes.cast_signed()
}

fn div_ceil(a: i64, b: i64) -> i64 {
    -div_floor(-a, b)
}

/// The greatest common divisor of two positive numbers.
const fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.cast_unsigned(), b.cast_unsigned());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.cast_signed()
}

//! How an expression goes on while one loop variable counts up: for this many turns it is a line.
//!
//! Most index expressions are lines for long: sums and products of variables with constants always, remainders and quotients until
//! the next multiple of the divisor. A [`Line`] promises only what is exact in 64 bits: at each of its turns the value is the one
//! that [`eval`](super::expression) gives.

use super::cursor::Cursor;
use super::expression::{binary, eval};
use super::layout::expression as code;
use super::values::Values;

/// `value + n * step`, wrapping, for `n` up to `turns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) value: u64,
    pub(super) step: u64,
    pub(super) turns: u64,
}

impl Line {
    /// A value that stays.
    const fn still(value: u64) -> Self {
        Self { value, step: 0, turns: u64::MAX }
    }

    /// Only now, if `moves`.
    const fn unless(self, moves: bool) -> Self {
        if moves { Self { step: 0, turns: 0, ..self } } else { self }
    }

    const fn until(self, turns: u64) -> Self {
        if turns < self.turns { Self { turns, ..self } } else { self }
    }

    /// Turns for which it stays between two numbers, as signed numbers; `None`: it is not between them now.
    pub(super) fn within(self, low: i64, high: i64) -> Option<u64> {
        let (value, step) = (self.value.cast_signed(), self.step.cast_signed());
        if value < low || value > high {
            return None;
        }
        let room = if step < 0 { value.abs_diff(low) } else { high.abs_diff(value) };
        Some(room.checked_div(step.unsigned_abs()).unwrap_or(u64::MAX).min(self.turns))
    }
}

/// The expression at the cursor while the variable counts up. The cursor moves past it. `None`: the expression has no value.
pub(super) fn line(cursor: &mut Cursor<'_>, values: &Values, var: u32) -> Option<Line> {
    let before = *cursor;
    let (op, operand) = cursor.code();
    Some(match op {
        code::CONSTANT | code::WIDE | code::SYMBOL | code::SLOT | code::TRUTH => {
            *cursor = before;
            Line::still(eval(cursor, values).ok()?)
        }
        code::VAR => {
            let step = u64::from(operand == var);
            Line { step, ..Line::still(values.var(operand).cast_unsigned()) }
        }
        code::CHOICE => {
            let third = cursor.word();
            let condition = line(cursor, values, var)?;
            let is_first = condition.value != 0;
            cursor.skip(if is_first { 0 } else { operand });
            let taken = line(cursor, values, var)?;
            cursor.skip(if is_first { third } else { 0 });
            taken.until(condition.turns)
        }
        code::AND | code::OR => {
            let first = line(cursor, values, var)?;
            if (first.value != 0) == (op == code::OR) {
                cursor.skip(operand);
                first
            } else {
                line(cursor, values, var)?.until(first.turns)
            }
        }
        code::NOT => {
            let x = line(cursor, values, var)?;
            Line { value: u64::from(x.value == 0), ..x }
        }
        code::NEGATE => {
            let x = line(cursor, values, var)?;
            Line { value: x.value.wrapping_neg(), step: x.step.wrapping_neg(), ..x }
        }
        code::COMPLEMENT => {
            let x = line(cursor, values, var)?;
            Line { value: !x.value, step: x.step.wrapping_neg(), ..x }
        }
        code::TO_TRUTH => {
            let x = line(cursor, values, var)?;
            Line { value: u64::from(x.value != 0), ..x }.unless(x.step != 0)
        }
        code::TO_NUMBER => line(cursor, values, var)?,
        _ => {
            let (a, b) = (line(cursor, values, var)?, line(cursor, values, var)?);
            return of_two((op, operand != 0), a, b);
        }
    })
}

/// `None`: it divides by zero.
fn of_two((op, is_unsigned): (u32, bool), a: Line, b: Line) -> Option<Line> {
    let value = binary(op, is_unsigned, a.value, b.value)?;
    let both = Line { value, step: 0, turns: a.turns.min(b.turns) };
    let moves = (a.step, b.step) != (0, 0);
    Some(match op {
        code::ADD => Line { step: a.step.wrapping_add(b.step), ..both },
        code::SUB => Line { step: a.step.wrapping_sub(b.step), ..both },
        code::MUL => {
            let step = a.step.wrapping_mul(b.value).wrapping_add(b.step.wrapping_mul(a.value));
            Line { step, ..both }.unless(a.step != 0 && b.step != 0)
        }
        code::SHIFT_LEFT if b.step == 0 => {
            Line { step: a.step.wrapping_shl((b.value & 63) as u32), ..both }
        }
        _ if moves && b.step == 0 => match divisor((op, is_unsigned), a.value, b.value) {
            Some(divisor) => divided((op, is_unsigned), both, a, divisor),
            None => both.unless(true),
        },
        _ => both.unless(moves),
    })
}

/// What an operator divides by, as if its operands were not negative; `None`: it does not divide, or one of them is.
fn divisor((op, is_unsigned): (u32, bool), a: u64, b: u64) -> Option<u64> {
    let is_positive = |number: u64| is_unsigned || number.cast_signed() >= 0;
    match op {
        code::DIV | code::REMAINDER => (is_positive(a) && is_positive(b)).then_some(b),
        code::SHIFT_RIGHT => is_positive(a).then(|| 1 << (b & 63)),
        // All bits below one: what is left of a division by a power of two, whatever the sign.
        code::BIT_AND => b.checked_add(1).filter(|end| end.is_power_of_two()),
        _ => None,
    }
}

/// A quotient, or what is left, of `a`, which moves. `both` has the value, and the turns of the operands.
fn divided((op, is_unsigned): (u32, bool), both: Line, a: Line, divisor: u64) -> Line {
    let step = a.step.cast_signed();
    let distance = step.unsigned_abs();
    let is_quotient = matches!(op, code::DIV | code::SHIFT_RIGHT);
    let largest =
        if is_unsigned || op == code::BIT_AND { u64::MAX } else { i64::MAX.cast_unsigned() };
    let turns_to = |room: u64| room.checked_div(distance).unwrap_or(u64::MAX);
    // How far the dividend may go.
    let all = turns_to(if step < 0 { a.value } else { largest.saturating_sub(a.value) });
    let (Some(rest), Some(0)) = (a.value.checked_rem(divisor), distance.checked_rem(divisor))
    else {
        let rest = a.value.checked_rem(divisor).unwrap_or(0);
        let room = if step < 0 { rest } else { divisor.wrapping_sub(1).wrapping_sub(rest) };
        let step = if is_quotient { 0 } else { a.step };
        return Line { step, ..both }.until(all).until(turns_to(room));
    };
    debug_assert!(rest < divisor);
    // Whole divisors at once.
    let quotient = distance.checked_div(divisor).unwrap_or(0);
    let moved = if step < 0 { quotient.wrapping_neg() } else { quotient };
    Line { step: if is_quotient { moved } else { 0 }, ..both }.until(all)
}

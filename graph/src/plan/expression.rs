//! Expressions: their check, and their values. Both read the same words; `Kind` is what the check proves of a value.

use pto_abi::fault::Fault;

use super::cursor::{Cursor, signed};
use super::layout::{expression as code, limits};
use super::stop::Stop;
use super::values::Values;

/// The type of an expression. Whether a number is signed says the operator that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Truth,
    Number,
}

/// The names that an expression may use at its position in the plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) vars: u32,
    pub(super) symbols: u32,
}

/// Checks an expression, and moves the cursor past it.
pub(super) fn check(cursor: &mut Cursor<'_>, names: Names, depth: u32) -> Result<Kind, Stop> {
    let at = cursor.at();
    if depth >= limits::EXPRESSION_DEPTH {
        let limit = limits::EXPRESSION_DEPTH.into();
        return Err(Stop::new(Fault::PLAN_DEPTH, at).detail(limit, limit));
    }
    let (op, operand) = cursor.code();
    let named = |limit: u32| match operand < limit {
        true => Ok(Kind::Number),
        false => Err(Stop::new(Fault::PLAN_NAME, at).detail(operand.into(), limit.into())),
    };
    match op {
        code::CONSTANT => Ok(Kind::Number),
        code::WIDE if cursor.has(2) => {
            cursor.wide();
            Ok(Kind::Number)
        }
        code::WIDE => Err(Stop::new(Fault::PLAN_LENGTH, at)),
        code::VAR => named(names.vars),
        code::SYMBOL => named(names.symbols),
        code::SLOT => named(limits::SLOTS),
        code::TRUTH => Ok(Kind::Truth),
        code::CHOICE => {
            let third = cursor.word();
            needs(check(cursor, names, depth + 1)?, Kind::Truth, at)?;
            let then = measured(cursor, operand, names, depth)?;
            needs(measured(cursor, third, names, depth)?, then, at)?;
            Ok(then)
        }
        code::AND | code::OR => {
            needs(check(cursor, names, depth + 1)?, Kind::Truth, at)?;
            needs(measured(cursor, operand, names, depth)?, Kind::Truth, at)?;
            Ok(Kind::Truth)
        }
        code::NOT => needs(check(cursor, names, depth + 1)?, Kind::Truth, at),
        code::NEGATE | code::COMPLEMENT => {
            needs(check(cursor, names, depth + 1)?, Kind::Number, at)
        }
        code::TO_TRUTH => check(cursor, names, depth + 1).map(|_| Kind::Truth),
        code::TO_NUMBER => check(cursor, names, depth + 1).map(|_| Kind::Number),
        code::EQUAL | code::NOT_EQUAL => {
            let first = check(cursor, names, depth + 1)?;
            needs(check(cursor, names, depth + 1)?, first, at)?;
            Ok(Kind::Truth)
        }
        code::LESS..=code::REMAINDER => {
            needs(check(cursor, names, depth + 1)?, Kind::Number, at)?;
            needs(check(cursor, names, depth + 1)?, Kind::Number, at)?;
            Ok(if op <= code::GREATER_EQUAL { Kind::Truth } else { Kind::Number })
        }
        _ => Err(Stop::new(Fault::PLAN_CODE, at).detail(op.into(), code::REMAINDER.into())),
    }
}

/// Checks an expression that may be left out, whose words are counted in front of it.
fn measured(cursor: &mut Cursor<'_>, words: u32, names: Names, depth: u32) -> Result<Kind, Stop> {
    let start = cursor.at();
    let kind = check(cursor, names, depth + 1)?;
    let found = cursor.at() - start;
    if found == words as usize {
        return Ok(kind);
    }
    Err(Stop::new(Fault::PLAN_LENGTH, start).detail(found as u64, words.into()))
}

fn needs(found: Kind, needed: Kind, at: usize) -> Result<Kind, Stop> {
    if found == needed { Ok(found) } else { Err(Stop::new(Fault::PLAN_TYPE, at)) }
}

/// Returns the value of an expression, and moves the cursor past it. A truth value is 0 or 1.
#[inline]
pub(super) fn eval(cursor: &mut Cursor<'_>, values: &Values) -> Result<u64, Stop> {
    let at = cursor.at();
    let (op, operand) = cursor.code();
    match op {
        code::CONSTANT => Ok(signed(operand).cast_unsigned()),
        code::VAR => Ok(values.var(operand).cast_unsigned()),
        _ => eval_other(at, (op, operand), cursor, values),
    }
}

/// An index: a signed number.
#[inline]
pub(super) fn eval_signed(cursor: &mut Cursor<'_>, values: &Values) -> Result<i64, Stop> {
    eval(cursor, values).map(u64::cast_signed)
}

fn eval_other(
    at: usize,
    (op, operand): (u32, u32),
    cursor: &mut Cursor<'_>,
    values: &Values,
) -> Result<u64, Stop> {
    Ok(match op {
        code::WIDE => cursor.wide(),
        code::SYMBOL => values.symbol(operand),
        code::SLOT => values.slot(operand),
        code::TRUTH => u64::from(operand != 0),
        code::CHOICE => return choice(cursor, operand, values),
        code::AND | code::OR => {
            let first = eval(cursor, values)?;
            // As in C, the second operand is evaluated only where it matters.
            if (first != 0) == (op == code::OR) {
                cursor.skip(operand);
                first
            } else {
                eval(cursor, values)?
            }
        }
        code::NOT => u64::from(eval(cursor, values)? == 0),
        code::NEGATE => eval(cursor, values)?.wrapping_neg(),
        code::COMPLEMENT => !eval(cursor, values)?,
        code::TO_TRUTH => u64::from(eval(cursor, values)? != 0),
        code::TO_NUMBER => eval(cursor, values)?,
        _ => {
            let (a, b) = (eval(cursor, values)?, eval(cursor, values)?);
            return binary(op, operand != 0, a, b)
                .ok_or_else(|| Stop::new(Fault::PLAN_DIVISION, at).detail(a, 0));
        }
    })
}

fn choice(cursor: &mut Cursor<'_>, second: u32, values: &Values) -> Result<u64, Stop> {
    let third = cursor.word();
    if eval(cursor, values)? != 0 {
        let value = eval(cursor, values)?;
        cursor.skip(third);
        return Ok(value);
    }
    cursor.skip(second);
    eval(cursor, values)
}

/// `None` where it divides by zero.
#[inline]
pub(super) fn binary(op: u32, is_unsigned: bool, a: u64, b: u64) -> Option<u64> {
    let (x, y) = (a.cast_signed(), b.cast_signed());
    let count = (b & 63) as u32;
    let order = if is_unsigned { a.cmp(&b) } else { x.cmp(&y) };
    Some(match op {
        code::EQUAL => u64::from(a == b),
        code::NOT_EQUAL => u64::from(a != b),
        code::LESS => u64::from(order.is_lt()),
        code::LESS_EQUAL => u64::from(order.is_le()),
        code::GREATER => u64::from(order.is_gt()),
        code::GREATER_EQUAL => u64::from(order.is_ge()),
        code::BIT_OR => a | b,
        code::BIT_XOR => a ^ b,
        code::BIT_AND => a & b,
        code::SHIFT_LEFT => a.wrapping_shl(count),
        code::SHIFT_RIGHT if is_unsigned => a.wrapping_shr(count),
        code::SHIFT_RIGHT => x.wrapping_shr(count).cast_unsigned(),
        code::ADD => a.wrapping_add(b),
        code::SUB => a.wrapping_sub(b),
        code::MUL => a.wrapping_mul(b),
        _ => divided(op, is_unsigned, a, b)?,
    })
}

fn divided(op: u32, is_unsigned: bool, a: u64, b: u64) -> Option<u64> {
    if b == 0 {
        return None;
    }
    let (x, y) = (a.cast_signed(), b.cast_signed());
    Some(match (op, is_unsigned) {
        (code::DIV, true) => a / b,
        (code::DIV, false) => x.wrapping_div(y).cast_unsigned(),
        (_, true) => a % b,
        (_, false) => x.wrapping_rem(y).cast_unsigned(),
    })
}

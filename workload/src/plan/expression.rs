//! Expressions as words. Their types are known here, so that each operator says whether it is one of unsigned numbers.

use pto_graph::plan::layout::expression as code;

use crate::tree::{BinaryOp, Expr, ScalarType, UnaryOp, common};

use super::names::{SymbolTable, SymbolUse, number};

/// A word: a code and its operand of 24 bits.
pub(super) const fn word(code: u32, operand: u32) -> u32 {
    code | operand << 8
}

/// Appends an expression; returns its type.
pub(super) fn write(expr: &Expr, names: &mut SymbolTable, words: &mut Vec<u32>) -> ScalarType {
    use ScalarType::{Bool, I64, U64};
    match expr {
        Expr::Bool(value) => {
            words.push(word(code::TRUTH, u32::from(*value)));
            Bool
        }
        Expr::Int(value) => {
            constant(value.cast_unsigned(), words);
            I64
        }
        Expr::Unsigned(value) => {
            constant(*value, words);
            U64
        }
        Expr::Var(name) => {
            words.push(word(code::VAR, names.var(name)));
            I64
        }
        Expr::Symbol(name) => {
            words.push(word(code::SYMBOL, names.symbol(name, SymbolUse::Number)));
            U64
        }
        Expr::Slot(slot, of) => {
            if *of == Bool {
                words.push(word(code::TO_TRUTH, 0));
            }
            words.push(word(code::SLOT, (*slot).into()));
            *of
        }
        // Only keys and priorities have them. The axes of a task stand for themselves.
        Expr::Param(number) => match names.params.get(usize::from(*number)).cloned() {
            Some(axis) => cast(I64, &axis, names, words),
            None => {
                names.missing = Some(*number);
                words.push(0);
                I64
            }
        },
        Expr::Unary(op, x) => {
            words.push(word(unary(*op), 0));
            write(x, names, words)
        }
        Expr::Binary(op, operands) => binary(*op, operands, names, words),
        Expr::Choice(parts) => choice(parts, names, words),
        Expr::Cast(to, x) => cast(*to, x, names, words),
    }
}

/// Appends a number.
pub(super) fn constant(value: u64, words: &mut Vec<u32>) {
    const MOST: i64 = 1 << 23;
    if (-MOST..MOST).contains(&value.cast_signed()) {
        words.push(word(code::CONSTANT, low(value) & 0xFF_FFFF));
    } else {
        words.push(word(code::WIDE, 0));
        words.extend(wide(value));
    }
}

/// A number of 64 bits as two words.
pub(super) fn wide(value: u64) -> [u32; 2] {
    [low(value), low(value >> 32)]
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
const fn low(value: u64) -> u32 {
    value as u32
}

/// An expression of its own, and its type.
fn apart(expr: &Expr, names: &mut SymbolTable) -> (Vec<u32>, ScalarType) {
    let mut words = Vec::new();
    let of = write(expr, names, &mut words);
    (words, of)
}

const fn unary(op: UnaryOp) -> u32 {
    match op {
        UnaryOp::Not => code::NOT,
        UnaryOp::Negate => code::NEGATE,
        UnaryOp::Complement => code::COMPLEMENT,
    }
}

fn binary(
    op: BinaryOp,
    (a, b): &(Expr, Expr),
    names: &mut SymbolTable,
    words: &mut Vec<u32>,
) -> ScalarType {
    let ((first, a), (second, b)) = (apart(a, names), apart(b, names));
    // A workload that was checked has no operator without a type.
    let both = common(a, b).unwrap_or(ScalarType::U64);
    let is_shift = matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight);
    let of = if is_shift { a } else { both };
    let operand = match op {
        BinaryOp::And | BinaryOp::Or => number(second.len()),
        _ => u32::from(of == ScalarType::U64),
    };
    words.push(word(binary_code(op), operand));
    words.extend(first);
    words.extend(second);
    if op.is_comparison() { ScalarType::Bool } else { of }
}

const fn binary_code(op: BinaryOp) -> u32 {
    match op {
        BinaryOp::Or => code::OR,
        BinaryOp::And => code::AND,
        BinaryOp::Equal => code::EQUAL,
        BinaryOp::NotEqual => code::NOT_EQUAL,
        BinaryOp::Less => code::LESS,
        BinaryOp::LessEqual => code::LESS_EQUAL,
        BinaryOp::Greater => code::GREATER,
        BinaryOp::GreaterEqual => code::GREATER_EQUAL,
        BinaryOp::BitOr => code::BIT_OR,
        BinaryOp::BitXor => code::BIT_XOR,
        BinaryOp::BitAnd => code::BIT_AND,
        BinaryOp::ShiftLeft => code::SHIFT_LEFT,
        BinaryOp::ShiftRight => code::SHIFT_RIGHT,
        BinaryOp::Add => code::ADD,
        BinaryOp::Sub => code::SUB,
        BinaryOp::Mul => code::MUL,
        BinaryOp::Div => code::DIV,
        BinaryOp::Remainder => code::REMAINDER,
    }
}

fn choice(
    (condition, then, otherwise): &(Expr, Expr, Expr),
    names: &mut SymbolTable,
    words: &mut Vec<u32>,
) -> ScalarType {
    let (condition, _) = apart(condition, names);
    let ((then, a), (otherwise, b)) = (apart(then, names), apart(otherwise, names));
    words.extend([word(code::CHOICE, number(then.len())), number(otherwise.len())]);
    words.extend(condition);
    words.extend(then);
    words.extend(otherwise);
    common(a, b).unwrap_or(a)
}

fn cast(to: ScalarType, x: &Expr, names: &mut SymbolTable, words: &mut Vec<u32>) -> ScalarType {
    let (inner, from) = apart(x, names);
    match (to, from) {
        (ScalarType::Bool, _) => words.push(word(code::TO_TRUTH, 0)),
        (_, ScalarType::Bool) => words.push(word(code::TO_NUMBER, 0)),
        // The same 64 bits.
        _ => {}
    }
    words.extend(inner);
    to
}

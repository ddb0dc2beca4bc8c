//! The textual form of expressions, read: operators bind as in C.

use crate::lexer::ParseError;
use crate::lexer::{Lexer, Token, parse_number};

use super::expr::{BinaryOp, Expr, ScalarType, UnaryOp};

/// How strongly an operator binds.
const fn strength(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::BitOr => 3,
        BinaryOp::BitXor => 4,
        BinaryOp::BitAnd => 5,
        BinaryOp::Equal | BinaryOp::NotEqual => 6,
        BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => 7,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => 8,
        BinaryOp::Add | BinaryOp::Sub => 9,
        BinaryOp::Mul | BinaryOp::Div | BinaryOp::Remainder => 10,
    }
}

/// How deep expressions may are in one another.
const DEPTH: usize = 200;

/// An expression.
pub(super) fn expression(lexer: &mut Lexer) -> Result<Expr, ParseError> {
    choice(lexer, DEPTH)
}

fn choice(lexer: &mut Lexer, depth: usize) -> Result<Expr, ParseError> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(lexer.error(format!("expressions stand in one another more than {DEPTH} deep")));
    };
    let condition = pairs(lexer, 0, depth)?;
    if !lexer.takes("?") {
        return Ok(condition);
    }
    let then = choice(lexer, depth)?;
    lexer.mark(":")?;
    Ok(Expr::choice(condition, then, choice(lexer, depth)?))
}

/// Operators that bind more strongly than `least`.
fn pairs(lexer: &mut Lexer, least: u8, depth: usize) -> Result<Expr, ParseError> {
    let mut left = operand(lexer, depth)?;
    loop {
        let Token::Mark(mark) = lexer.peek() else { return Ok(left) };
        let found = BinaryOp::ALL.into_iter().find(|op| op.mark() == *mark);
        let Some(op) = found.filter(|op| strength(*op) > least) else { return Ok(left) };
        lexer.next();
        left = Expr::binary(op, left, pairs(lexer, strength(op), depth)?);
    }
}

fn operand(lexer: &mut Lexer, depth: usize) -> Result<Expr, ParseError> {
    if lexer.takes("(") {
        let inner = choice(lexer, depth)?;
        lexer.mark(")")?;
        return Ok(inner);
    }
    if matches!((lexer.peek(), lexer.ahead(1)), (Token::Mark("-"), Token::Number(_))) {
        let text = lexer.signed_text()?;
        let value = text.parse().map_err(|_| lexer.error_before("the number does not fit i64"))?;
        return Ok(Expr::Int(value));
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Err(lexer.error(format!("expressions stand in one another more than {DEPTH} deep")));
    };
    for op in [UnaryOp::Not, UnaryOp::Negate, UnaryOp::Complement] {
        if lexer.takes(op.mark()) {
            return Ok(Expr::unary(op, operand(lexer, depth)?));
        }
    }
    if matches!(lexer.peek(), Token::Number(_)) { number(lexer) } else { named(lexer, depth) }
}

fn number(lexer: &mut Lexer) -> Result<Expr, ParseError> {
    let text = lexer.signed_text()?;
    let failed = |lexer: &Lexer| lexer.error_before(format!("`{text}` is no integer of 64 bits"));
    match text.strip_suffix('u') {
        Some(digits) => parse_number(digits).map(Expr::Unsigned).ok_or_else(|| failed(lexer)),
        None => parse_number(&text).map(Expr::Int).ok_or_else(|| failed(lexer)),
    }
}

/// A name, or a function of something in parentheses.
fn named(lexer: &mut Lexer, depth: usize) -> Result<Expr, ParseError> {
    let name = lexer.name()?;
    match name.as_str() {
        "true" => return Ok(Expr::Bool(true)),
        "false" => return Ok(Expr::Bool(false)),
        _ => {}
    }
    if !lexer.takes("(") {
        return Ok(Expr::Var(name));
    }
    let slot_type = name.strip_prefix("slot_").and_then(ScalarType::from_name);
    let found = match (name.as_str(), slot_type, ScalarType::from_name(&name)) {
        ("symbol", ..) => Expr::Symbol(lexer.name()?),
        ("param", ..) => Expr::Param(lexer.unsigned()?),
        (_, Some(of), _) => Expr::Slot(lexer.unsigned()?, of),
        (_, _, Some(to)) => Expr::cast(to, choice(lexer, depth)?),
        _ => return Err(lexer.error_before(format!("there is no function `{name}`"))),
    };
    lexer.mark(")")?;
    Ok(found)
}

//! The values that an index takes, where they follow from the tree alone.

use super::axis::Axis;
use super::expr::{BinaryOp, Expr, UnaryOp};

/// The smallest and largest value of an expression, both of which are taken; `None` where that does not follow from the axes.
pub(super) fn bounds(expr: &Expr, axes: &[(&str, &Axis)]) -> Option<(i128, i128)> {
    match expr {
        Expr::Int(value) => Some((i128::from(*value), i128::from(*value))),
        Expr::Unsigned(value) => Some((i128::from(*value), i128::from(*value))),
        Expr::Var(name) => match axes.iter().rev().find(|(var, _)| var == name)? {
            (_, Axis::Dense(size)) if *size > 0 => Some((0, i128::from(*size) - 1)),
            _ => None,
        },
        Expr::Unary(UnaryOp::Negate, x) => bounds(x, axes).map(|(low, high)| (-high, -low)),
        Expr::Binary(op, operands) => {
            let (a, b) = (bounds(&operands.0, axes)?, bounds(&operands.1, axes)?);
            let is_independent = a.0 == a.1 || b.0 == b.1;
            if !is_independent {
                return None;
            }
            let of = |a: i128, b: i128| match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Sub => a.checked_sub(b),
                BinaryOp::Mul => a.checked_mul(b),
                _ => None,
            };
            let ends = [of(a.0, b.0)?, of(a.0, b.1)?, of(a.1, b.0)?, of(a.1, b.1)?];
            Some((*ends.iter().min()?, *ends.iter().max()?))
        }
        _ => None,
    }
}

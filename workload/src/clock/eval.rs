//! Expressions, evaluated.

use crate::tree::{BinaryOp, Expr, SLOTS, ScalarType, UnaryOp};

use super::bindings::Bindings;
use super::loop_scope::LoopScope;
use super::report::RunError;

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarValue {
    Bool(bool),
    Int(i64),
    Unsigned(u64),
}

impl ScalarValue {
    /// The 64 bits.
    pub(super) const fn bits(self) -> u64 {
        match self {
            Self::Bool(value) => value as u64,
            Self::Int(value) => value.cast_unsigned(),
            Self::Unsigned(value) => value,
        }
    }

    fn cast(self, to: ScalarType) -> Self {
        match to {
            ScalarType::Bool => Self::Bool(self.bits() != 0),
            ScalarType::I64 => Self::Int(self.bits().cast_signed()),
            ScalarType::U64 => Self::Unsigned(self.bits()),
        }
    }
}

/// What expressions read: symbols and slots.
#[derive(Debug)]
pub(super) struct Inputs<'a> {
    pub(super) bindings: &'a Bindings<'a>,
    pub(super) slots: [u64; SLOTS],
}

impl Inputs<'_> {
    /// Evaluates an expression; `params` are the arguments of the task, where there is one.
    pub(super) fn eval(
        &self,
        expr: &Expr,
        scope: &LoopScope,
        params: &[i64],
    ) -> Result<ScalarValue, RunError> {
        let failed = |message: String| RunError::Expression { scope: scope.clone(), message };
        Ok(match expr {
            Expr::Bool(value) => ScalarValue::Bool(*value),
            Expr::Int(value) => ScalarValue::Int(*value),
            Expr::Unsigned(value) => ScalarValue::Unsigned(*value),
            Expr::Var(name) => {
                let found = scope.get(name);
                ScalarValue::Int(
                    found.ok_or_else(|| failed(format!("there is no variable {name}.")))?,
                )
            }
            Expr::Symbol(name) => ScalarValue::Unsigned(self.bindings.find_symbol(name)?),
            Expr::Slot(slot, of) => {
                let bits = self.slots.get(usize::from(*slot)).copied().unwrap_or(0);
                ScalarValue::Unsigned(bits).cast(*of)
            }
            Expr::Param(number) => {
                let found = params.get(usize::from(*number)).copied();
                ScalarValue::Int(
                    found.ok_or_else(|| failed(format!("there is no argument {number}.")))?,
                )
            }
            Expr::Unary(op, x) => unary(*op, self.eval(x, scope, params)?),
            Expr::Binary(op, operands) => self.binary(*op, operands, scope, params)?,
            Expr::Choice(parts) => {
                let (condition, then, otherwise) = &**parts;
                let is_true = self.eval(condition, scope, params)?.bits() != 0;
                // The branch that is not taken gives the type only, and must not fault: it is not evaluated.
                let taken = self.eval(if is_true { then } else { otherwise }, scope, params)?;
                let has_unsigned = [then, otherwise].into_iter().any(is_unsigned);
                if has_unsigned { taken.cast(ScalarType::U64) } else { taken }
            }
            Expr::Cast(to, x) => self.eval(x, scope, params)?.cast(*to),
        })
    }

    /// An integer.
    pub(super) fn integer(&self, expr: &Expr, scope: &LoopScope) -> Result<i64, RunError> {
        self.eval(expr, scope, &[]).map(|value| value.bits().cast_signed())
    }

    /// A truth value.
    pub(super) fn is_true(&self, expr: &Expr, scope: &LoopScope) -> Result<bool, RunError> {
        self.eval(expr, scope, &[]).map(|value| value.bits() != 0)
    }

    fn binary(
        &self,
        op: BinaryOp,
        operands: &(Expr, Expr),
        scope: &LoopScope,
        params: &[i64],
    ) -> Result<ScalarValue, RunError> {
        let a = self.eval(&operands.0, scope, params)?;
        // As in C, the second operand is evaluated only where it matters.
        match (op, a) {
            (BinaryOp::And, ScalarValue::Bool(false)) | (BinaryOp::Or, ScalarValue::Bool(true)) => {
                return Ok(a);
            }
            _ => {}
        }
        let b = self.eval(&operands.1, scope, params)?;
        binary(op, a, b).ok_or_else(|| RunError::Expression {
            scope: scope.clone(),
            message: format!("{} {} 0 divides by zero.", a.bits().cast_signed(), op.mark()),
        })
    }
}

/// Whether the type of an expression is `u64`. It was typed before, so that every name is known to be there.
fn is_unsigned(expr: &Expr) -> bool {
    match expr {
        Expr::Unsigned(_) | Expr::Symbol(_) => true,
        Expr::Slot(_, of) | Expr::Cast(of, _) => *of == ScalarType::U64,
        Expr::Unary(_, x) => is_unsigned(x),
        Expr::Binary(BinaryOp::ShiftLeft | BinaryOp::ShiftRight, operands) => {
            is_unsigned(&operands.0)
        }
        Expr::Binary(op, operands) => {
            let is_bool = op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or);
            !is_bool && (is_unsigned(&operands.0) || is_unsigned(&operands.1))
        }
        Expr::Choice(parts) => is_unsigned(&parts.1) || is_unsigned(&parts.2),
        Expr::Bool(_) | Expr::Int(_) | Expr::Var(_) | Expr::Param(_) => false,
    }
}

fn unary(op: UnaryOp, x: ScalarValue) -> ScalarValue {
    match (op, x) {
        (UnaryOp::Not, x) => ScalarValue::Bool(x.bits() == 0),
        (UnaryOp::Negate, ScalarValue::Int(x)) => ScalarValue::Int(x.wrapping_neg()),
        (UnaryOp::Negate, x) => ScalarValue::Unsigned(x.bits().wrapping_neg()),
        (UnaryOp::Complement, ScalarValue::Int(x)) => ScalarValue::Int(!x),
        (UnaryOp::Complement, x) => ScalarValue::Unsigned(!x.bits()),
    }
}

/// `None` where it divides by zero.
fn binary(op: BinaryOp, a: ScalarValue, b: ScalarValue) -> Option<ScalarValue> {
    if let BinaryOp::ShiftLeft | BinaryOp::ShiftRight = op {
        return Some(shift(op, a, b.bits() & 63));
    }
    Some(match (a, b) {
        (ScalarValue::Bool(a), ScalarValue::Bool(b)) => match op {
            BinaryOp::Or => ScalarValue::Bool(a || b),
            BinaryOp::And => ScalarValue::Bool(a && b),
            BinaryOp::NotEqual => ScalarValue::Bool(a != b),
            _ => ScalarValue::Bool(a == b),
        },
        (ScalarValue::Int(a), ScalarValue::Int(b)) => signed(op, a, b)?,
        _ => unsigned(op, a.bits(), b.bits())?,
    })
}

fn shift(op: BinaryOp, a: ScalarValue, count: u64) -> ScalarValue {
    match (op, a) {
        (BinaryOp::ShiftLeft, ScalarValue::Int(a)) => ScalarValue::Int(a << count),
        (BinaryOp::ShiftLeft, a) => ScalarValue::Unsigned(a.bits() << count),
        (_, ScalarValue::Int(a)) => ScalarValue::Int(a >> count),
        (_, a) => ScalarValue::Unsigned(a.bits() >> count),
    }
}

/// Declares the operators of a type of integers.
macro_rules! integers {
    ($name:ident, $type:ty, $variant:ident) => {
        fn $name(op: BinaryOp, a: $type, b: $type) -> Option<ScalarValue> {
            let divided = |f: fn($type, $type) -> $type| (b != 0).then(|| f(a, b));
            Some(match op {
                BinaryOp::Equal => ScalarValue::Bool(a == b),
                BinaryOp::NotEqual => ScalarValue::Bool(a != b),
                BinaryOp::Less => ScalarValue::Bool(a < b),
                BinaryOp::LessEqual => ScalarValue::Bool(a <= b),
                BinaryOp::Greater => ScalarValue::Bool(a > b),
                BinaryOp::GreaterEqual => ScalarValue::Bool(a >= b),
                BinaryOp::BitOr | BinaryOp::Or => ScalarValue::$variant(a | b),
                BinaryOp::BitXor => ScalarValue::$variant(a ^ b),
                BinaryOp::BitAnd | BinaryOp::And => ScalarValue::$variant(a & b),
                BinaryOp::Add => ScalarValue::$variant(a.wrapping_add(b)),
                BinaryOp::Sub => ScalarValue::$variant(a.wrapping_sub(b)),
                BinaryOp::Mul => ScalarValue::$variant(a.wrapping_mul(b)),
                BinaryOp::Div => ScalarValue::$variant(divided(<$type>::wrapping_div)?),
                BinaryOp::Remainder => ScalarValue::$variant(divided(<$type>::wrapping_rem)?),
                // Shifts were taken before.
                BinaryOp::ShiftLeft | BinaryOp::ShiftRight => ScalarValue::$variant(a),
            })
        }
    };
}

integers!(signed, i64, Int);
integers!(unsigned, u64, Unsigned);

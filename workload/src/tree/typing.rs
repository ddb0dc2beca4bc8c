//! Types of expressions.

use pto_abi::numbers::Counted;

use super::expr::{BinaryOp, Expr, SLOTS, ScalarType, UnaryOp};

/// What an expression may name in its scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The loop variables, outermost first.
    pub(crate) vars: Vec<String>,
    /// How many arguments the task has; `None` where there is no task.
    pub(crate) params: Option<usize>,
}

/// The type of an expression, or what is wrong with it.
pub(crate) fn type_of(expr: &Expr, scope: &Scope) -> Result<ScalarType, String> {
    use ScalarType::{Bool, I64, U64};
    match expr {
        Expr::Bool(_) => Ok(Bool),
        Expr::Int(_) => Ok(I64),
        Expr::Unsigned(_) | Expr::Symbol(_) => Ok(U64),
        Expr::Var(name) if scope.vars.contains(name) => Ok(I64),
        Expr::Var(name) => Err(format!("There is no loop variable {name} here.")),
        Expr::Slot(slot, _) if usize::from(*slot) >= SLOTS => {
            Err(format!("There is no slot {slot}. The last one is {}.", SLOTS - 1))
        }
        Expr::Slot(_, of) => Ok(*of),
        Expr::Param(number) => param(*number, scope),
        Expr::Unary(op, x) => unary(*op, type_of(x, scope)?),
        Expr::Binary(op, operands) => {
            let (a, b) = (type_of(&operands.0, scope)?, type_of(&operands.1, scope)?);
            binary(*op, a, b)
        }
        Expr::Choice(parts) => {
            let (condition, then, otherwise) = &**parts;
            if type_of(condition, scope)? != Bool {
                return Err("The condition of a choice must be bool.".to_owned());
            }
            let (then, otherwise) = (type_of(then, scope)?, type_of(otherwise, scope)?);
            common(then, otherwise).ok_or_else(|| {
                format!("A choice between {} and {} has no type.", then.name(), otherwise.name())
            })
        }
        Expr::Cast(to, x) => type_of(x, scope).map(|_| *to),
    }
}

fn param(number: u16, scope: &Scope) -> Result<ScalarType, String> {
    match scope.params {
        Some(params) if usize::from(number) < params => Ok(ScalarType::I64),
        Some(params) => Err(format!(
            "A task has {}, and none with number {number}.",
            Counted(params as u64, "argument")
        )),
        None => Err("Only where tasks are dispatched are there arguments of a task.".to_owned()),
    }
}

fn unary(op: UnaryOp, x: ScalarType) -> Result<ScalarType, String> {
    let needs_bool = op == UnaryOp::Not;
    if needs_bool == (x == ScalarType::Bool) {
        return Ok(x);
    }
    Err(format!("The operator {} is not defined for {}.", op.mark(), x.name()))
}

/// The type that both become: one unsigned operand makes both unsigned.
pub(crate) fn common(a: ScalarType, b: ScalarType) -> Option<ScalarType> {
    use ScalarType::{Bool, U64};
    match (a, b) {
        _ if a == b => Some(a),
        (Bool, _) | (_, Bool) => None,
        _ => Some(U64),
    }
}

fn binary(op: BinaryOp, a: ScalarType, b: ScalarType) -> Result<ScalarType, String> {
    use ScalarType::Bool;
    let failed =
        || format!("The operator {} is not defined for {} and {}.", op.mark(), a.name(), b.name());
    let common = common(a, b).ok_or_else(failed)?;
    match op {
        BinaryOp::Or | BinaryOp::And if common == Bool => Ok(Bool),
        BinaryOp::Or | BinaryOp::And => Err(failed()),
        BinaryOp::Equal | BinaryOp::NotEqual => Ok(Bool),
        _ if common == Bool => Err(failed()),
        _ if op.is_comparison() => Ok(Bool),
        // As in C: the count does not change the type of what is shifted.
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => Ok(a),
        _ => Ok(common),
    }
}

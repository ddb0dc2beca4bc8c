//! Products of matrices.

use super::check::{OperatorCheck, broadcast};
use crate::dtype::DType;
use crate::error::OperatorError;
use crate::operator::{Activation, Binary, Epilogue, Function, Step, Unary};
use crate::tensor::TensorType;

/// Whether the function behind a product gives the type of its operand.
pub(super) fn check_epilogue(
    check: &OperatorCheck<'_>,
    epilogue: &Epilogue,
) -> Result<(), OperatorError> {
    let of_floats = match epilogue {
        Epilogue::None => true,
        Epilogue::Unary(unary) => is_of_floats(&Function::Unary(*unary)),
        Epilogue::Activation(activation) => is_of_floats(&Function::Activation(activation.clone())),
        Epilogue::Steps(steps) => !steps.is_empty() && steps.iter().enumerate().all(is_step),
    };
    if !of_floats {
        return Err(check.attribute(
            "epilogue",
            format!("is {epilogue:?}; use a function from floats to floats"),
        ));
    }
    if matches!(epilogue, Epilogue::None) {
        return Ok(());
    }
    let x = check.float(0)?;
    if matches!(epilogue, Epilogue::Steps(_)) && !matches!(x.dtype, DType::F32 | DType::F64) {
        let rule = format!("has several steps, and x is {x}; use f32 or f64");
        return Err(check.attribute("epilogue", rule));
    }
    Ok(())
}

/// Whether a function of floats gives floats of the same type, one for each element.
const fn is_of_floats(function: &Function) -> bool {
    match function {
        Function::Unary(unary) => !matches!(unary, Unary::IsNaN | Unary::Not | Unary::BitwiseNot),
        Function::Activation(activation) => !matches!(activation, Activation::IsInf { .. }),
        Function::Binary(
            Binary::Add
            | Binary::Sub
            | Binary::Mul
            | Binary::Div
            | Binary::Max
            | Binary::Min
            | Binary::PRelu,
        ) => true,
        _ => false,
    }
}

/// Whether the step with this number takes what is there before it.
fn is_step((at, step): (usize, &Step)) -> bool {
    let count = if matches!(step.function, Function::Binary(_)) { 2 } else { 1 };
    is_of_floats(&step.function)
        && step.operands.len() == count
        && step.operands.iter().all(|operand| operand.is_some_and(|operand| operand <= at))
}

pub(super) fn matmul(
    check: &OperatorCheck<'_>,
    epilogue: &Epilogue,
) -> Result<TensorType, OperatorError> {
    check_epilogue(check, epilogue)?;
    let a = check.number(0)?;
    let b = check.typed(1, a.dtype)?;
    if a.rank() == 0 || b.rank() == 0 {
        let at = usize::from(a.rank() > 0);
        return Err(check
            .wrong(at, format!("is {}; give a vector or matrices", if at == 0 { a } else { b })));
    }
    let (rows, inner) = match a.shape.as_slice() {
        [.., rows, inner] => (Some(*rows), *inner),
        other => (None, other[0]),
    };
    let (found, cols) = match b.shape.as_slice() {
        [.., found, cols] => (*found, Some(*cols)),
        other => (other[0], None),
    };
    if inner != found {
        return Err(check.wrong(
            1,
            format!(
                "is {b}, and a is {a}; the inner extents, {inner} and {found}, have to be equal"
            ),
        ));
    }
    let outer = |ty: &TensorType| ty.shape[..ty.rank().saturating_sub(2)].to_vec();
    let mut shape = check.broadcast(1, &outer(a), &outer(b))?;
    shape.extend(rows);
    shape.extend(cols);
    added(check, 2, &shape, a.dtype)?;
    Ok(TensorType { dtype: a.dtype, shape })
}

/// An optional input that is added to a result of this shape.
fn added(
    check: &OperatorCheck<'_>,
    at: usize,
    shape: &[usize],
    dtype: DType,
) -> Result<(), OperatorError> {
    if check.optional(at).is_none() {
        return Ok(());
    }
    let ty = check.typed(at, dtype)?;
    if broadcast(shape, &ty.shape).as_deref() == Some(shape) {
        return Ok(());
    }
    Err(check.wrong(at, format!("is {ty}, which does not broadcast to the product, {shape:?}")))
}

pub(super) fn gemm(
    check: &OperatorCheck<'_>,
    transposed: [bool; 2],
    epilogue: &Epilogue,
) -> Result<TensorType, OperatorError> {
    check_epilogue(check, epilogue)?;
    let a = check.number(0)?;
    let b = check.typed(1, a.dtype)?;
    let sides = |at: usize, ty: &TensorType| match (ty.shape.as_slice(), transposed[at]) {
        ([rows, cols], false) => Ok((*rows, *cols)),
        ([rows, cols], true) => Ok((*cols, *rows)),
        _ => Err(check.wrong(at, format!("is {ty}; give a matrix"))),
    };
    let ((m, inner), (found, n)) = (sides(0, a)?, sides(1, b)?);
    if inner != found {
        return Err(check.wrong(
            1,
            format!(
                "is {b}, and a is {a}; the inner extents, {inner} and {found}, have to be equal"
            ),
        ));
    }
    added(check, 2, &[m, n], a.dtype)?;
    Ok(TensorType::new(a.dtype, &[m, n]))
}

pub(super) fn attention(check: &OperatorCheck<'_>) -> Result<TensorType, OperatorError> {
    let q = check.float(0)?;
    let (k, v) = (check.typed(1, q.dtype)?, check.typed(2, q.dtype)?);
    let rank = q.rank();
    if rank < 2 || k.rank() != rank || v.rank() != rank {
        return Err(check.wrong(
            1,
            format!("is {k}, q is {q} and v is {v}; give as many dimensions, two at least"),
        ));
    }
    let [queries, depth] = [q.shape[rank - 2], q.shape[rank - 1]];
    let [keys, values] = [k.shape[rank - 2], v.shape[rank - 1]];
    if k.shape[rank - 1] != depth {
        return Err(
            check.wrong(1, format!("is {k}, and q is {q}; the last extents have to be equal"))
        );
    }
    if k.shape[..rank - 1] != v.shape[..rank - 1] {
        return Err(check.wrong(
            2,
            format!("is {v}, and k is {k}; all extents but the last one have to be equal"),
        ));
    }
    for at in 0..rank - 2 {
        let (of_q, of_k) = (q.shape[at], k.shape[at]);
        let is_heads = at == rank - 3 && of_k > 0 && of_q % of_k == 0;
        if of_q != of_k && !is_heads {
            return Err(check.wrong(
                1,
                format!(
                    "is {k}, and q is {q}; extent {of_k} of dimension {at} does not fit {of_q}"
                ),
            ));
        }
    }
    let scores = [&q.shape[..rank - 2], &[queries, keys]].concat();
    if let Some(mask) = check.optional(3) {
        if mask.dtype != DType::Bool && mask.dtype != q.dtype {
            return Err(check.wrong(3, format!("is {mask}; use bool or {}", q.dtype)));
        }
        if broadcast(&scores, &mask.shape).as_deref() != Some(scores.as_slice()) {
            return Err(check.wrong(
                3,
                format!("is {mask}, which does not broadcast to the scores, {scores:?}"),
            ));
        }
    }
    Ok(TensorType { dtype: q.dtype, shape: [&q.shape[..rank - 1], &[values]].concat() })
}

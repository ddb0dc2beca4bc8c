//! Normalisations.

use super::check::{OperatorCheck, broadcast};
use crate::error::OperatorError;
use crate::operator::Operator;
use crate::tensor::TensorType;

pub(super) fn infer(
    operator: &Operator,
    check: &OperatorCheck<'_>,
) -> Result<Vec<TensorType>, OperatorError> {
    let x = check.float(0)?;
    let channels = || {
        x.shape
            .get(1)
            .copied()
            .ok_or_else(|| check.wrong(0, format!("is {x}; give batch and channels")))
    };
    match operator {
        Operator::BatchNormalization { .. } => {
            let channels = channels()?;
            // Statistics may be of another float.
            for at in 1..5 {
                let ty = check.float(at)?;
                check.vector_of(at, ty.dtype, channels)?;
            }
        }
        Operator::InstanceNormalization { .. } => {
            let channels = channels()?;
            (1..3).try_for_each(|at| check.vector_of(at, x.dtype, channels))?;
        }
        Operator::GroupNormalization { groups, .. } => {
            let channels = channels()?;
            if *groups == 0 || channels % groups != 0 {
                return Err(check.attribute(
                    "groups",
                    format!("is {groups}, of {channels} channels; groups have to be equal"),
                ));
            }
            (1..3).try_for_each(|at| check.vector_of(at, x.dtype, channels))?;
        }
        Operator::LayerNormalization { axis, .. } | Operator::RmsNormalization { axis, .. } => {
            let axis = check.axis("axis", *axis, x.rank())?;
            for at in 1..check.inputs.len() {
                let Some(ty) = check.optional(at) else { continue };
                check.float(at)?;
                if broadcast(&x.shape, &ty.shape).as_deref() != Some(x.shape.as_slice()) {
                    return Err(
                        check.wrong(at, format!("is {ty}, which does not broadcast to x, {x}"))
                    );
                }
            }
            if matches!(operator, Operator::LayerNormalization { .. }) {
                let mut shape = x.shape.clone();
                shape[axis..].fill(1);
                let dtype = if x.dtype == crate::DType::F64 { x.dtype } else { crate::DType::F32 };
                let statistics = TensorType { dtype, shape };
                return Ok(vec![x.clone(), statistics.clone(), statistics]);
            }
        }
        Operator::Lrn { size, .. } => {
            channels()?;
            if *size == 0 {
                return Err(check.attribute("size", "is 0; use 1 or more".to_owned()));
            }
        }
        Operator::LpNormalization { axis, p } => {
            check.axis("axis", *axis, x.rank())?;
            if !(1..=2).contains(p) {
                return Err(check.attribute("p", format!("is {p}; use 1 or 2")));
            }
        }
        Operator::MeanVarianceNormalization { axes } => {
            check.axes("axes", axes, x.rank())?;
        }
        other => return Err(check.refuse(format!("{} has no rule here", other.variant()))),
    }
    Ok(vec![x.clone()])
}

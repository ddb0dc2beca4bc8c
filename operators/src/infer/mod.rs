//! From the types of the inputs to those of the outputs, or an error that names operator, argument and rule.

mod check;
mod maps;
mod normal;
mod products;
mod windows;

pub use check::{Input, broadcast};
pub(crate) use check::{OperatorCheck, reduced, strides_of};
pub(crate) use maps::{pad_ranges, shape_range, slice_ranges};
pub(crate) use windows::{Geometry, ResizeAxis, conv, conv_transpose, pool, resize_axes};

use crate::dtype::DType;
use crate::error::OperatorError;
use crate::operator::{Activation, Binary, Operator, Reduction, Step, Unary};
use crate::tensor::TensorType;

/// Elements of a tensor, at most, so that sizes in bytes fit 64 bits.
const MOST_ELEMENTS: usize = 1 << 45;
/// Dimensions of a tensor, at most.
const MOST_DIMENSIONS: usize = 16;

impl Operator {
    /// The types of the outputs: all that the operator can give, optional ones too.
    ///
    /// # Errors
    /// An input is missing, or there are too many; a type, an extent or an attribute does not fit, which the error says.
    pub fn infer(&self, inputs: &[Option<Input<'_>>]) -> Result<Vec<TensorType>, OperatorError> {
        let (names, required) = self.signature();
        let check = OperatorCheck { operator: self.name(), names, inputs };
        check.count(required, self.takes_more())?;
        let types = infer(self, &check)?;
        for ty in &types {
            if ty.elements() > MOST_ELEMENTS || ty.rank() > MOST_DIMENSIONS {
                return Err(check.refuse(format!(
                    "the result is {ty}; {MOST_ELEMENTS} elements and {MOST_DIMENSIONS} dimensions are the limit"
                )));
            }
        }
        Ok(types)
    }

    /// The names of the inputs, and how many of them there have to be. The last name stands for all that follow, where the operator takes any number.
    pub(crate) const fn signature(&self) -> (&'static [&'static str], usize) {
        match self {
            Self::Binary(Binary::PRelu) => (&["x", "slope"], 2),
            Self::Binary(_) => (&["a", "b"], 2),
            Self::Where => (&["condition", "x", "y"], 3),
            Self::Clip => (&["x", "min", "max"], 1),
            Self::Pad { .. } => (&["x", "value"], 1),
            Self::Gather { .. } | Self::GatherElements { .. } | Self::GatherNd { .. } => {
                (&["data", "indices"], 2)
            }
            Self::ScatterElements { .. } | Self::ScatterNd { .. } => {
                (&["data", "indices", "updates"], 3)
            }
            Self::OneHot { .. } => (&["indices", "values"], 2),
            Self::Range => (&["start", "limit", "delta"], 3),
            Self::Fill { .. } => (&["value"], 1),
            Self::Compress { .. } => (&["x", "condition"], 2),
            Self::ReverseSequence { .. } => (&["x", "lengths"], 2),
            Self::MatMul { .. } => (&["a", "b", "bias"], 2),
            Self::Gemm { .. } => (&["a", "b", "c"], 2),
            Self::Conv { .. } | Self::ConvTranspose { .. } => (&["x", "weights", "bias"], 2),
            Self::BatchNormalization { .. } => (&["x", "scale", "bias", "mean", "variance"], 5),
            Self::LayerNormalization { .. } => (&["x", "scale", "bias"], 2),
            Self::InstanceNormalization { .. } | Self::GroupNormalization { .. } => {
                (&["x", "scale", "bias"], 3)
            }
            Self::RmsNormalization { .. } => (&["x", "scale"], 2),
            Self::Attention { .. } => (&["q", "k", "v", "mask"], 3),
            Self::RandomUniform { .. } | Self::RandomNormal { .. } => (&[], 0),
            _ => (&["x"], 1),
        }
    }

    /// Whether any number of inputs may follow the first one.
    pub(crate) const fn takes_more(&self) -> bool {
        matches!(self, Self::Nary(_) | Self::Concat { .. } | Self::Fused { .. })
    }
}

fn infer(operator: &Operator, check: &OperatorCheck<'_>) -> Result<Vec<TensorType>, OperatorError> {
    let one = |ty: TensorType| Ok(vec![ty]);
    match operator {
        Operator::Fused { steps } => one(fused_type(steps, check)?),
        Operator::Unary(unary) => one(unary_type(*unary, check)?),
        Operator::Activation(activation) => one(activation_type(activation, check)?),
        Operator::Binary(binary) => one(binary_type(*binary, check)?),
        Operator::Nary(_) => {
            let dtype = check.number(0)?.dtype;
            let mut shape = Vec::new();
            for at in 0..check.inputs.len() {
                let ty = check.typed(at, dtype)?;
                shape = check.broadcast(at, &shape, &ty.shape)?;
            }
            one(TensorType { dtype, shape })
        }
        Operator::Where => {
            let condition = check.typed(0, DType::Bool)?;
            let x = check.input(1)?;
            let y = check.typed(2, x.dtype)?;
            let shape = check.broadcast(1, &condition.shape, &x.shape)?;
            let shape = check.broadcast(2, &shape, &y.shape)?;
            one(TensorType { dtype: x.dtype, shape })
        }
        Operator::Clip => {
            let x = check.number(0)?;
            for at in 1..check.inputs.len() {
                check.scalar_of(at, x.dtype)?;
            }
            one(x.clone())
        }
        Operator::Cast { to } => {
            one(TensorType { dtype: *to, shape: check.input(0)?.shape.clone() })
        }
        Operator::Reduce { reduction, axes, keep_dims } => {
            let x = check.input(0)?;
            let is_logic = matches!(reduction, Reduction::All | Reduction::Any);
            let is_float = matches!(reduction, Reduction::LogSum | Reduction::LogSumExp);
            if is_float && !x.dtype.is_float() {
                return Err(check.wrong(0, format!("is {x}; the operator is for floats")));
            }
            if x.dtype == DType::Bool
                && !is_logic
                && !matches!(reduction, Reduction::Max | Reduction::Min)
            {
                return Err(check.wrong(0, format!("is {x}; the reduction is for numbers")));
            }
            let axes = check.axes_or_all("axes", axes.as_deref(), x.rank())?;
            let dtype = if is_logic { DType::Bool } else { x.dtype };
            one(TensorType { dtype, shape: reduced(&x.shape, &axes, *keep_dims) })
        }
        Operator::ArgReduce { axis, keep_dims, .. } => {
            let x = check.number(0)?;
            let axis = check.axis("axis", *axis, x.rank())?;
            if x.shape[axis] == 0
                && x.shape.iter().enumerate().all(|(at, extent)| at == axis || *extent > 0)
            {
                return Err(check.wrong(
                    0,
                    format!("is {x}; there is no largest or smallest of nothing along axis {axis}"),
                ));
            }
            one(TensorType { dtype: DType::I64, shape: reduced(&x.shape, &[axis], *keep_dims) })
        }
        Operator::CumSum { axis, .. } | Operator::CumProd { axis, .. } => {
            let x = check.number(0)?;
            check.axis("axis", *axis, x.rank())?;
            one(x.clone())
        }
        Operator::Softmax { axis } | Operator::LogSoftmax { axis } | Operator::Hardmax { axis } => {
            let x = check.float(0)?;
            check.axis("axis", *axis, x.rank())?;
            one(x.clone())
        }
        Operator::TopK { k, axis, .. } => {
            let x = check.number(0)?;
            let axis = check.axis("axis", *axis, x.rank())?;
            if *k > x.shape[axis] {
                return Err(check.attribute(
                    "k",
                    format!("is {k}, and axis {axis} has {} elements", x.shape[axis]),
                ));
            }
            let mut shape = x.shape.clone();
            shape[axis] = *k;
            Ok(vec![
                TensorType { dtype: x.dtype, shape: shape.clone() },
                TensorType { dtype: DType::I64, shape },
            ])
        }
        Operator::Sort { axis, .. } => {
            let x = check.number(0)?;
            check.axis("axis", *axis, x.rank())?;
            Ok(vec![x.clone(), TensorType { dtype: DType::I64, shape: x.shape.clone() }])
        }
        Operator::RandomUniform { dtype, shape, .. }
        | Operator::RandomNormal { dtype, shape, .. } => {
            if !dtype.is_float() {
                return Err(check.attribute("dtype", format!("is {dtype}; use a float")));
            }
            one(TensorType::new(*dtype, shape))
        }
        Operator::MatMul { epilogue } => products::matmul(check, epilogue).and_then(one),
        Operator::Gemm { trans_a, trans_b, epilogue, .. } => {
            products::gemm(check, [*trans_a, *trans_b], epilogue).and_then(one)
        }
        Operator::Attention { .. } => products::attention(check).and_then(one),
        Operator::Conv { window, groups, epilogue } => {
            products::check_epilogue(check, epilogue)?;
            let geometry = conv(check, window, *groups)?;
            one(geometry.output)
        }
        Operator::ConvTranspose { window, groups, output_padding, output_shape, epilogue } => {
            products::check_epilogue(check, epilogue)?;
            let geometry = conv_transpose(check, window, *groups, (output_padding, output_shape))?;
            one(geometry.output)
        }
        Operator::Pool { pooling, window, ceil_mode } => {
            windows::pool_types(check, pooling, window, *ceil_mode)
        }
        Operator::GlobalPool { .. } => {
            let x = check.float(0)?;
            if x.rank() < 2 {
                return Err(
                    check.wrong(0, format!("is {x}; give batch, channels and spatial dimensions"))
                );
            }
            let mut shape = x.shape.clone();
            shape[2..].fill(1);
            one(TensorType { dtype: x.dtype, shape })
        }
        Operator::Resize(resize) => {
            let x = check.input(0)?;
            let axes = resize_axes(check, resize)?;
            let shape = axes.iter().map(|axis| axis.output).collect();
            one(TensorType { dtype: x.dtype, shape })
        }
        Operator::BatchNormalization { .. }
        | Operator::LayerNormalization { .. }
        | Operator::RmsNormalization { .. }
        | Operator::InstanceNormalization { .. }
        | Operator::GroupNormalization { .. }
        | Operator::Lrn { .. }
        | Operator::LpNormalization { .. }
        | Operator::MeanVarianceNormalization { .. } => normal::infer(operator, check),
        _ => maps::infer(operator, check),
    }
}

/// The type of the last step.
fn fused_type(steps: &[Step], check: &OperatorCheck<'_>) -> Result<TensorType, OperatorError> {
    let mut known: Vec<_> =
        check.inputs.iter().map(|input| input.map(|input| input.ty.clone())).collect();
    for (at, step) in steps.iter().enumerate() {
        let mut operands = Vec::with_capacity(step.operands.len());
        for operand in &step.operands {
            operands.push(match operand {
                None => None,
                Some(number) => Some(known.get(*number).cloned().flatten().ok_or_else(|| {
                    check.attribute("steps", format!("has operand {number} in step {at}, which is neither an input nor an earlier step"))
                })?),
            });
        }
        let given: Vec<_> = operands.iter().map(|ty| ty.as_ref().map(Input::from)).collect();
        let types = Operator::of_function(&step.function).infer(&given)?;
        known.extend(types.into_iter().map(Some));
    }
    if steps.is_empty() {
        return Err(check.attribute("steps", "is empty; give one step at least".to_owned()));
    }
    let last = known
        .pop()
        .flatten()
        .ok_or_else(|| check.attribute("steps", "is empty; give one step at least".to_owned()))?;
    // Every value has the shape of the result, or is broadcast to it.
    match known.iter().flatten().find(|ty| broadcast(&ty.shape, &last.shape).as_ref() != Some(&last.shape)) {
        Some(ty) => Err(check.attribute("steps", format!("has a value of type {ty}, and the result is {last}; a value broadcasts to the result"))),
        None => Ok(last),
    }
}

fn unary_type(unary: Unary, check: &OperatorCheck<'_>) -> Result<TensorType, OperatorError> {
    Ok(match unary {
        Unary::Identity => check.input(0)?.clone(),
        Unary::Abs | Unary::Neg | Unary::Sign | Unary::Square | Unary::Relu => {
            check.number(0)?.clone()
        }
        Unary::Not => check.typed(0, DType::Bool)?.clone(),
        Unary::BitwiseNot => check.integer(0)?.clone(),
        Unary::IsNaN => TensorType { dtype: DType::Bool, shape: check.float(0)?.shape.clone() },
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => check.number(0)?.clone(),
        _ => check.float(0)?.clone(),
    })
}

fn activation_type(
    activation: &Activation,
    check: &OperatorCheck<'_>,
) -> Result<TensorType, OperatorError> {
    Ok(match activation {
        Activation::IsInf { .. } => {
            TensorType { dtype: DType::Bool, shape: check.float(0)?.shape.clone() }
        }
        Activation::Clamp { .. } | Activation::Shrink { .. } => check.number(0)?.clone(),
        _ => check.float(0)?.clone(),
    })
}

fn binary_type(binary: Binary, check: &OperatorCheck<'_>) -> Result<TensorType, OperatorError> {
    let (a, b) = match binary {
        Binary::And | Binary::Or | Binary::Xor => {
            (check.typed(0, DType::Bool)?, check.typed(1, DType::Bool)?)
        }
        Binary::Equal | Binary::NotEqual => {
            let a = check.input(0)?;
            (a, check.typed(1, a.dtype)?)
        }
        Binary::Pow => (check.number(0)?, check.number(1)?),
        Binary::Atan2 => {
            let a = check.float(0)?;
            (a, check.typed(1, a.dtype)?)
        }
        Binary::BitwiseAnd
        | Binary::BitwiseOr
        | Binary::BitwiseXor
        | Binary::ShiftLeft
        | Binary::ShiftRight => {
            let a = check.integer(0)?;
            (a, check.typed(1, a.dtype)?)
        }
        _ => {
            let a = check.number(0)?;
            (a, check.typed(1, a.dtype)?)
        }
    };
    let shape = check.broadcast(1, &a.shape, &b.shape)?;
    if binary == Binary::PRelu && shape != a.shape {
        return Err(check.wrong(1, format!("is {b}, which does not broadcast to x, {a}")));
    }
    let dtype = if binary.is_comparison() { DType::Bool } else { a.dtype };
    Ok(TensorType { dtype, shape })
}

impl Binary {
    /// Whether the result is `bool`.
    pub(crate) const fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Greater
                | Self::GreaterOrEqual
        )
    }
}

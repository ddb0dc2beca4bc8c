//! How the work of an operator is split: into units, each of which a task can do.

use pto_abi::CoreKind;

use super::conv::{self, Conv};
use super::cost::CostModel;
use super::line::AxisLayout;
use super::matmul::Batch;
use super::split::{Reach, WorkSplit};
use crate::infer::{self, Input, OperatorCheck};
use crate::operator::Operator;
use crate::tensor::TensorType;

const ALL: Reach = Reach { units: 0, elements: 0 };

const fn each(elements: usize) -> Reach {
    Reach { units: 1, elements }
}

/// The work of an operator on these types, which [`Operator::infer`] has accepted.
pub(crate) fn work(
    operator: &Operator,
    inputs: &[Option<&TensorType>],
    outputs: &[TensorType],
) -> WorkSplit {
    let mut work = units(operator, inputs, outputs);
    work.kind = CostModel { operator, inputs, outputs, work: &work }.kind();
    work
}

/// The units, on vector cores.
fn units(operator: &Operator, inputs: &[Option<&TensorType>], outputs: &[TensorType]) -> WorkSplit {
    let output = &outputs[0];
    let elements = output.elements();
    let whole = WorkSplit {
        units: usize::from(outputs.iter().any(|output| output.elements() > 0)),
        kind: CoreKind::AIV,
        inputs: vec![ALL; inputs.len()],
        outputs: vec![ALL; outputs.len()],
        can_fail: false,
    };
    let x = inputs.first().copied().flatten();
    let of = |units: usize, per_unit: Reach| WorkSplit {
        units: if elements == 0 { 0 } else { units },
        outputs: vec![per_unit; outputs.len()],
        ..whole.clone()
    };
    // Elements of the output; inputs of the same extents are read where the output is written.
    let by_element = || {
        let reach = |ty: &Option<&TensorType>| match ty {
            Some(ty) if ty.shape == output.shape => each(1),
            _ => ALL,
        };
        WorkSplit { inputs: inputs.iter().map(reach).collect(), ..of(elements, each(1)) }
    };
    // Parts of the first input and of the outputs that stand side by side.
    let by_part = |units: usize| {
        let mut work = of(units, ALL);
        if units > 0 {
            work.outputs = outputs.iter().map(|output| each(output.elements() / units)).collect();
            work.inputs[0] = each(x.map_or(0, |x| x.elements() / units));
        }
        work
    };
    let axis_of = |axis: i64| {
        let rank = x.map_or(0, TensorType::rank);
        usize::try_from(if axis < 0 { axis + rank.cast_signed() as i64 } else { axis }).unwrap_or(0)
    };
    let given: Vec<_> = inputs.iter().map(|ty| ty.map(|ty| Input { ty, constant: None })).collect();
    let check =
        OperatorCheck { operator: operator.name(), names: operator.signature().0, inputs: &given };
    let Some(x) = x else { return by_element() };
    match operator {
        Operator::Fused { .. } => by_element(),
        _ if operator.function().is_some() => by_element(),
        Operator::Reduce { .. } | Operator::GlobalPool { .. } => {
            let mut work = of(elements, each(1));
            // Dimensions in front of the first reduced one stay: what is behind them becomes so many outputs.
            let first = match operator {
                Operator::Reduce { axes: Some(axes), .. } => {
                    axes.iter().map(|axis| axis_of(*axis)).min().unwrap_or(x.rank())
                }
                Operator::Reduce { .. } => 0,
                _ => 2,
            };
            let kept = x.shape[..first].iter().product::<usize>();
            work.inputs[0] = Reach {
                units: elements.checked_div(kept).unwrap_or(0),
                elements: x.elements().checked_div(kept).unwrap_or(0),
            };
            work
        }
        Operator::ArgReduce { axis, .. } => {
            let lines = AxisLayout::of(&x.shape, axis_of(*axis));
            by_part(lines.outer)
        }
        Operator::CumSum { axis, .. }
        | Operator::CumProd { axis, .. }
        | Operator::Softmax { axis }
        | Operator::LogSoftmax { axis }
        | Operator::Hardmax { axis }
        | Operator::LpNormalization { axis, .. } => {
            let lines = AxisLayout::of(&x.shape, axis_of(*axis));
            by_part(lines.outer)
        }
        Operator::TopK { axis, .. } | Operator::Sort { axis, .. } => {
            let lines = AxisLayout::of(&x.shape, axis_of(*axis));
            by_part(lines.outer)
        }
        Operator::Gather { axis } => {
            let axis = axis_of(*axis);
            let slice = x.shape[axis + 1..].iter().product::<usize>();
            let units = elements.checked_div(slice).unwrap_or(0);
            WorkSplit { can_fail: true, ..of(units, each(slice)) }
        }
        Operator::GatherElements { .. } => {
            WorkSplit { can_fail: true, ..by_index(&of(elements, each(1))) }
        }
        Operator::GatherNd { batch_dims } => {
            let depth = inputs
                .get(1)
                .copied()
                .flatten()
                .and_then(|indices| indices.shape.last().copied())
                .unwrap_or(0);
            let slice = x.shape[batch_dims + depth..].iter().product::<usize>();
            let units = elements.checked_div(slice).unwrap_or(0);
            WorkSplit { can_fail: true, ..of(units, each(slice)) }
        }
        Operator::ScatterElements { .. }
        | Operator::ScatterNd { .. }
        | Operator::ReverseSequence { .. } => WorkSplit { can_fail: true, ..whole },
        Operator::OneHot { .. } => by_index(&of(elements, each(1))),
        Operator::MatMul { .. } => {
            let Some(b) = inputs.get(1).copied().flatten() else { return whole };
            let batch = Batch::of_matmul(&x.shape, &b.shape);
            product(&batch, of(batch.units(), ALL))
        }
        Operator::Gemm { .. } => match Batch::of_gemm(operator, x, &output.shape) {
            Some((batch, _)) => product(&batch, of(batch.units(), ALL)),
            None => whole,
        },
        Operator::Conv { window, groups, .. } => {
            let Ok(geometry) = infer::conv(&check, window, *groups) else { return whole };
            let conv = Conv::of(&geometry, *groups, x.shape[0], [x.shape[1], output.shape[1]]);
            let image = conv.units_of_image();
            let mut work = of(image * x.shape[0], ALL);
            let units = if conv.is_depthwise() { 1 } else { image };
            work.outputs = vec![Reach {
                units,
                elements: (elements / x.shape[0].max(1)) / (image / units).max(1),
            }];
            work.inputs[0] = Reach {
                units,
                elements: (x.elements() / x.shape[0].max(1)) / (image / units).max(1),
            };
            work
        }
        Operator::ConvTranspose { window, groups, output_padding, output_shape, .. } => {
            let Ok(geometry) =
                infer::conv_transpose(&check, window, *groups, (output_padding, output_shape))
            else {
                return whole;
            };
            let conv = Conv::of(&geometry, *groups, x.shape[0], [x.shape[1], output.shape[1]]);
            let units = conv::transposed_units(&conv);
            let mut work = of(units, ALL);
            let of_image = units / x.shape[0].max(1);
            work.outputs = vec![Reach { units: of_image, elements: elements / x.shape[0].max(1) }];
            work.inputs[0] = Reach { units: of_image, elements: x.elements() / x.shape[0].max(1) };
            work
        }
        Operator::Pool { .. }
        | Operator::BatchNormalization { .. }
        | Operator::InstanceNormalization { .. } => by_part(x.shape[0] * x.shape[1]),
        Operator::GroupNormalization { groups, .. } => by_part(x.shape[0] * groups),
        Operator::LayerNormalization { axis, .. } | Operator::RmsNormalization { axis, .. } => {
            let size = x.shape[axis_of(*axis)..].iter().product::<usize>();
            by_part(elements.checked_div(size).unwrap_or(0))
        }
        Operator::Lrn { .. } => by_part(x.shape[0]),
        Operator::Attention { .. } => {
            let (width, depth) =
                (output.shape.last().copied().unwrap_or(0), x.shape.last().copied().unwrap_or(0));
            let units = elements.checked_div(width).unwrap_or(0);
            let mut work = of(units, each(width));
            work.inputs[0] = each(depth);
            work
        }
        Operator::MeanVarianceNormalization { .. }
        | Operator::NonZero
        | Operator::Compress { .. }
        | Operator::Split { .. } => whole,
        Operator::Reshape { .. }
        | Operator::Squeeze { .. }
        | Operator::Unsqueeze { .. }
        | Operator::Flatten { .. } => WorkSplit { inputs: vec![each(1)], ..of(elements, each(1)) },
        _ => of(elements, each(1)),
    }
}

/// Every input is read everywhere.
fn by_index(work: &WorkSplit) -> WorkSplit {
    WorkSplit { inputs: vec![ALL; work.inputs.len()], ..work.clone() }
}

fn product(batch: &Batch, work: WorkSplit) -> WorkSplit {
    let output = Reach { units: batch.blocks(), elements: batch.m * batch.n };
    WorkSplit { outputs: vec![output], ..work }
}

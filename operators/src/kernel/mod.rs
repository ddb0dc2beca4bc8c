//! The code of the operators: how the work of one is split into units ([`work()`]), what a unit does ([`compute`]), and the kernel that tasks on a device
//! call ([`task`]).

mod attention;
mod conv;
mod cost;
mod elementwise;
mod failure;
mod function;
mod index;
mod launch;
mod line;
mod map;
mod maps;
mod matmul;
mod memory;
mod normal;
mod pool;
mod product;
mod random;
mod reduce;
mod resize;
mod rules;
mod split;
mod task;
mod work;

pub(crate) use cost::CostModel;
pub use cost::TaskCost;
pub use launch::{
    BlockWork, LAUNCH_COST_WORD, LAUNCH_HEAD, LOST_FAULT, LaunchStatus, LaunchedOperator,
    MOST_LAUNCH_TENSORS, blocks_of, run_launch, units_of,
};
pub use split::{Reach, WorkSplit};
pub use task::{COST_WORD, OperatorKernel, PreparedOperator, STATUS, kernels, node_titles};
pub(crate) use task::{DESCRIPTIONS, Description, HEAD, LINK, chain_name, kernel_name};
pub(crate) use work::work;

use conv::Conv;
use failure::Failure;
use line::AxisLayout;
use matmul::Batch;
use memory::{In, Out};
use rules::accepted;

use crate::error::OperatorError;
use crate::infer;
use crate::operator::{Operator, Pooling, Step};
use crate::tensor::{Tensor, TensorType};

/// Runs units of an operator on the host; `None`: all of them.
pub(crate) fn run(
    operator: &Operator,
    inputs: &[Option<&Tensor>],
    outputs: &mut [Tensor],
    units: Option<(usize, usize)>,
) -> Result<(), OperatorError> {
    // Bytes of the host may stand anywhere.
    let aligned: Vec<Option<Vec<u64>>> =
        inputs.iter().map(|input| input.and_then(|input| moved(input.bytes()))).collect();
    let given: Vec<Option<In<'_>>> = inputs
        .iter()
        .zip(&aligned)
        .map(|(input, moved)| {
            let input = (*input)?;
            let bytes = match moved {
                Some(words) => &bytemuck::cast_slice(words)[..input.bytes().len()],
                None => input.bytes(),
            };
            Some(In { ty: input.ty(), bytes })
        })
        .collect();
    let types: Vec<TensorType> = outputs.iter().map(|output| output.ty().clone()).collect();
    let mut memory: Vec<Vec<u64>> = outputs.iter().map(|output| in_words(output.bytes())).collect();
    let input_types: Vec<_> = given.iter().map(|input| input.map(|input| input.ty)).collect();
    let mut outs: Vec<Out<'_>> = types
        .iter()
        .zip(&mut memory)
        .map(|(ty, memory)| Out::of(ty, &mut bytemuck::cast_slice_mut(memory)[..ty.bytes()]))
        .collect();
    let units = units.unwrap_or_else(|| (0, work(operator, &input_types, &types).units));
    compute(operator, &given, &mut outs, units).map_err(|failure| failure.into_error(operator))?;
    drop(outs);
    for (output, memory) in outputs.iter_mut().zip(&memory) {
        let to = output.bytes_mut();
        to.copy_from_slice(&bytemuck::cast_slice(memory)[..to.len()]);
    }
    Ok(())
}

/// The bytes in words, where they are not aligned for every element.
fn moved(bytes: &[u8]) -> Option<Vec<u64>> {
    (!bytes.as_ptr().addr().is_multiple_of(align_of::<u64>())).then(|| in_words(bytes))
}

fn in_words(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0_u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// Runs units `units.0 .. units.0 + units.1` of an operator. The types are those that [`Operator::infer`] gives; an output that is not wanted may be left out at the end.
pub(crate) fn compute(
    operator: &Operator,
    inputs: &[Option<In<'_>>],
    outputs: &mut [Out<'_>],
    units: (usize, usize),
) -> Result<(), Failure> {
    if units.1 == 0 {
        return Ok(());
    }
    let given: Vec<Option<&In<'_>>> = inputs.iter().map(Option::as_ref).collect();
    let at = |number: usize| given.get(number).copied().flatten();
    if let Some(function) =
        operator.function().filter(|_| !matches!(operator, Operator::Unary(crate::Unary::Identity)))
    {
        let step = Step {
            function,
            operands: (0..inputs.len()).map(|at| inputs[at].map(|_| at)).collect(),
        };
        elementwise::run(&[step], inputs, &mut outputs[0], units);
        return Ok(());
    }
    if let Operator::Fused { steps } = operator {
        elementwise::run(steps, inputs, &mut outputs[0], units);
        return Ok(());
    }
    if let Operator::RandomUniform { low, high, seed, .. } = operator {
        random::run((*seed, false), (*low, *high), &mut outputs[0], units);
        return Ok(());
    }
    if let Operator::RandomNormal { mean, deviation, seed, .. } = operator {
        random::run((*seed, true), (*mean, *deviation), &mut outputs[0], units);
        return Ok(());
    }
    let Some(x) = at(0) else { return Ok(()) };
    let axis_of = |axis: i64| {
        let rank = x.ty.rank();
        usize::try_from(if axis < 0 { axis + rank.cast_signed() as i64 } else { axis }).unwrap_or(0)
    };
    match operator {
        Operator::Reduce { reduction, axes, .. } => {
            let axes: Vec<_> = axes.as_ref().map_or_else(
                || (0..x.ty.rank()).collect(),
                |axes| axes.iter().map(|axis| axis_of(*axis)).collect(),
            );
            reduce::run(*reduction, &axes, x, &mut outputs[0], units);
        }
        Operator::ArgReduce { largest, axis, select_last, .. } => {
            line::arg_reduce(
                x,
                AxisLayout::of(&x.ty.shape, axis_of(*axis)),
                (*largest, *select_last),
                units,
                &mut outputs[0],
            );
        }
        Operator::CumSum { axis, .. }
        | Operator::CumProd { axis, .. }
        | Operator::Softmax { axis }
        | Operator::LogSoftmax { axis }
        | Operator::Hardmax { axis }
        | Operator::LpNormalization { axis, .. } => {
            line::same_length(
                operator,
                x,
                AxisLayout::of(&x.ty.shape, axis_of(*axis)),
                units,
                &mut outputs[0],
            );
        }
        Operator::TopK { k, axis, largest, .. } => {
            line::top(
                (x, AxisLayout::of(&x.ty.shape, axis_of(*axis))),
                (*k, *largest),
                units,
                outputs,
            );
        }
        Operator::Sort { axis, descending } => {
            let lines = AxisLayout::of(&x.ty.shape, axis_of(*axis));
            line::top((x, lines), (lines.extent, *descending), units, outputs);
        }
        Operator::Concat { axis } => {
            let all: Vec<_> = inputs.iter().flatten().copied().collect();
            map::concat(&all, axis_of(*axis), &mut outputs[0], units);
        }
        Operator::Gather { axis } => {
            if let Some(indices) = at(1) {
                index::gather(x, indices, axis_of(*axis), &mut outputs[0], units)?;
            }
        }
        Operator::GatherElements { axis } => {
            if let Some(indices) = at(1) {
                index::gather_elements(x, indices, axis_of(*axis), &mut outputs[0], units)?;
            }
        }
        Operator::GatherNd { batch_dims } => {
            if let Some(indices) = at(1) {
                index::gather_nd(x, indices, *batch_dims, &mut outputs[0], units)?;
            }
        }
        Operator::ScatterElements { axis, reduction } => {
            if let (Some(indices), Some(updates)) = (at(1), at(2)) {
                index::scatter_elements(
                    [x, indices, updates],
                    axis_of(*axis),
                    *reduction,
                    &mut outputs[0],
                )?;
            }
        }
        Operator::ScatterNd { reduction } => {
            if let (Some(indices), Some(updates)) = (at(1), at(2)) {
                index::scatter_nd([x, indices, updates], *reduction, &mut outputs[0])?;
            }
        }
        Operator::OneHot { depth, axis } => {
            let rank = x.ty.rank() + 1;
            let axis =
                usize::try_from(if *axis < 0 { axis + rank.cast_signed() as i64 } else { *axis })
                    .unwrap_or(0);
            if let Some(values) = at(1) {
                index::one_hot(x, values, (*depth, axis), &mut outputs[0], units);
            }
        }
        Operator::ReverseSequence { time_axis, .. } => {
            if let Some(lengths) = at(1) {
                index::reverse_sequence(x, lengths, *time_axis, &mut outputs[0])?;
            }
        }
        Operator::NonZero => index::non_zero(x, &mut outputs[0]),
        Operator::Compress { axis } => {
            if let Some(condition) = at(1) {
                index::compress(x, condition, axis.map(axis_of), &mut outputs[0]);
            }
        }
        Operator::MatMul { epilogue } => {
            if let Some(b) = at(1) {
                let batch = Batch::of_matmul(&x.ty.shape, &b.ty.shape);
                matmul::run(&batch, [at(0), at(1), at(2)], epilogue, &mut outputs[0], units);
            }
        }
        Operator::Gemm { .. } => {
            if let Some((batch, epilogue)) = Batch::of_gemm(operator, x.ty, &outputs[0].ty.shape) {
                matmul::run(&batch, [at(0), at(1), at(2)], epilogue, &mut outputs[0], units);
            }
        }
        Operator::Conv { window, groups, epilogue } => {
            if let Some(geometry) =
                accepted(operator, inputs, |check| infer::conv(check, window, *groups))
            {
                let conv = Conv::of(
                    &geometry,
                    *groups,
                    x.ty.shape[0],
                    [x.ty.shape[1], geometry.output.shape[1]],
                );
                conv::run(&conv, [at(0), at(1), at(2)], epilogue, &mut outputs[0], units);
            }
        }
        Operator::ConvTranspose { window, groups, output_padding, output_shape, epilogue } => {
            let geometry = accepted(operator, inputs, |check| {
                infer::conv_transpose(check, window, *groups, (output_padding, output_shape))
            });
            if let Some(geometry) = geometry {
                let conv = Conv::of(
                    &geometry,
                    *groups,
                    x.ty.shape[0],
                    [x.ty.shape[1], geometry.output.shape[1]],
                );
                conv::run_transposed(
                    &conv,
                    [at(0), at(1), at(2)],
                    epilogue,
                    &mut outputs[0],
                    units,
                );
            }
        }
        Operator::Pool { pooling, window, ceil_mode } => {
            if let Some(geometry) =
                accepted(operator, inputs, |check| infer::pool(check, window, *ceil_mode))
            {
                pool::run(pooling, &geometry, x, outputs, units);
            }
        }
        Operator::GlobalPool { pooling: Pooling::Average { .. } } => {
            let axes: Vec<_> = (2..x.ty.rank()).collect();
            reduce::run(crate::Reduction::Mean, &axes, x, &mut outputs[0], units);
        }
        Operator::GlobalPool { pooling: Pooling::Max { .. } } => {
            let axes: Vec<_> = (2..x.ty.rank()).collect();
            reduce::run(crate::Reduction::Max, &axes, x, &mut outputs[0], units);
        }
        Operator::GlobalPool { pooling } => {
            pool::run(pooling, &pool::whole(&x.ty.shape), x, &mut outputs[..1], units)
        }
        Operator::Resize(resize) => {
            if let Some(axes) =
                accepted(operator, inputs, |check| infer::resize_axes(check, resize))
            {
                resize::run(resize, &axes, x, &mut outputs[0], units);
            }
        }
        Operator::BatchNormalization { .. }
        | Operator::InstanceNormalization { .. }
        | Operator::GroupNormalization { .. } => {
            normal::by_channel(operator, &given, &mut outputs[0], units);
        }
        Operator::LayerNormalization { axis, .. } | Operator::RmsNormalization { axis, .. } => {
            let size = x.ty.shape[axis_of(*axis)..].iter().product();
            normal::by_row(operator, &given, outputs, (size, units));
        }
        Operator::Lrn { size, alpha, beta, bias } => {
            normal::lrn((*size, *alpha, *beta, *bias), x, &mut outputs[0], units)
        }
        Operator::MeanVarianceNormalization { axes } => {
            let axes: Vec<_> = axes.iter().map(|axis| axis_of(*axis)).collect();
            normal::mean_variance(&axes, x, &mut outputs[0]);
        }
        Operator::Attention { scale, causal, softcap } => {
            let attention =
                attention::Attention { scale: *scale, causal: *causal, softcap: *softcap };
            attention::run(attention, &given, &mut outputs[0], units);
        }
        _ => maps::run(operator, inputs, outputs, units),
    }
    Ok(())
}

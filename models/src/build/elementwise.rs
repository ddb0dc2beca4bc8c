//! Elementwise operators, casts and choices.

use pto_operators::{
    Activation, Binary, DType, Nary, Operator, PadMode, Reduction, Unary, ValueId,
};

use super::builder::{Builder, one, scalar_of, several};
use super::call::{Call, NodeValue, Step, stop};
use crate::tensor::dtype_of;

pub(super) fn unary(b: &mut Builder<'_>, c: &Call<'_>, unary: Unary) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    one(b.unary(unary, c.input(0)?)?)
}

pub(super) fn binary(b: &mut Builder<'_>, c: &Call<'_>, binary: Binary) -> Step<Vec<NodeValue>> {
    if c.version < 7 {
        return stop("versions before 7 broadcast otherwise, and are not supported");
    }
    one(b.binary(binary, c.input(0)?, c.input(1)?)?)
}

pub(super) fn nary(b: &mut Builder<'_>, c: &Call<'_>, nary: Nary) -> Step<Vec<NodeValue>> {
    if c.version < 8 && c.inputs.len() > 2 {
        return stop("versions before 8 broadcast otherwise, and are not supported");
    }
    let inputs = c.all()?;
    match inputs[..] {
        [] => stop("input 0 is missing"),
        [a, d] => match nary {
            Nary::Sum => one(b.sum(a, d)?),
            Nary::Max => one(b.binary(Binary::Max, a, d)?),
            Nary::Min => one(b.binary(Binary::Min, a, d)?),
            Nary::Mean => one(b.add(Operator::Nary(nary), &inputs)?),
        },
        _ => one(b.add(Operator::Nary(nary), &inputs)?),
    }
}

pub(super) fn modulo(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let is_fmod = c.flag("fmod", false)?;
    let a = c.input(0)?;
    if c.version < 28 && b.dtype(a).is_float() && !is_fmod {
        return stop("attribute fmod is 0, and has to be 1 for floats");
    }
    one(b.binary(if is_fmod { Binary::Fmod } else { Binary::Mod }, a, c.input(1)?)?)
}

pub(super) fn power(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    if c.version < 7 {
        return stop("versions before 7 broadcast otherwise, and are not supported");
    }
    one(b.binary(Binary::Pow, c.input(0)?, c.input(1)?)?)
}

pub(super) fn bit_shift(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let direction = match c.text("direction", "")?.as_str() {
        "LEFT" => Binary::ShiftLeft,
        "RIGHT" => Binary::ShiftRight,
        other => {
            return stop(format!("attribute direction is '{other}', and has to be LEFT or RIGHT"));
        }
    };
    one(b.binary(direction, c.input(0)?, c.input(1)?)?)
}

pub(super) fn leaky_relu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    let alpha = c.float("alpha", 0.01)?;
    one(b.activation(Activation::LeakyRelu { alpha }, c.input(0)?)?)
}

pub(super) fn elu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    let alpha = c.float("alpha", 1.0)?;
    one(b.activation(Activation::Elu { alpha }, c.input(0)?)?)
}

pub(super) fn selu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    let alpha = c.float("alpha", if c.version < 6 { 1.6732 } else { 1.673_263_2 })?;
    let gamma = c.float("gamma", if c.version < 6 { 1.0507 } else { 1.050_701 })?;
    one(b.activation(Activation::Selu { alpha, gamma }, c.input(0)?)?)
}

pub(super) fn celu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let alpha = c.float("alpha", 1.0)?;
    one(b.activation(Activation::Celu { alpha }, c.input(0)?)?)
}

pub(super) fn hard_sigmoid(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    let (alpha, beta) = (c.float("alpha", 0.2)?, c.float("beta", 0.5)?);
    one(b.activation(Activation::HardSigmoid { alpha, beta }, c.input(0)?)?)
}

pub(super) fn thresholded_relu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let alpha = c.float("alpha", 1.0)?;
    one(b.activation(Activation::ThresholdedRelu { alpha }, c.input(0)?)?)
}

pub(super) fn shrink(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (bias, lambda) = (c.float("bias", 0.0)?, c.float("lambd", 0.5)?);
    one(b.activation(Activation::Shrink { bias, lambda }, c.input(0)?)?)
}

pub(super) fn swish(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let alpha = c.float("alpha", 1.0)?;
    one(b.activation(Activation::Swish { alpha }, c.input(0)?)?)
}

pub(super) fn gelu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let unary = match c.text("approximate", "none")?.as_str() {
        "none" => Unary::Gelu,
        "tanh" => Unary::GeluTanh,
        other => {
            return stop(format!("attribute approximate is '{other}', and has to be none or tanh"));
        }
    };
    one(b.unary(unary, c.input(0)?)?)
}

pub(super) fn test_for_infinity(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let negative = c.flag("detect_negative", true)?;
    let positive = c.flag("detect_positive", true)?;
    one(b.activation(Activation::IsInf { negative, positive }, c.input(0)?)?)
}

pub(super) fn choose(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    one(b.add(Operator::Where, &[c.input(0)?, c.input(1)?, c.input(2)?])?)
}

pub(super) fn clip(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    let x = c.input(0)?;
    let dtype = b.dtype(x);
    let (mut low, mut high) = (None, None);
    if c.version < 11 {
        low = c.optional_float("min")?.map(|value| b.constant(scalar_of(dtype, value)));
        high = c.optional_float("max")?.map(|value| b.constant(scalar_of(dtype, value)));
    } else {
        low = c.optional(1)?.or(low);
        high = c.optional(2)?.or(high);
    }
    clipped(b, x, low, high).and_then(one)
}

/// With limits that are known, the operator can be joined with the one in front of it.
fn clipped(
    b: &mut Builder<'_>,
    x: ValueId,
    low: Option<ValueId>,
    high: Option<ValueId>,
) -> Step<ValueId> {
    let limit = |b: &Builder<'_>, value: Option<ValueId>, other: f64| match value {
        None => Some(other),
        Some(value) => b
            .tensor(value)
            .map(|tensor| tensor.to_doubles())
            .filter(|all| all.len() == 1)
            .map(|all| all[0]),
    };
    let limits = (limit(b, low, f64::NEG_INFINITY), limit(b, high, f64::INFINITY));
    if let (Some(low), Some(high)) = limits
        && b.dtype(x).is_float()
        && low <= high
    {
        return b.activation(Activation::Clamp { low, high }, x);
    }
    b.add_with(Operator::Clip, &[Some(x), low, high])
}

pub(super) fn cast(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let to = match c.required_int("to") {
        Ok(number) => dtype_of(number).or_else(stop)?,
        Err(error) => return Err(error),
    };
    // Both concern types that are not here.
    c.ignore(&["saturate", "round_mode"]);
    one(b.cast(c.input(0)?, to)?)
}

pub(super) fn cast_like(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["saturate", "round_mode"]);
    let to = b.dtype(c.input(1)?);
    one(b.cast(c.input(0)?, to)?)
}

/// The same bits as elements of another type.
pub(super) fn bit_cast(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let to = dtype_of(c.required_int("to")?).or_else(stop)?;
    let x = c.input(0)?;
    let Some(tensor) = b.tensor(x).cloned() else {
        let from = b.dtype(x);
        if from.bytes() != to.bytes() {
            return stop(format!("{from} and {to} do not have the same number of bits"));
        }
        // Integers wrap, so that a cast between those of one size keeps the bits.
        if to.is_integer() && !from.is_float() || from == to {
            return one(b.cast(x, to)?);
        }
        return stop(format!(
            "the bits of a tensor of {from} that is not constant cannot be taken as {to}"
        ));
    };
    if tensor.dtype().bytes() != to.bytes() {
        return stop(format!("{} and {to} do not have the same number of bits", tensor.dtype()));
    }
    let ty = pto_operators::TensorType::new(to, tensor.shape());
    match pto_operators::Tensor::from_bytes(ty, tensor.into_bytes()) {
        Ok(tensor) => one(b.constant(tensor)),
        Err(bytes) => stop(format!("the constant has {bytes} bytes")),
    }
}

pub(super) fn identity(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    match c.inputs.first() {
        Some(Some(NodeValue::Value(value))) if b.tensor(*value).is_some() => one(*value),
        Some(Some(NodeValue::Value(value))) => one(b.unary(Unary::Identity, *value)?),
        Some(Some(slot)) => Ok(vec![slot.clone()]),
        _ => stop("input 0 is missing"),
    }
}

/// In a run nothing is dropped.
pub(super) fn dropout(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["seed", "ratio", "is_test", "consumed_inputs"]);
    let x = c.input(0)?;
    if let Some(training) = c.optional(2)? {
        let training = b.known(training, "input 2 (training_mode)")?;
        let is_training = training.to_integers().is_some_and(|all| all.iter().any(|one| *one != 0));
        let ratio = match c.optional(1)? {
            Some(ratio) => b.double(ratio, "input 1 (ratio)")?,
            None => 0.5,
        };
        if is_training && ratio != 0.0 {
            return stop(
                "training_mode is true: random elements are dropped, which is not supported",
            );
        }
    }
    let dtype = if c.version < 10 { b.dtype(x) } else { DType::Bool };
    let y = b.unary(Unary::Identity, x)?;
    if !c.takes(1) {
        return one(y);
    }
    let shape = b.shape(x);
    several([y, b.filled(dtype, &shape, 1.0)?])
}

pub(super) fn prelu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    if c.version < 7 {
        return stop("versions before 7 broadcast otherwise, and are not supported");
    }
    one(b.binary(Binary::PRelu, c.input(0)?, c.input(1)?)?)
}

pub(super) fn mean_variance(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let axes = c.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    one(b.add(Operator::MeanVarianceNormalization { axes }, &[c.input(0)?])?)
}

/// The determinants of the last two dimensions, by expansion along a row: of small matrices.
pub(super) fn determinant(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let shape = b.shape(x);
    let [batch @ .., rows, columns] = &shape[..] else { return stop("input 0 is no matrix") };
    if rows != columns || *rows == 0 || *rows > 4 {
        return stop(format!(
            "matrices of {rows} x {columns} are not supported; square ones up to 4 x 4 are"
        ));
    }
    let batch = batch.to_vec();
    let all: Vec<usize> = (0..*rows).collect();
    let result = minor(b, x, 0, &all)?;
    one(b.reshape(result, &batch)?)
}

/// The determinant of the rows from `row` on, and these columns.
fn minor(b: &mut Builder<'_>, x: ValueId, row: usize, columns: &[usize]) -> Step<ValueId> {
    let rank = b.rank(x);
    let element = |b: &mut Builder<'_>, column: usize| {
        let line = b.part(x, rank - 2, row, row + 1)?;
        b.part(line, rank - 1, column, column + 1)
    };
    if let [column] = columns {
        return element(b, *column);
    }
    let mut sum = None;
    for (at, column) in columns.iter().enumerate() {
        let others: Vec<usize> = columns.iter().copied().filter(|other| other != column).collect();
        let (head, rest) = (element(b, *column)?, minor(b, x, row + 1, &others)?);
        let product = b.product(head, rest)?;
        sum = Some(match sum {
            None => product,
            Some(sum) if at % 2 == 1 => b.difference(sum, product)?,
            Some(sum) => b.sum(sum, product)?,
        });
    }
    sum.map_or_else(|| stop("the matrix has no columns"), Ok)
}

pub(super) fn eye_like(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let dtype = match c.optional_int("dtype")? {
        Some(number) => dtype_of(number).or_else(stop)?,
        None => b.dtype(x),
    };
    let k = c.int("k", 0)?;
    one(b.add(Operator::EyeLike { k, dtype }, &[x])?)
}

pub(super) fn trilu(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let upper = c.flag("upper", true)?;
    let k = match c.optional(1)? {
        Some(k) => b.int(k, "input 1 (k)")?,
        None => 0,
    };
    one(b.add(Operator::Trilu { upper, k }, &[c.input(0)?])?)
}

pub(super) fn pad(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let mode = match c.text("mode", "constant")?.as_str() {
        "constant" => PadMode::Constant,
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" if c.version >= 19 => PadMode::Wrap,
        other => {
            return stop(format!(
                "attribute mode is '{other}', and has to be constant, reflect, edge or wrap"
            ));
        }
    };
    let x = c.input(0)?;
    if c.version < 11 {
        let pads = match (c.ints("pads")?, c.ints("paddings")?) {
            (Some(pads), _) | (None, Some(pads)) => pads,
            (None, None) => return stop("attribute pads is missing"),
        };
        let value = c.float("value", 0.0)?;
        let value = b.scalar(b.dtype(x), value);
        return one(b.add(Operator::Pad { mode, pads, axes: None }, &[x, value])?);
    }
    let pads = b.ints(c.input(1)?, "input 1 (pads)")?;
    let axes = match c.optional(3)? {
        Some(axes) => Some(b.ints(axes, "input 3 (axes)")?),
        None => None,
    };
    let value = match (mode, c.optional(2)?) {
        (PadMode::Constant, Some(value)) => Some(b.reshape(value, &[])?),
        _ => None,
    };
    one(b.add_with(Operator::Pad { mode, pads, axes }, &[Some(x), value])?)
}

/// Losses of classes: the negative of the score of each target class, weighted.
pub(super) fn nll_loss(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (scores, target) = (c.input(0)?, c.input(1)?);
    one(loss(b, c, scores, target)?)
}

pub(super) fn softmax_cross_entropy(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let logarithms = b.add(Operator::LogSoftmax { axis: 1 }, &[c.input(0)?])?;
    let loss = loss(b, c, logarithms, c.input(1)?)?;
    several([loss, logarithms])
}

fn loss(b: &mut Builder<'_>, c: &Call<'_>, scores: ValueId, target: ValueId) -> Step<ValueId> {
    let reduction = c.text("reduction", "mean")?;
    let ignored = c.optional_int("ignore_index")?;
    let dtype = b.dtype(scores);
    let target = b.cast(target, DType::I64)?;
    let mask = match ignored {
        Some(index) => {
            let index = b.scalar(DType::I64, index as f64);
            Some(b.binary(Binary::Equal, target, index)?)
        }
        None => None,
    };
    let zero = b.scalar(DType::I64, 0.0);
    let safe = match mask {
        Some(mask) => b.add(Operator::Where, &[mask, zero, target])?,
        None => target,
    };
    let columns = b.add(Operator::Unsqueeze { axes: vec![1] }, &[safe])?;
    let chosen = b.add(Operator::GatherElements { axis: 1 }, &[scores, columns])?;
    let chosen = b.add(Operator::Squeeze { axes: Some(vec![1]) }, &[chosen])?;
    let mut losses = b.unary(Unary::Neg, chosen)?;
    let mut weights = match c.optional(2)? {
        Some(weights) => Some(b.add(Operator::Gather { axis: 0 }, &[weights, safe])?),
        None => None,
    };
    if let Some(mask) = mask {
        let (none, all) = (b.scalar(dtype, 0.0), b.scalar(dtype, 1.0));
        let counted = weights.unwrap_or(all);
        weights = Some(b.add(Operator::Where, &[mask, none, counted])?);
    }
    if let Some(weights) = weights {
        losses = b.product(losses, weights)?;
    }
    let everything: Vec<i64> = (0..b.rank(losses) as i64).collect();
    match (reduction.as_str(), weights) {
        ("none", _) => Ok(losses),
        ("sum", _) => b.reduce(Reduction::Sum, losses, &everything, false),
        ("mean", None) => b.reduce(Reduction::Mean, losses, &everything, false),
        ("mean", Some(weights)) => {
            let sum = b.reduce(Reduction::Sum, losses, &everything, false)?;
            let weight = b.reduce(Reduction::Sum, weights, &everything, false)?;
            b.quotient(sum, weight)
        }
        (other, _) => {
            stop(format!("attribute reduction is '{other}', and has to be none, sum or mean"))
        }
    }
}

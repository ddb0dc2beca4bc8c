//! Normalisations and products of matrices.

use pto_operators::{DType, Epilogue, Operator, Reduction, ValueId};

use super::builder::{Builder, one, several};
use super::call::{Call, NodeValue, Step, stop};

pub(super) fn batch(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["momentum", "consumed_inputs", "is_test"]);
    let epsilon = c.float("epsilon", 1e-5)?;
    if c.version < 9 && c.int("spatial", 1)? != 1 {
        return stop("attribute spatial is 0, which is not supported");
    }
    let inputs = [c.input(0)?, c.input(1)?, c.input(2)?, c.input(3)?, c.input(4)?];
    if c.version >= 14 && c.flag("training_mode", false)? {
        return batch_of_training(b, c, &inputs, epsilon);
    }
    one(b.add(Operator::BatchNormalization { epsilon }, &inputs)?)
}

/// With the statistics of the batch; the running ones come out changed.
fn batch_of_training(
    b: &mut Builder<'_>,
    c: &Call<'_>,
    inputs: &[ValueId; 5],
    epsilon: f64,
) -> Step<Vec<NodeValue>> {
    let momentum = c.float("momentum", 0.9)?;
    let [x, scale, bias, mean, variance] = *inputs;
    let axes: Vec<i64> = (0..b.rank(x) as i64).filter(|axis| *axis != 1).collect();
    let channels = b.shape(scale);
    let kept = b.reduce(Reduction::Mean, x, &axes, true)?;
    let centred = b.difference(x, kept)?;
    let squares = b.product(centred, centred)?;
    let own_variance = b.reduce(Reduction::Mean, squares, &axes, false)?;
    let own_mean = b.reshape(kept, &channels)?;
    let y =
        b.add(Operator::BatchNormalization { epsilon }, &[x, scale, bias, own_mean, own_variance])?;
    let mut outputs = vec![y];
    for (running, own) in [(mean, own_mean), (variance, own_variance)] {
        let (before, after) =
            (b.scalar(b.dtype(running), momentum), b.scalar(b.dtype(own), 1.0 - momentum));
        let (before, after) = (b.product(running, before)?, b.product(own, after)?);
        outputs.push(b.sum(before, after)?);
    }
    several(outputs)
}

pub(super) fn layer(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (axis, epsilon) = (c.int("axis", -1)?, c.float("epsilon", 1e-5)?);
    stash(c)?;
    let inputs = [Some(c.input(0)?), Some(c.input(1)?), c.optional(2)?];
    several(b.add_all(Operator::LayerNormalization { axis, epsilon }, &inputs)?)
}

/// Statistics are computed in `f32` or better; a file may ask for the type of the input.
fn stash(c: &Call<'_>) -> Step<()> {
    match c.int("stash_type", 1)? {
        1 | 10 | 11 | 16 => Ok(()),
        other => stop(format!("attribute stash_type is {other}, and has to be a float type")),
    }
}

pub(super) fn rms(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (axis, epsilon) = (c.int("axis", -1)?, c.float("epsilon", 1e-5)?);
    stash(c)?;
    one(b.add(Operator::RmsNormalization { axis, epsilon }, &[c.input(0)?, c.input(1)?])?)
}

pub(super) fn instance(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    c.ignore(&["consumed_inputs"]);
    let epsilon = c.float("epsilon", 1e-5)?;
    one(b.add(
        Operator::InstanceNormalization { epsilon },
        &[c.input(0)?, c.input(1)?, c.input(2)?],
    )?)
}

pub(super) fn group(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let epsilon = c.float("epsilon", 1e-5)?;
    let groups = c.count("num_groups", 0)?;
    if c.version >= 21 {
        stash(c)?;
    }
    let (x, mut scale, mut bias) = (c.input(0)?, c.input(1)?, c.input(2)?);
    if c.version < 21 {
        // One number for each group.
        let channels = b.shape(x).get(1).copied().unwrap_or(0);
        if groups == 0 || channels % groups != 0 {
            return stop(format!("{channels} channels are not {groups} groups"));
        }
        for value in [&mut scale, &mut bias] {
            let column = b.reshape(*value, &[groups, 1])?;
            let wide = b.expand(column, &[groups, channels / groups])?;
            *value = b.reshape(wide, &[channels])?;
        }
    }
    one(b.add(Operator::GroupNormalization { groups, epsilon }, &[x, scale, bias])?)
}

pub(super) fn lrn(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let operator = Operator::Lrn {
        size: c.count("size", 0)?,
        alpha: c.float("alpha", 1e-4)?,
        beta: c.float("beta", 0.75)?,
        bias: c.float("bias", 1.0)?,
    };
    one(b.add(operator, &[c.input(0)?])?)
}

pub(super) fn lp(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let operator = Operator::LpNormalization { axis: c.int("axis", -1)?, p: c.count("p", 2)? };
    one(b.add(operator, &[c.input(0)?])?)
}

pub(super) fn matmul(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    one(b.matmul(c.input(0)?, c.input(1)?)?)
}

pub(super) fn gemm(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    if c.version < 7 {
        return stop("versions before 7 broadcast otherwise, and are not supported");
    }
    let operator = Operator::Gemm {
        alpha: c.float("alpha", 1.0)?,
        beta: c.float("beta", 1.0)?,
        trans_a: c.int("transA", 0)? != 0,
        trans_b: c.int("transB", 0)? != 0,
        epilogue: Epilogue::None,
    };
    one(b.add_with(operator, &[Some(c.input(0)?), Some(c.input(1)?), c.optional(2)?])?)
}

/// Numbers of a type that `dtype` and `shape` attributes name; the seed makes the same numbers each time.
pub(super) fn random(
    b: &mut Builder<'_>,
    c: &Call<'_>,
    is_normal: bool,
    is_like: bool,
) -> Step<Vec<NodeValue>> {
    let (shape, default) = if is_like {
        let x = c.input(0)?;
        (b.shape(x), b.dtype(x))
    } else {
        (c.counts("shape")?, DType::F32)
    };
    let dtype = match c.optional_int("dtype")? {
        Some(number) => crate::tensor::dtype_of(number).or_else(stop)?,
        None => default,
    };
    let seed = seed(b, c)?;
    let operator = if is_normal {
        let (mean, deviation) = (c.float("mean", 0.0)?, c.float("scale", 1.0)?);
        Operator::RandomNormal { dtype, shape, mean, deviation, seed }
    } else {
        let (low, high) = (c.float("low", 0.0)?, c.float("high", 1.0)?);
        Operator::RandomUniform { dtype, shape, low, high, seed }
    };
    one(b.add(operator, &[])?)
}

/// The seed of the node; without one each node has its own, and every run the same.
fn seed(b: &Builder<'_>, c: &Call<'_>) -> Step<u64> {
    let own = b.graph.nodes().len() as u64;
    Ok(c.optional_float("seed")?.map_or(own, f64::to_bits))
}

/// True with the probability that the input has.
pub(super) fn bernoulli(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let x = c.input(0)?;
    let (shape, dtype, seed) = (b.shape(x), b.dtype(x), seed(b, c)?);
    let to = match c.optional_int("dtype")? {
        Some(number) => crate::tensor::dtype_of(number).or_else(stop)?,
        None => dtype,
    };
    let drawn = b.add(Operator::RandomUniform { dtype, shape, low: 0.0, high: 1.0, seed }, &[])?;
    let hit = b.binary(pto_operators::Binary::Less, drawn, x)?;
    one(b.cast(hit, to)?)
}

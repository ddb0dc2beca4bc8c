//! Attention and rotary embeddings.

use pto_operators::{
    Activation, Binary, DType, Operator, PadMode, Reduction, Tensor, Unary, ValueId,
};

use super::builder::{Builder, one, several};
use super::call::{Call, NodeValue, Step, stop};
use crate::tensor::dtype_of;

/// (batch, sequence, heads x size) as (batch, heads, sequence, size).
fn split_heads(b: &mut Builder<'_>, x: ValueId, heads: usize) -> Step<ValueId> {
    let [batch, sequence, hidden] = b.shape(x)[..] else {
        return stop("an input has not 3 dimensions");
    };
    if heads == 0 || hidden % heads != 0 {
        return stop(format!("{hidden} elements are not {heads} heads"));
    }
    let x = b.reshape(x, &[batch, sequence, heads, hidden / heads])?;
    b.transpose(x, &[0, 2, 1, 3])
}

/// (batch, heads, sequence, size) as (batch, sequence, heads x size).
fn join_heads(b: &mut Builder<'_>, x: ValueId) -> Step<ValueId> {
    let [batch, heads, sequence, size] = b.shape(x)[..] else {
        return stop("an input has not 4 dimensions");
    };
    let x = b.transpose(x, &[0, 2, 1, 3])?;
    b.reshape(x, &[batch, sequence, heads * size])
}

/// What the attributes say.
struct AttentionOptions {
    causal: bool,
    left: i64,
    right: i64,
    softcap: f64,
    mode: i64,
    precision: Option<DType>,
}

pub(super) fn attention(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (mut q, mut k, mut v) = (c.input(0)?, c.input(1)?, c.input(2)?);
    let (mask, past_key, past_value, lengths) =
        (c.optional(3)?, c.optional(4)?, c.optional(5)?, c.optional(6)?);
    let options = AttentionOptions {
        causal: c.flag("is_causal", false)?,
        left: if c.version >= 25 { c.int("left_window_size", -1)? } else { -1 },
        right: if c.version >= 25 { c.int("right_window_size", -1)? } else { -1 },
        softcap: c.float("softcap", 0.0)?,
        mode: c.int("qk_matmul_output_mode", 0)?,
        precision: c
            .optional_int("softmax_precision")?
            .map(|number| dtype_of(number).or_else(stop))
            .transpose()?,
    };
    let scale = c.optional_float("scale")?;
    let (q_heads, kv_heads) = (c.optional_int("q_num_heads")?, c.optional_int("kv_num_heads")?);
    let is_flat = b.rank(q) == 3;
    if is_flat {
        let (Some(q_heads), Some(kv_heads)) = (q_heads, kv_heads) else {
            return stop("inputs of 3 dimensions need the attributes q_num_heads and kv_num_heads");
        };
        let count = |heads: i64| {
            usize::try_from(heads).or_else(|_| stop(format!("{heads} heads are given")))
        };
        let (q_heads, kv_heads) = (count(q_heads)?, count(kv_heads)?);
        q = split_heads(b, q, q_heads)?;
        k = split_heads(b, k, kv_heads)?;
        v = split_heads(b, v, kv_heads)?;
    }
    if [q, k, v].iter().any(|value| b.rank(*value) != 4) {
        return stop("inputs have to have 3 or 4 dimensions");
    }
    let mut past = 0;
    match (past_key, past_value) {
        (Some(past_key), Some(past_value)) => {
            past = b.shape(past_key).get(2).copied().unwrap_or(0);
            k = b.concat(&[past_key, k], 2)?;
            v = b.concat(&[past_value, v], 2)?;
        }
        (None, None) => {}
        _ => return stop("past_key and past_value come together"),
    }
    let (q_shape, k_shape) = (b.shape(q), b.shape(k));
    let (heads, groups) = (q_shape[1], k_shape[1]);
    if groups == 0 || heads % groups != 0 {
        return stop(format!("{heads} heads of queries are not shared by {groups} heads of keys"));
    }
    let present = [k, v];
    let is_plain = lengths.is_none()
        && past_key.is_none()
        && options.left < 0
        && options.right < 0
        && !c.takes(3)
        && options.precision.is_none()
        && mask.is_none()
        && !options.causal
        && b.dtype(q) != DType::F16;
    let (y, scores) = if is_plain {
        let operator = Operator::Attention { scale, causal: false, softcap: options.softcap };
        (b.add(operator, &[q, k, v])?, q)
    } else {
        let (mut k, mut v) = (k, v);
        if heads != groups {
            k = repeat_heads(b, k, heads / groups)?;
            v = repeat_heads(b, v, heads / groups)?;
        }
        let bias = bias(b, (q, k), mask, lengths, past, &options)?;
        decomposed(b, [q, k, v], scale, bias, &options)?
    };
    let y = if is_flat { join_heads(b, y)? } else { y };
    several([y, present[0], present[1], scores])
}

fn repeat_heads(b: &mut Builder<'_>, x: ValueId, times: usize) -> Step<ValueId> {
    let shape = b.shape(x);
    let wide = b.add(Operator::Unsqueeze { axes: vec![2] }, &[x])?;
    let wide = b.expand(wide, &[shape[0], shape[1], times, shape[2], shape[3]])?;
    b.reshape(wide, &[shape[0], shape[1] * times, shape[2], shape[3]])
}

/// What is added to the scores: 0 where a query sees a key, minus infinity where not. `None`: every query sees every key.
fn bias(
    b: &mut Builder<'_>,
    (q, k): (ValueId, ValueId),
    mask: Option<ValueId>,
    lengths: Option<ValueId>,
    past: usize,
    options: &AttentionOptions,
) -> Step<Option<ValueId>> {
    let dtype = b.dtype(q);
    let (queries, keys) = (b.shape(q)[2], b.shape(k)[2]);
    let mut bias = None;
    if let Some(mut mask) = mask {
        let given = b.shape(mask);
        let short = keys.saturating_sub(given.last().copied().unwrap_or(keys));
        if short > 0 {
            let mut pads = vec![0; 2 * given.len()];
            pads[2 * given.len() - 1] = short as i64;
            let is_bool = b.dtype(mask) == DType::Bool;
            let value = b.scalar(b.dtype(mask), if is_bool { 0.0 } else { f64::NEG_INFINITY });
            mask =
                b.add(Operator::Pad { mode: PadMode::Constant, pads, axes: None }, &[mask, value])?;
        }
        if b.dtype(mask) == DType::Bool {
            mask = open(b, mask, dtype)?;
        }
        bias = Some(mask);
    }
    let (left, right) = (options.left, options.right);
    if options.causal || left >= 0 || right >= 0 {
        // Whether a query at i sees a key at j depends on j - i - offset.
        if queries.saturating_mul(keys) > 1 << 26 {
            return stop(format!("a mask of {queries} queries and {keys} keys is too large"));
        }
        let mut distances = Vec::new();
        for query in 0..queries {
            for key in 0..keys {
                distances.push(key as i64 - query as i64);
            }
        }
        let distances = Tensor::from_elements(&[queries, keys], &distances);
        let Some(distances) = distances else { return stop("the mask has too many elements") };
        let mut distance = b.constant(distances);
        let offset = match lengths {
            Some(lengths) => {
                let lengths = b.cast(lengths, DType::I64)?;
                let count = b.scalar(DType::I64, queries as f64);
                let offset = b.difference(lengths, count)?;
                let batch = b.ty(offset).elements();
                b.reshape(offset, &[batch, 1, 1, 1])?
            }
            None => b.scalar(DType::I64, past as f64),
        };
        distance = b.difference(distance, offset)?;
        let mut limits = Vec::new();
        if options.causal {
            limits.push((Binary::LessOrEqual, 0));
        }
        if right >= 0 {
            limits.push((Binary::LessOrEqual, right));
        }
        if left >= 0 {
            limits.push((Binary::GreaterOrEqual, -left));
        }
        for (comparison, limit) in limits {
            let limit = b.scalar(DType::I64, limit as f64);
            let seen = b.binary(comparison, distance, limit)?;
            bias = Some(with_seen(b, bias, seen, dtype)?);
        }
    }
    if let Some(lengths) = lengths {
        let positions: Vec<f64> = (0..keys).map(|at| at as f64).collect();
        let positions = b.numbers(DType::I64, &[1, 1, 1, keys], &positions)?;
        let lengths = b.cast(lengths, DType::I64)?;
        let batch = b.ty(lengths).elements();
        let lengths = b.reshape(lengths, &[batch, 1, 1, 1])?;
        let seen = b.binary(Binary::Less, positions, lengths)?;
        bias = Some(with_seen(b, bias, seen, dtype)?);
    }
    Ok(bias)
}

/// 0 where it is true, minus infinity elsewhere.
fn open(b: &mut Builder<'_>, seen: ValueId, dtype: DType) -> Step<ValueId> {
    let (yes, no) = (b.scalar(dtype, 0.0), b.scalar(dtype, f64::NEG_INFINITY));
    b.add(Operator::Where, &[seen, yes, no])
}

fn with_seen(
    b: &mut Builder<'_>,
    bias: Option<ValueId>,
    seen: ValueId,
    dtype: DType,
) -> Step<ValueId> {
    let seen = open(b, seen, dtype)?;
    match bias {
        Some(bias) => b.sum(bias, seen),
        None => Ok(seen),
    }
}

/// The result, and the scores that the mode asks for.
fn decomposed(
    b: &mut Builder<'_>,
    [q, k, v]: [ValueId; 3],
    scale: Option<f64>,
    bias: Option<ValueId>,
    options: &AttentionOptions,
) -> Step<(ValueId, ValueId)> {
    let dtype = b.dtype(q);
    let size = b.shape(q)[3] as f64;
    // Half of the factor for each side, so that halves do not overflow.
    let factor = scale.unwrap_or(1.0 / size.sqrt()).sqrt();
    let factor = b.scalar(dtype, factor);
    let transposed = b.transpose(k, &[0, 1, 3, 2])?;
    let (q, k) = (b.product(q, factor)?, b.product(transposed, factor)?);
    let raw = b.matmul(q, k)?;
    let mut scores = raw;
    if options.softcap > 0.0 {
        let cap = b.scalar(dtype, options.softcap);
        let bent = b.quotient(scores, cap)?;
        let bent = b.unary(Unary::Tanh, bent)?;
        scores = b.product(bent, cap)?;
    }
    let capped = scores;
    if let Some(bias) = bias {
        scores = b.sum(scores, bias)?;
    }
    let masked = scores;
    if let Some(precision) = options.precision {
        scores = b.cast(scores, precision)?;
    }
    let mut weights = super::reduce::plain_softmax(b, scores, -1)?;
    if let Some(bias) = bias {
        let largest = b.reduce(Reduction::Max, bias, &[-1], true)?;
        let none = b.activation(Activation::IsInf { negative: true, positive: false }, largest)?;
        let zero = b.scalar(b.dtype(weights), 0.0);
        weights = b.add(Operator::Where, &[none, zero, weights])?;
    }
    let weights = b.cast(weights, dtype)?;
    let shown = match options.mode {
        0 => raw,
        1 => capped,
        2 => masked,
        3 => weights,
        other => {
            return stop(format!(
                "attribute qk_matmul_output_mode is {other}, and has to be 0 to 3"
            ));
        }
    };
    Ok((b.matmul(weights, v)?, shown))
}

pub(super) fn rotary(b: &mut Builder<'_>, c: &Call<'_>) -> Step<Vec<NodeValue>> {
    let (mut x, mut cos, mut sin) = (c.input(0)?, c.input(1)?, c.input(2)?);
    let is_interleaved = c.flag("interleaved", false)?;
    let heads = c.count("num_heads", 0)?;
    let rotated = c.count("rotary_embedding_dim", 0)?;
    let is_flat = b.rank(x) == 3;
    if is_flat {
        x = split_heads(b, x, heads)?;
    }
    let [_, _, _, size] = b.shape(x)[..] else {
        return stop("input 0 has to have 3 or 4 dimensions");
    };
    let rotated = if rotated == 0 { size } else { rotated };
    if rotated > size || rotated % 2 != 0 {
        return stop(format!("{rotated} elements of {size} cannot be rotated in pairs"));
    }
    if let Some(positions) = c.optional(3)? {
        cos = b.add(Operator::Gather { axis: 0 }, &[cos, positions])?;
        sin = b.add(Operator::Gather { axis: 0 }, &[sin, positions])?;
    }
    let half = rotated / 2;
    for table in [&mut cos, &mut sin] {
        if b.rank(*table) != 3 || b.shape(*table)[2] != half {
            return stop(format!(
                "a table has the extents {:?}, and (batch, sequence, {half}) is wanted",
                b.shape(*table)
            ));
        }
        *table = b.add(Operator::Unsqueeze { axes: vec![1] }, &[*table])?;
    }
    let part = b.part(x, 3, 0, rotated)?;
    let shape = b.shape(part);
    let (first, second) = if is_interleaved {
        let pairs = b.reshape(part, &[shape[0], shape[1], shape[2], half, 2])?;
        let (first, second) = (b.part(pairs, 4, 0, 1)?, b.part(pairs, 4, 1, 2)?);
        let single = [shape[0], shape[1], shape[2], half];
        (b.reshape(first, &single)?, b.reshape(second, &single)?)
    } else {
        (b.part(part, 3, 0, half)?, b.part(part, 3, half, rotated)?)
    };
    let (a, d) = (b.product(first, cos)?, b.product(second, sin)?);
    let real = b.difference(a, d)?;
    let (a, d) = (b.product(first, sin)?, b.product(second, cos)?);
    let imaginary = b.sum(a, d)?;
    let mut y = if is_interleaved {
        let real = b.add(Operator::Unsqueeze { axes: vec![4] }, &[real])?;
        let imaginary = b.add(Operator::Unsqueeze { axes: vec![4] }, &[imaginary])?;
        let pairs = b.concat(&[real, imaginary], 4)?;
        b.reshape(pairs, &shape)?
    } else {
        b.concat(&[real, imaginary], 3)?
    };
    if rotated < size {
        let rest = b.part(x, 3, rotated, size)?;
        y = b.concat(&[y, rest], 3)?;
    }
    one(if is_flat { join_heads(b, y)? } else { y })
}

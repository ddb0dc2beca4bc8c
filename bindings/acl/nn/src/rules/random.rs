//! Random numbers by a counter: the same seed and offset give the same bits. Each call has a plan of its own.

use pto_operators::{DType, Operator, elements};

use crate::call::OperatorCall;
use crate::element::{ElementType, F64, I64};
use crate::graph::CallGraph;
use crate::plan::CompiledCall;
use crate::refusal::{Checked, Rejection};
use crate::value::{Value, evaluate};

/// One number of a seed and an offset.
const fn mixed(seed: i64, offset: i64) -> u64 {
    let mut x = seed.cast_unsigned() ^ offset.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn once(plan: CompiledCall) -> CompiledCall {
    CompiledCall { is_shared: false, ..plan }
}

/// (self, from, to, seed, offset): uniform numbers.
pub(crate) fn uniform(call: &OperatorCall) -> Checked<CompiledCall> {
    let (low, high) = (call.number(1), call.number(2));
    if !(low <= high && (high - low).is_finite()) {
        return Err(Rejection::invalid(
            call.name(1),
            format!("is {low}, and to {high}; give a range"),
        ));
    }
    fill(call, |dtype, shape, seed| Operator::RandomUniform { dtype, shape, low, high, seed })
}

/// (self, mean, deviation, seed, offset): normally distributed numbers.
pub(crate) fn normal(call: &OperatorCall) -> Checked<CompiledCall> {
    let (mean, deviation) = (call.number(1), call.number(2));
    if !(deviation >= 0.0 && deviation.is_finite() && mean.is_finite()) {
        return Err(Rejection::invalid(call.name(2), format!("is {deviation}; give 0 or more")));
    }
    fill(call, |dtype, shape, seed| Operator::RandomNormal { dtype, shape, mean, deviation, seed })
}

fn fill(
    call: &OperatorCall,
    operator: impl Fn(DType, Vec<usize>, u64) -> Operator,
) -> Checked<CompiledCall> {
    let out = call.out(0)?;
    let dtype = match out.element {
        ElementType::Real(dtype) if dtype.is_float() => dtype,
        other => {
            return Err(Rejection::invalid(
                out.name,
                format!("is {}; the operator is for floats", other.name()),
            ));
        }
    };
    let seed = mixed(call.integer(3), call.integer(4));
    let mut graph = CallGraph::new(call);
    let value = graph.one(operator(dtype, out.shape().to_vec(), seed), &[])?;
    graph.finish(&[(value, out)]).map(once)
}

/// (self, from, to, seed, offset): whole numbers, the upper limit left out.
pub(crate) fn integers(call: &OperatorCall) -> Checked<CompiledCall> {
    let (low, high, out) = (call.integer(1), call.integer(2), call.out(0)?);
    let range = i128::from(high) - i128::from(low);
    if range <= 0 {
        return Err(Rejection::invalid(
            call.name(1),
            format!("is {low}, and to {high}; give a range"),
        ));
    }
    let seed = mixed(call.integer(3), call.integer(4));
    let mut graph = CallGraph::new(call);
    let shape = out.shape().to_vec();
    let uniform = |seed: u64| Operator::RandomUniform {
        dtype: DType::F64,
        shape: shape.clone(),
        low: 0.0,
        high: 1.0,
        seed,
    };
    let value = graph.one(uniform(seed), &[])?;
    let more = graph.one(uniform(seed ^ 0x5DEE_CE66), &[])?;
    let results = graph.own(
        &[value, more],
        &[(I64, shape)],
        Box::new(move |given| {
            // 106 bits are enough for a range of 64 bits.
            let bits = |x: f64| {
                #[expect(clippy::cast_possible_truncation, reason = "53 bits")]
                let whole = (x * 9_007_199_254_740_992.0) as i128;
                whole
            };
            let found: Vec<i64> = given[0]
                .doubles()
                .into_iter()
                .zip(given[1].doubles())
                .map(|(first, second)| {
                    let wide = (bits(first) * range) + ((bits(second) * range) >> 53);
                    i64::try_from(i128::from(low) + (wide >> 53)).unwrap_or(low)
                })
                .collect();
            Ok(vec![Value::of_integers(given[0].shape(), &found)])
        }),
    );
    graph.finish(&[(results[0], out)]).map(once)
}

/// (self, number of samples, replacement, seed, offset): numbers of columns, each as likely as its weight in the row.
pub(crate) fn multinomial(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, samples, replace, out) = (call.tensor(0)?, call.integer(1), call.flag(2), call.out(0)?);
    let [.., columns] = *x.shape() else {
        return Err(Rejection::invalid(
            call.name(0),
            "has no dimensions; give a vector or a matrix",
        ));
    };
    let count =
        usize::try_from(samples).ok().filter(|count| *count > 0 && (replace || *count <= columns));
    let (Some(count), true) = (count, x.rank() <= 2 && !x.element.is_complex()) else {
        return Err(Rejection::invalid(
            call.name(1),
            format!("is {samples}, of {:?} weights; give a number that can be drawn", x.shape()),
        ));
    };
    let rows = elements(x.shape()) / columns.max(1);
    let shape = if x.rank() == 1 { vec![count] } else { vec![rows, count] };
    let seed = mixed(call.integer(3), call.integer(4));
    let mut graph = CallGraph::new(call);
    graph.can_fail();
    let value = graph.tensor(x);
    let value = graph.cast(value, F64);
    let of = shape.clone();
    let results = graph.own(
        &[value],
        &[(I64, shape)],
        Box::new(move |given| {
            let draws = Operator::RandomUniform {
                dtype: DType::F64,
                shape: vec![rows * count],
                low: 0.0,
                high: 1.0,
                seed,
            };
            let draws = evaluate(&draws, &[])?.to_doubles();
            let mut found = Vec::with_capacity(rows * count);
            for (row, weights) in given[0].doubles().chunks(columns).enumerate() {
                let mut weights = weights.to_vec();
                for draw in &draws[row * count..(row + 1) * count] {
                    let sum: f64 = weights.iter().sum();
                    if !(sum > 0.0 && sum.is_finite()) || weights.iter().any(|weight| *weight < 0.0)
                    {
                        return Err(format!(
                            "row {row} of self has weights that are negative, infinite, or all 0"
                        ));
                    }
                    let mut rest = draw * sum;
                    let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
                    let at = weights
                        .iter()
                        .position(|weight| {
                            rest -= weight;
                            rest < 0.0
                        })
                        .unwrap_or(last);
                    found.push(i64::try_from(at).unwrap_or(i64::MAX));
                    if !replace {
                        weights[at] = 0.0;
                    }
                }
            }
            Ok(vec![Value::of_integers(&of, &found)])
        }),
    );
    graph.finish(&[(results[0], out)]).map(once)
}

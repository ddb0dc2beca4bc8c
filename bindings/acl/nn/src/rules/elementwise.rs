//! Elementwise operators: broadcasting, and the types in which they are computed.
//!
//! Two tensors are computed in the type that both have in common. A scalar takes the type of the tensor, unless it is of a higher category (bool, integer,
//! float, complex). The result is rounded once to the type of the output.

use pto_operators::{Activation, Binary, DType, Operator, Unary};

use crate::call::{OperatorCall, TensorRef};
use crate::element::{BOOL, ElementType, F32, F64, I64};
use crate::graph::{CallGraph, V};
use crate::objects::ScalarObject;
use crate::plan::CompiledCall;
use crate::refusal::Checked;
use crate::value::{Value, doubles, evaluate};

/// The value as a float: integers become the output's float type, or `f32`.
fn float_of(graph: &mut CallGraph<'_>, value: V, out: &TensorRef) -> V {
    let own = graph.element(value);
    let wanted = match (own.category(), out.element.category()) {
        (2, 2) => own.promoted(out.element),
        (2 | 3, _) => own,
        (_, 2 | 3) => out.element,
        _ => F32,
    };
    graph.cast(value, wanted)
}

/// A scalar beside a tensor of this type.
fn scalar_of(
    graph: &mut CallGraph<'_>,
    scalar: &ScalarObject,
    beside: ElementType,
    out: &TensorRef,
) -> V {
    let own = scalar.element;
    let element = if own.category() <= beside.category() {
        beside
    } else {
        match (own.category(), beside) {
            (3, ElementType::Real(DType::F64)) => ElementType::Complex128,
            (3, _) if out.element == ElementType::Complex128 => ElementType::Complex128,
            (3, _) => ElementType::Complex64,
            (2, _) if out.element.is_float() => out.element,
            (2, _) => F64,
            _ => I64,
        }
    };
    scalar_as(graph, scalar, element)
}

/// A scalar as an element of this type.
pub(crate) fn scalar_as(
    graph: &mut CallGraph<'_>,
    scalar: &ScalarObject,
    element: ElementType,
) -> V {
    let value = match scalar.element {
        ElementType::Real(_) => Value::Real(scalar.tensor()),
        complex => Value::of_pairs(&[], &[scalar.parts()], complex == ElementType::Complex64),
    };
    graph.constant(value.cast(element))
}

/// A function of numbers that gives floats.
pub(crate) fn float(call: &OperatorCall, function: Unary) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(x);
    let x = float_of(&mut graph, x, out);
    let y = graph.unary(function, x)?;
    graph.finish(&[(y, out)])
}

/// A function of numbers that keeps their type.
pub(crate) fn number(call: &OperatorCall, function: Unary) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(x);
    let x = graph.numeric(x);
    let y = graph.unary(function, x)?;
    graph.finish(&[(y, out)])
}

/// The bits turned; of truth values the other one.
pub(crate) fn bitwise_not(call: &OperatorCall) -> Checked<CompiledCall> {
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(call.tensor(0)?);
    let y = graph.unary(Unary::BitwiseNot, x)?;
    graph.finish(&[(y, call.out(0)?)])
}

pub(crate) fn logical_not(call: &OperatorCall) -> Checked<CompiledCall> {
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(call.tensor(0)?);
    let x = graph.cast(x, BOOL);
    let y = graph.unary(Unary::Not, x)?;
    graph.finish(&[(y, call.out(0)?)])
}

pub(crate) fn cast(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, element, out) = (call.tensor(0)?, call.element(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(x);
    let y = graph.cast(x, element);
    graph.finish(&[(y, out)])
}

/// The real part.
pub(crate) fn real(call: &OperatorCall) -> Checked<CompiledCall> {
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(call.tensor(0)?);
    let part = graph.element(x).part();
    let y = graph.cast(x, part);
    graph.finish(&[(y, call.out(0)?)])
}

/// Complex numbers of real and imaginary parts.
pub(crate) fn complex(call: &OperatorCall) -> Checked<CompiledCall> {
    let (re, im, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let is_single = out.element == ElementType::Complex64;
    let element = if is_single { ElementType::Complex64 } else { ElementType::Complex128 };
    let [re, im] = [re, im].map(|part| graph.tensor(part));
    let [re, im] = [graph.cast(re, F64), graph.cast(im, F64)];
    let shape = {
        let sum = graph.binary(Binary::Add, re, im)?;
        graph.shape(sum).to_vec()
    };
    let wide = |graph: &mut CallGraph<'_>, value: V| {
        let shape = shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        graph.one(Operator::Expand { shape }, &[value])
    };
    let (re, im) = (wide(&mut graph, re)?, wide(&mut graph, im)?);
    let made = graph.own(
        &[re, im],
        &[(element, shape.clone())],
        Box::new(move |values| {
            let pairs: Vec<[f64; 2]> = values[0]
                .doubles()
                .into_iter()
                .zip(values[1].doubles())
                .map(|(re, im)| [re, im])
                .collect();
            Ok(vec![Value::of_pairs(values[0].shape(), &pairs, is_single)])
        }),
    );
    graph.finish(&[(made[0], out)])
}

/// Whether each element is finite.
pub(crate) fn is_finite(call: &OperatorCall) -> Checked<CompiledCall> {
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(call.tensor(0)?);
    let x = graph.numeric(x);
    // The difference is NaN where it is not.
    let difference = graph.binary(Binary::Sub, x, x)?;
    let element = graph.element(x);
    let zero = graph.number(0.0, element);
    let y = graph.binary(Binary::Equal, difference, zero)?;
    graph.finish(&[(y, call.out(0)?)])
}

/// Whether each element is infinite.
pub(crate) fn is_infinite(
    call: &OperatorCall,
    negative: bool,
    positive: bool,
) -> Checked<CompiledCall> {
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(call.tensor(0)?);
    let y = if graph.element(x).is_complex() {
        let shape = graph.shape(x).to_vec();
        let found = graph.own(
            &[x],
            &[(BOOL, shape)],
            Box::new(|values| {
                let truths: Vec<f64> = values[0]
                    .pairs()
                    .iter()
                    .map(|[re, im]| f64::from(u8::from(re.is_infinite() || im.is_infinite())))
                    .collect();
                Ok(vec![Value::of_doubles(BOOL, values[0].shape(), &truths)])
            }),
        );
        found[0]
    } else if graph.element(x).is_float() {
        graph.activation(Activation::IsInf { negative, positive }, x)?
    } else {
        graph.binary(Binary::NotEqual, x, x)?
    };
    graph.finish(&[(y, call.out(0)?)])
}

/// A function of `f64` that no operator of the project is.
fn own(
    call: &OperatorCall,
    function: fn(&Value) -> Result<Vec<f64>, String>,
) -> Checked<CompiledCall> {
    let out = call.out(0)?;
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(call.tensor(0)?);
    if graph.element(x).is_complex() {
        return Err(crate::refusal::Rejection::invalid(
            call.name(0),
            "is complex, and the operator is for real numbers",
        ));
    }
    let shape = graph.shape(x).to_vec();
    let made = graph.own(
        &[x],
        &[(F64, shape)],
        Box::new(move |values| {
            let results = function(values[0])?;
            Ok(vec![Value::Real(doubles(values[0].shape(), &results))])
        }),
    );
    graph.finish(&[(made[0], out)])
}

pub(crate) fn sign_bit(call: &OperatorCall) -> Checked<CompiledCall> {
    own(call, |value| {
        Ok(value.doubles().iter().map(|x| f64::from(u8::from(x.is_sign_negative()))).collect())
    })
}

pub(crate) fn sinc(call: &OperatorCall) -> Checked<CompiledCall> {
    own(call, |value| {
        let of = |x: f64| {
            let x = x * std::f64::consts::PI;
            if x == 0.0 { 1.0 } else { x.sin() / x }
        };
        Ok(value.doubles().into_iter().map(of).collect())
    })
}

fn error_function(values: &[f64]) -> Result<Vec<f64>, String> {
    let tensor = doubles(&[values.len()], values);
    Ok(evaluate(&Operator::Unary(Unary::Erf), &[&tensor])?.to_doubles())
}

/// 1 - the error function, without loss for large x.
pub(crate) fn erfc(call: &OperatorCall) -> Checked<CompiledCall> {
    own(call, |value| {
        let values = value.doubles();
        let near = error_function(&values)?;
        Ok(values
            .iter()
            .zip(near)
            .map(|(x, erf)| if *x < 1.0 { 1.0 - erf } else { tail(*x) })
            .collect())
    })
}

/// `erfc` from 1 on, by its continued fraction.
fn tail(x: f64) -> f64 {
    if x.is_nan() || x > 27.3 {
        return if x.is_nan() { x } else { 0.0 };
    }
    let mut fraction = x;
    for n in (1..=if x < 2.0 { 160 } else { 60 }).rev() {
        fraction = x + 0.5 * f64::from(n) / fraction;
    }
    (-x * x).exp() / fraction / std::f64::consts::PI.sqrt()
}

/// The inverse of the error function: an approximation (M. Giles, "Approximating the erfinv function", 2010), and two steps of Newton's.
pub(crate) fn erfinv(call: &OperatorCall) -> Checked<CompiledCall> {
    own(call, |value| {
        let values = value.doubles();
        let mut found: Vec<f64> = values.iter().map(|x| first_erfinv(*x)).collect();
        for _ in 0..3 {
            let near = error_function(&found)?;
            for ((y, x), erf) in found.iter_mut().zip(&values).zip(near) {
                if y.is_finite() {
                    // Beside 1 the difference is that of the complements.
                    let miss = if *y > 1.0 {
                        (1.0 - *x) - tail(*y)
                    } else if *y < -1.0 {
                        tail(-*y) - (1.0 + *x)
                    } else {
                        erf - *x
                    };
                    *y -= miss / (std::f64::consts::FRAC_2_SQRT_PI * (-*y * *y).exp());
                }
            }
        }
        Ok(found)
    })
}

fn first_erfinv(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return if x.abs() == 1.0 { x * f64::INFINITY } else { f64::NAN };
    }
    let w = -((1.0 - x) * (1.0 + x)).ln();
    let near = [
        2.810_226_36e-8,
        3.432_739_39e-7,
        -3.523_387_7e-6,
        -4.391_506_54e-6,
        2.185_808_7e-4,
        -1.253_725_03e-3,
        -4.177_681_64e-3,
        2.466_407_27e-1,
        1.501_409_41,
    ];
    let far = [
        -2.002_142_57e-4,
        1.009_505_58e-4,
        1.349_343_22e-3,
        -3.673_428_44e-3,
        5.739_507_73e-3,
        -7.622_461_3e-3,
        9.438_870_47e-3,
        1.001_674_06,
        2.832_976_82,
    ];
    let (w, terms) = if w < 5.0 { (w - 2.5, near) } else { (w.sqrt() - 3.0, far) };
    x * terms.into_iter().fold(0.0, |sum, term| sum * w + term)
}

/// The largest number of a type that is finite.
fn bounded(number: f64, element: ElementType) -> f64 {
    let most = match element {
        ElementType::Real(DType::F16) => 65_504.0,
        ElementType::Real(DType::BF16) => 3.389_531_389_251_535_5e38,
        ElementType::Real(DType::F32) => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    if number.is_finite() { number.clamp(-most, most) } else { number }
}

/// (x, nan, positive infinity, negative infinity): these replaced.
pub(crate) fn nan_to_num(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let mut value = graph.tensor(x);
    if x.element.is_float() {
        let constants = [1, 2, 3].map(|at| bounded(call.number(at), x.element));
        let source = value;
        for (at, number) in constants.into_iter().enumerate() {
            let condition = match at {
                0 => graph.unary(Unary::IsNaN, source)?,
                _ => graph.activation(
                    Activation::IsInf { negative: at == 2, positive: at == 1 },
                    source,
                )?,
            };
            let number = graph.number(number, x.element);
            value = graph.choose(condition, number, value)?;
        }
    } else if x.element.is_complex() {
        return Err(crate::refusal::Rejection::invalid(
            call.name(0),
            "is complex, and the operator is for real numbers",
        ));
    }
    graph.finish(&[(value, out)])
}

/// (x, decimals): rounded to so many.
pub(crate) fn round_decimals(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, decimals, out) = (call.tensor(0)?, call.integer(1), call.out(0)?);
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(x);
    let x = graph.numeric(x);
    let element = graph.element(x);
    if decimals == 0 || (decimals > 0 && !element.is_float() && !element.is_complex()) {
        let y = graph.unary(Unary::Round, x)?;
        return graph.finish(&[(y, out)]);
    }
    let wide = if element.category() < 2 { F64 } else { element };
    let x = graph.cast(x, wide);
    let power = 10_f64.powi(i32::try_from(decimals.abs()).unwrap_or(i32::MAX).min(400));
    let power = graph.number(power, wide);
    let (first, last) =
        if decimals > 0 { (Binary::Mul, Binary::Div) } else { (Binary::Div, Binary::Mul) };
    let scaled = graph.binary(first, x, power)?;
    let rounded = graph.unary(Unary::Round, scaled)?;
    let y = graph.binary(last, rounded, power)?;
    graph.finish(&[(y, out)])
}

/// (x, min, max): scalars, each of which may be left out.
pub(crate) fn clamp(call: &OperatorCall) -> Checked<CompiledCall> {
    let (x, out) = (call.tensor(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let mut value = graph.tensor(x);
    value = graph.numeric(value);
    for (at, function) in [(1, Binary::Max), (2, Binary::Min)] {
        if let Some(limit) = call.optional_scalar(at) {
            let beside = graph.element(value);
            let limit = scalar_of(&mut graph, &limit, beside, out);
            let [a, b] = graph.promote(value, limit);
            value = graph.binary(function, a, b)?;
        }
    }
    graph.finish(&[(value, out)])
}

/// The operands of two tensors (arguments 0 and 1), in the type that both have in common.
fn pair<'c>(call: &'c OperatorCall) -> Checked<(CallGraph<'c>, [V; 2], &'c TensorRef)> {
    let (a, b, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let (a, b) = (graph.tensor(a), graph.tensor(b));
    let operands = graph.promote(a, b);
    Ok((graph, operands, out))
}

/// The operands of a tensor and a scalar (arguments 0 and 1).
fn beside_scalar<'c>(call: &'c OperatorCall) -> Checked<(CallGraph<'c>, [V; 2], &'c TensorRef)> {
    let (a, b, out) = (call.tensor(0)?, call.scalar(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let a = graph.tensor(a);
    let beside = graph.element(a);
    let b = scalar_of(&mut graph, &b, beside, out);
    let operands = graph.promote(a, b);
    Ok((graph, operands, out))
}

type Operands<'c> = (CallGraph<'c>, [V; 2], &'c TensorRef);

/// Which operands an operator has.
#[derive(Clone, Copy)]
pub(crate) enum OperandForm {
    /// Two tensors.
    Tensors,
    /// A tensor and a scalar.
    Scalar,
    /// A scalar and a tensor.
    Reversed,
}

fn operands<'c>(call: &'c OperatorCall, form: OperandForm) -> Checked<Operands<'c>> {
    match form {
        OperandForm::Tensors => pair(call),
        OperandForm::Scalar => beside_scalar(call),
        OperandForm::Reversed => {
            let (a, b, out) = (call.scalar(0)?, call.tensor(1)?, call.out(0)?);
            let mut graph = CallGraph::new(call);
            let b = graph.tensor(b);
            let beside = graph.element(b);
            let a = scalar_of(&mut graph, &a, beside, out);
            let operands = graph.promote(a, b);
            Ok((graph, operands, out))
        }
    }
}

/// A function of two numbers. Of truth values sums and products are truth values, as NumPy has them.
pub(crate) fn arithmetic(
    call: &OperatorCall,
    function: Binary,
    form: OperandForm,
) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = operands(call, form)?;
    let of_truths = graph.element(a) == BOOL;
    let [a, b] = [graph.numeric(a), graph.numeric(b)];
    let y = graph.binary(function, a, b)?;
    let y = as_truth(&mut graph, y, of_truths, function);
    graph.finish(&[(y, out)])
}

fn as_truth(graph: &mut CallGraph<'_>, value: V, of_truths: bool, function: Binary) -> V {
    let keeps_truth = matches!(function, Binary::Add | Binary::Mul | Binary::Max | Binary::Min);
    if of_truths && keeps_truth { graph.cast(value, BOOL) } else { value }
}

/// a + alpha b, or a - alpha b, or b - alpha a; alpha is argument 2.
pub(crate) fn sum(
    call: &OperatorCall,
    function: Binary,
    form: OperandForm,
) -> Checked<CompiledCall> {
    let is_reversed = matches!(form, OperandForm::Reversed);
    let form = if is_reversed { OperandForm::Scalar } else { form };
    let (mut graph, [a, b], out) = operands(call, form)?;
    let of_truths = graph.element(a) == BOOL;
    let [a, b] = [graph.numeric(a), graph.numeric(b)];
    let (a, b) = if is_reversed { (b, a) } else { (a, b) };
    let alpha = call.scalar(2)?;
    let factor = if alpha.parts() == [1.0, 0.0] {
        b
    } else {
        let element = graph.element(b);
        let alpha = scalar_as(&mut graph, &alpha, element);
        graph.binary(Binary::Mul, b, alpha)?
    };
    let y = graph.binary(function, a, factor)?;
    let y = as_truth(&mut graph, y, of_truths, function);
    graph.finish(&[(y, out)])
}

/// The quotient as a float.
pub(crate) fn divide(call: &OperatorCall, form: OperandForm) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = operands(call, form)?;
    let [a, b] = [float_of(&mut graph, a, out), float_of(&mut graph, b, out)];
    let y = graph.binary(Binary::Div, a, b)?;
    graph.finish(&[(y, out)])
}

/// The quotient, rounded down.
fn floored(graph: &mut CallGraph<'_>, [a, b]: [V; 2]) -> Checked<V> {
    let rest = graph.binary(Binary::Mod, a, b)?;
    let whole = graph.binary(Binary::Sub, a, rest)?;
    let quotient = graph.binary(Binary::Div, whole, b)?;
    let element = graph.element(a);
    if !element.is_float() {
        return Ok(quotient);
    }
    let rounded = graph.unary(Unary::Round, quotient)?;
    let plain = graph.binary(Binary::Div, a, b)?;
    let zero = graph.number(0.0, element);
    let by_zero = graph.binary(Binary::Equal, b, zero)?;
    graph.choose(by_zero, plain, rounded)
}

pub(crate) fn floor_divide(call: &OperatorCall, form: OperandForm) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = operands(call, form)?;
    let operands = [graph.numeric(a), graph.numeric(b)];
    let y = floored(&mut graph, operands)?;
    graph.finish(&[(y, out)])
}

/// (a, b, mode): 0 the quotient, 1 towards zero, 2 rounded down.
pub(crate) fn divide_mode(call: &OperatorCall) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = pair(call)?;
    let y = match call.integer(2) {
        0 => {
            let [a, b] = [float_of(&mut graph, a, out), float_of(&mut graph, b, out)];
            graph.binary(Binary::Div, a, b)?
        }
        1 => {
            let [a, b] = [graph.numeric(a), graph.numeric(b)];
            let quotient = graph.binary(Binary::Div, a, b)?;
            graph.unary(Unary::Trunc, quotient)?
        }
        2 => {
            let operands = [graph.numeric(a), graph.numeric(b)];
            floored(&mut graph, operands)?
        }
        other => {
            return Err(crate::refusal::Rejection::invalid(
                call.name(2),
                format!("is {other}; use 0 (quotient), 1 (towards zero) or 2 (rounded down)"),
            ));
        }
    };
    graph.finish(&[(y, out)])
}

/// a to the power b.
pub(crate) fn power(call: &OperatorCall, form: OperandForm) -> Checked<CompiledCall> {
    if let (OperandForm::Scalar, Ok(x), Ok(exponent)) = (form, call.tensor(0), call.scalar(1))
        && x.element.is_float()
        && !exponent.element.is_complex()
    {
        // A power of a float takes the exponent as it is.
        let out = call.out(0)?;
        let mut graph = CallGraph::new(call);
        let x = graph.tensor(x);
        let exponent = scalar_as(&mut graph, &exponent, F64);
        let y = graph.binary(Binary::Pow, x, exponent)?;
        return graph.finish(&[(y, out)]);
    }
    arithmetic(call, Binary::Pow, form)
}

/// A comparison.
pub(crate) fn compare(
    call: &OperatorCall,
    function: Binary,
    form: OperandForm,
) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = operands(call, form)?;
    let [a, b] = [graph.numeric(a), graph.numeric(b)];
    let y = graph.binary(function, a, b)?;
    graph.finish(&[(y, out)])
}

/// A function of two truth values.
pub(crate) fn logical(call: &OperatorCall, function: Binary) -> Checked<CompiledCall> {
    let (a, b, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let [a, b] = [a, b].map(|operand| graph.tensor(operand));
    let [a, b] = [a, b].map(|operand| graph.cast(operand, BOOL));
    let y = graph.binary(function, a, b)?;
    graph.finish(&[(y, out)])
}

/// A function of the bits of two integers.
pub(crate) fn bitwise(
    call: &OperatorCall,
    function: Binary,
    form: OperandForm,
) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = operands(call, form)?;
    let y = graph.binary(function, a, b)?;
    graph.finish(&[(y, out)])
}

/// A function of two floats.
pub(crate) fn float_pair(call: &OperatorCall, function: Binary) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = pair(call)?;
    let [a, b] = [float_of(&mut graph, a, out), float_of(&mut graph, b, out)];
    let y = graph.binary(function, a, b)?;
    graph.finish(&[(y, out)])
}

/// The logarithm of the sum of two powers of e, or of 2.
pub(crate) fn log_add_exp(call: &OperatorCall, is_binary: bool) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = pair(call)?;
    let [a, b] = [float_of(&mut graph, a, out), float_of(&mut graph, b, out)];
    let element = graph.element(a);
    let scale = if is_binary { std::f64::consts::LN_2 } else { 1.0 };
    let larger = graph.binary(Binary::Max, a, b)?;
    let difference = graph.binary(Binary::Sub, a, b)?;
    let distance = graph.unary(Unary::Abs, difference)?;
    let scaled = graph.activation(Activation::Affine { alpha: -scale, beta: 0.0 }, distance)?;
    let small = graph.unary(Unary::Exp, scaled)?;
    let log = graph.unary(Unary::Log1p, small)?;
    let log = graph.activation(Activation::Affine { alpha: 1.0 / scale, beta: 0.0 }, log)?;
    // Equal infinities have no difference.
    let equal = graph.binary(Binary::Equal, a, b)?;
    let two = graph.number(std::f64::consts::LN_2 / scale, element);
    let log = graph.choose(equal, two, log)?;
    let y = graph.binary(Binary::Add, larger, log)?;
    graph.finish(&[(y, out)])
}

/// The greatest common divisor.
pub(crate) fn gcd(call: &OperatorCall) -> Checked<CompiledCall> {
    let (mut graph, [a, b], out) = pair(call)?;
    let [a, b] = [graph.cast(a, I64), graph.cast(b, I64)];
    let both = graph.binary(Binary::BitwiseOr, a, b)?;
    let shape = graph.shape(both).to_vec();
    let extents: Vec<i64> =
        shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
    let wide = |graph: &mut CallGraph<'_>, value: V| {
        graph.one(Operator::Expand { shape: extents.clone() }, &[value])
    };
    let (a, b) = (wide(&mut graph, a)?, wide(&mut graph, b)?);
    let made = graph.own(
        &[a, b],
        &[(I64, shape)],
        Box::new(|values| {
            let divisor = |a: i64, b: i64| {
                let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
                while b != 0 {
                    (a, b) = (b, a % b);
                }
                a.cast_signed()
            };
            let found: Vec<i64> = values[0]
                .integers()
                .into_iter()
                .zip(values[1].integers())
                .map(|(a, b)| divisor(a, b))
                .collect();
            Ok(vec![Value::of_integers(values[0].shape(), &found)])
        }),
    );
    graph.finish(&[(made[0], out)])
}

/// 0 below 0, h at 0, 1 above.
pub(crate) fn heaviside(call: &OperatorCall) -> Checked<CompiledCall> {
    let (mut graph, [x, h], out) = pair(call)?;
    let [x, h] = [graph.numeric(x), graph.numeric(h)];
    let element = graph.element(x);
    let [zero, one] = [0.0, 1.0].map(|number| graph.number(number, element));
    let is_below = graph.binary(Binary::Less, x, zero)?;
    let is_above = graph.binary(Binary::Greater, x, zero)?;
    let is_at = graph.binary(Binary::Equal, x, zero)?;
    // NaN is none of the three.
    let y = graph.choose(is_at, h, x)?;
    let y = graph.choose(is_below, zero, y)?;
    let y = graph.choose(is_above, one, y)?;
    graph.finish(&[(y, out)])
}

/// (condition, x, y).
pub(crate) fn choose(call: &OperatorCall) -> Checked<CompiledCall> {
    let (condition, x, y, out) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let condition = graph.tensor(condition);
    let condition = graph.cast(condition, BOOL);
    let (x, y) = (graph.tensor(x), graph.tensor(y));
    let [x, y] = graph.promote(x, y);
    let result = graph.choose(condition, x, y)?;
    graph.finish(&[(result, out)])
}

/// (self, value): every element becomes the value.
pub(crate) fn fill(call: &OperatorCall, is_tensor: bool) -> Checked<CompiledCall> {
    let out = call.out(0)?;
    let mut graph = CallGraph::new(call);
    let value = filler(call, &mut graph, 1, is_tensor, out)?;
    let filled = graph.one(Operator::Fill { shape: out.shape().to_vec() }, &[value])?;
    graph.finish(&[(filled, out)])
}

/// An argument of one element, a scalar or a tensor, as the output's type.
fn filler(
    call: &OperatorCall,
    graph: &mut CallGraph<'_>,
    at: usize,
    is_tensor: bool,
    out: &TensorRef,
) -> Checked<V> {
    if !is_tensor {
        return Ok(scalar_as(graph, &call.scalar(at)?, out.element));
    }
    let tensor = call.tensor(at)?;
    if pto_operators::elements(tensor.shape()) != 1 {
        return Err(crate::refusal::Rejection::invalid(
            tensor.name,
            format!("has the extents {:?}; give one element", tensor.shape()),
        ));
    }
    let value = graph.tensor(tensor);
    let value = graph.one(Operator::Reshape { shape: Vec::new(), allow_zero: true }, &[value])?;
    Ok(graph.cast(value, out.element))
}

/// (self, mask, value): the elements where the mask is true become the value.
pub(crate) fn masked_fill(call: &OperatorCall, is_tensor: bool) -> Checked<CompiledCall> {
    let (x, mask, out) = (call.tensor(0)?, call.tensor(1)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let x = graph.tensor(x);
    let mask = graph.tensor(mask);
    let mask = graph.cast(mask, BOOL);
    let value = filler(call, &mut graph, 2, is_tensor, out)?;
    let y = graph.choose(mask, value, x)?;
    graph.finish(&[(y, out)])
}

/// The largest or smallest of each element of some tensors.
pub(crate) fn of_list(call: &OperatorCall, function: Binary) -> Checked<CompiledCall> {
    let (list, out) = (call.list(0)?, call.out(0)?);
    let mut graph = CallGraph::new(call);
    let mut result = None;
    for tensor in list {
        let value = graph.tensor(tensor);
        let value = graph.numeric(value);
        result = Some(match result {
            None => value,
            Some(result) => {
                let [a, b] = graph.promote(result, value);
                graph.binary(function, a, b)?
            }
        });
    }
    let result = result.ok_or_else(|| crate::refusal::Rejection::null(call.name(0)))?;
    graph.finish(&[(result, out)])
}

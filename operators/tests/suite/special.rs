//! Numbers at the edges: NaN, infinities, integers that wrap, halves, nothing at all.

#![expect(clippy::cast_possible_truncation, reason = "numbers of tests are small")]

use half::{bf16, f16};
use pto_operators::{
    Activation, Binary, DType, Element, Function, Operator, Reduction, Step, Tensor, Unary,
};

fn evaluate(operator: &Operator, inputs: &[&Tensor]) -> Tensor {
    let given: Vec<_> = inputs.iter().map(|input| Some(*input)).collect();
    operator.evaluate(&given).unwrap().remove(0)
}

fn one<T: Element>(operator: &Operator, x: &[T]) -> Vec<f64> {
    evaluate(operator, &[&Tensor::vector(x)]).to_doubles()
}

fn two<T: Element>(binary: Binary, a: &[T], b: &[T]) -> Vec<f64> {
    evaluate(&Operator::Binary(binary), &[&Tensor::vector(a), &Tensor::vector(b)]).to_doubles()
}

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

/// Equal, and NaN is equal to NaN.
fn same(found: &[f64], wanted: &[f64]) {
    let is_same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
    assert!(
        found.len() == wanted.len() && found.iter().zip(wanted).all(is_same),
        "{found:?}, not {wanted:?}"
    );
}

#[test]
fn nan_and_infinities_are_as_ieee_and_numpy_have_them() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    same(&two(Binary::Max, &[NAN, 1.0, 2.0], &[1.0, NAN, 1.0]), &[nan, nan, 2.0]);
    same(&two(Binary::Min, &[NAN, 1.0, 2.0], &[1.0, NAN, 1.0]), &[nan, nan, 1.0]);
    same(&two(Binary::Equal, &[NAN, INF], &[NAN, INF]), &[0.0, 1.0]);
    same(&two(Binary::NotEqual, &[NAN], &[NAN]), &[1.0]);
    same(&two(Binary::Div, &[1.0_f32, 0.0, -1.0], &[0.0, 0.0, 0.0]), &[inf, nan, -inf]);
    same(&two(Binary::Mod, &[-5.0_f32, 5.0], &[3.0, -3.0]), &[1.0, -1.0]);
    same(&two(Binary::Fmod, &[-5.0_f32, 5.0], &[3.0, -3.0]), &[-2.0, 2.0]);
    same(&two(Binary::Pow, &[0.0_f32, -8.0, NAN], &[0.0, 0.5, 0.0]), &[1.0, nan, 1.0]);
    let unary = |function: Unary| one(&Operator::Unary(function), &[-INF, INF, NAN]);
    same(&unary(Unary::Relu), &[0.0, inf, nan]);
    same(&unary(Unary::Exp), &[0.0, inf, nan]);
    same(&unary(Unary::Sigmoid), &[0.0, 1.0, nan]);
    same(&unary(Unary::Tanh), &[-1.0, 1.0, nan]);
    same(&unary(Unary::Erf), &[-1.0, 1.0, nan]);
    same(&unary(Unary::Gelu), &[0.0, inf, nan]);
    same(&unary(Unary::HardSwish), &[0.0, inf, nan]);
    same(&unary(Unary::Mish), &[0.0, inf, nan]);
    same(&unary(Unary::Softplus), &[0.0, inf, nan]);
    same(&unary(Unary::Softsign), &[-1.0, 1.0, nan]);
    same(&unary(Unary::Sign), &[-1.0, 1.0, nan]);
    same(&unary(Unary::Log), &[nan, inf, nan]);
    same(&unary(Unary::IsNaN), &[0.0, 0.0, 1.0]);
    same(
        &one(&Operator::Activation(Activation::Clamp { low: 0.0, high: 6.0 }), &[-INF, INF, NAN]),
        &[0.0, 6.0, nan],
    );
    same(
        &one(
            &Operator::Activation(Activation::IsInf { negative: false, positive: true }),
            &[-INF, INF, NAN],
        ),
        &[0.0, 1.0, 0.0],
    );
    let reduced = |reduction: Reduction, x: &[f32]| {
        one(&Operator::Reduce { reduction, axes: None, keep_dims: false }, x)
    };
    same(&reduced(Reduction::Max, &[1.0, NAN, 3.0]), &[nan]);
    same(&reduced(Reduction::LogSumExp, &[-INF, -INF]), &[-inf]);
    same(&reduced(Reduction::LogSumExp, &[INF, 1.0]), &[inf]);
    same(
        &reduced(Reduction::LogSumExp, &[1000.0, 1000.0]),
        &[f64::from((1000.0 + 2.0_f64.ln()) as f32)],
    );
    let arg = |largest: bool| {
        one(
            &Operator::ArgReduce { largest, axis: 0, keep_dims: false, select_last: false },
            &[1.0, NAN, 3.0, NAN],
        )
    };
    same(&arg(true), &[1.0]);
    same(&arg(false), &[1.0]);
    same(
        &one(&Operator::Sort { axis: 0, descending: false }, &[3.0, NAN, -INF, 1.0]),
        &[-inf, 1.0, 3.0, nan],
    );
    same(
        &one(&Operator::Sort { axis: 0, descending: true }, &[3.0, NAN, -INF, 1.0]),
        &[nan, 3.0, 1.0, -inf],
    );
}

#[test]
fn integers_wrap() {
    same(&two(Binary::Add, &[127_i8, -128], &[1, -1]), &[-128.0, 127.0]);
    same(&two(Binary::Sub, &[0_u8, 5], &[1, 5]), &[255.0, 0.0]);
    same(&two(Binary::Mul, &[200_u8], &[2]), &[144.0]);
    same(
        &two(Binary::Div, &[-7_i32, 7, i32::MIN, 1], &[2, -2, -1, 0]),
        &[-3.0, -3.0, f64::from(i32::MIN), 0.0],
    );
    same(&two(Binary::Mod, &[-7_i32, 7, -7], &[3, -3, 0]), &[2.0, -2.0, 0.0]);
    same(&two(Binary::Fmod, &[-7_i32, 7], &[3, -3]), &[-1.0, 1.0]);
    same(&two(Binary::ShiftLeft, &[1_u8, 255, 1], &[7, 1, 8]), &[128.0, 254.0, 0.0]);
    same(
        &two(Binary::Pow, &[2_i32, -1, 3, 2], &[31, -3, -1, 40]),
        &[f64::from(i32::MIN), -1.0, 0.0, 0.0],
    );
    same(&two(Binary::Max, &[u64::MAX], &[1]), &[u64::MAX as f64]);
    same(&two(Binary::Less, &[u64::MAX], &[1]), &[0.0]);
    same(&one(&Operator::Unary(Unary::Abs), &[i8::MIN]), &[-128.0]);
    same(&one(&Operator::Unary(Unary::BitwiseNot), &[0_u16]), &[65535.0]);
    let sum = Operator::Reduce { reduction: Reduction::Sum, axes: None, keep_dims: false };
    assert_eq!(
        evaluate(&sum, &[&Tensor::vector(&[i64::MAX, 1])]).to_elements::<i64>().unwrap(),
        [i64::MIN]
    );
    // A factor that a float of 64 bits does not hold.
    let large = Tensor::vector(&[(1_i64 << 53) + 1, 3]).reshaped(&[1, 2]).unwrap();
    let ones = Tensor::vector(&[1_i64, 1]).reshaped(&[2, 1]).unwrap();
    let product = Operator::MatMul { epilogue: pto_operators::Epilogue::None };
    assert_eq!(evaluate(&product, &[&large, &ones]).to_elements::<i64>().unwrap(), [(1 << 53) + 4]);
}

fn cast<T: Element>(to: DType, x: &[T]) -> Tensor {
    evaluate(&Operator::Cast { to }, &[&Tensor::vector(x)])
}

#[test]
fn casts_round_once_saturate_and_drop_bits() {
    same(
        &cast(DType::I8, &[300.0_f32, -300.0, 1.9, -1.9, NAN, INF]).to_doubles(),
        &[127.0, -128.0, 1.0, -1.0, 0.0, 127.0],
    );
    same(&cast(DType::U64, &[-1.0_f64, 1e30]).to_doubles(), &[0.0, u64::MAX as f64]);
    same(&cast(DType::I8, &[200_i32, -129]).to_doubles(), &[-56.0, 127.0]);
    same(&cast(DType::U8, &[-1_i64]).to_doubles(), &[255.0]);
    same(&cast(DType::Bool, &[0.0_f32, -0.5, NAN]).to_doubles(), &[0.0, 1.0, 1.0]);
    same(
        &cast(DType::F16, &[65519.0_f32, 65520.0, 1e-8]).to_doubles(),
        &[65504.0, f64::INFINITY, 0.0],
    );
    // Halfway between two halves, and a little above: in two steps the second one would be lost.
    let above = 1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-40);
    same(
        &cast(DType::F16, &[1.0 + 2.0_f64.powi(-11), above]).to_doubles(),
        &[1.0, 1.0 + 2.0_f64.powi(-10)],
    );
    let above = 1.0 + 2.0_f64.powi(-8) + 2.0_f64.powi(-40);
    same(
        &cast(DType::BF16, &[1.0 + 2.0_f64.powi(-8), above]).to_doubles(),
        &[1.0, 1.0 + 2.0_f64.powi(-7)],
    );
    same(&cast(DType::F32, &[u64::MAX]).to_doubles(), &[u64::MAX as f64]);
    assert_eq!(cast(DType::I64, &[u64::MAX]).to_elements::<i64>().unwrap(), [-1]);
}

#[test]
fn sums_of_halves_and_long_sums_are_added_in_double_precision() {
    let sum =
        |keep: bool| Operator::Reduce { reduction: Reduction::Sum, axes: None, keep_dims: keep };
    // 2048 + 1 is no half.
    same(&one(&sum(false), &[f16::from_f32(2048.0), f16::ONE, f16::ONE]), &[2050.0]);
    same(&one(&sum(false), &[bf16::from_f32(256.0), bf16::ONE, bf16::ONE]), &[258.0]);
    let mut long = vec![1.0_f32 / 16_777_216.0; 1 << 20];
    long[0] = 1.0;
    same(
        &one(&sum(true), &long),
        &[f64::from((1.0 + ((1 << 20) - 1) as f64 / 16_777_216.0) as f32)],
    );
}

#[test]
fn nothing_is_reduced_to_the_neutral_element() {
    let nothing = Tensor::from_elements::<f32>(&[2, 0], &[]).unwrap();
    let reduced = |reduction| {
        evaluate(
            &Operator::Reduce { reduction, axes: Some(vec![1]), keep_dims: false },
            &[&nothing],
        )
        .to_doubles()
    };
    same(&reduced(Reduction::Sum), &[0.0, 0.0]);
    same(&reduced(Reduction::Prod), &[1.0, 1.0]);
    same(&reduced(Reduction::Max), &[f64::NEG_INFINITY; 2]);
    same(&reduced(Reduction::Min), &[f64::INFINITY; 2]);
    same(&reduced(Reduction::Mean), &[f64::NAN; 2]);
    same(&reduced(Reduction::LogSumExp), &[f64::NEG_INFINITY; 2]);
    let product = Operator::MatMul { epilogue: pto_operators::Epilogue::None };
    let (a, b) = (
        Tensor::from_elements::<f32>(&[2, 0], &[]).unwrap(),
        Tensor::from_elements::<f32>(&[0, 3], &[]).unwrap(),
    );
    same(&evaluate(&product, &[&a, &b]).to_doubles(), &[0.0; 6]);
}

/// A fused list of steps has the bits of single operators, in halves too.
#[test]
fn fused_steps_have_the_bits_of_single_operators() {
    let x: Vec<f16> = (0..3000).map(|at| f16::from_f32(at as f32 / 400.0 - 3.0)).collect();
    let (x, scale) = (Tensor::vector(&x), Tensor::scalar(f16::from_f32(0.7)));
    let functions = [
        (Function::Binary(Binary::Mul), vec![Some(0), Some(1)]),
        (Function::Unary(Unary::Sigmoid), vec![Some(2)]),
        (Function::Binary(Binary::Add), vec![Some(3), Some(0)]),
        (Function::Cast(DType::I8), vec![Some(4)]),
        (Function::Binary(Binary::Mul), vec![Some(5), Some(5)]),
        (Function::Cast(DType::F32), vec![Some(6)]),
    ];
    let steps = functions
        .iter()
        .map(|(function, operands)| Step { function: function.clone(), operands: operands.clone() })
        .collect();
    let fused = evaluate(&Operator::Fused { steps }, &[&x, &scale]);
    let mut values = vec![x, scale];
    for (function, operands) in functions {
        let given: Vec<_> = operands.iter().map(|at| &values[at.unwrap()]).collect();
        let value = evaluate(&Operator::of_function(&function), &given);
        values.push(value);
    }
    assert_eq!(fused, *values.last().unwrap());
}

/// Known words of Philox 4x32-10: all zeros, from the authors' known answers.
#[test]
fn random_numbers_depend_on_seed_and_place_alone() {
    let uniform = |seed: u64, count: usize| {
        let operator = Operator::RandomUniform {
            dtype: DType::F64,
            shape: vec![count],
            low: 0.0,
            high: 1.0,
            seed,
        };
        operator.evaluate(&[]).unwrap().remove(0).to_doubles()
    };
    let words = [0x6627_e8d5_u64, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    let number = |high: u64, low: u64| ((high << 32 | low) >> 11) as f64 / (1_u64 << 53) as f64;
    assert_eq!(uniform(0, 2), [number(words[0], words[1]), number(words[2], words[3])]);
    assert_eq!(uniform(7, 5)[..3], uniform(7, 3)[..]);
    let many = uniform(1, 100_000);
    let mean = many.iter().sum::<f64>() / 1e5;
    assert!((mean - 0.5).abs() < 0.005 && many.iter().all(|x| (0.0..1.0).contains(x)), "{mean}");
    let normal = Operator::RandomNormal {
        dtype: DType::F32,
        shape: vec![100_000],
        mean: 3.0,
        deviation: 2.0,
        seed: 5,
    };
    let normal = normal.evaluate(&[]).unwrap().remove(0).to_doubles();
    let mean = normal.iter().sum::<f64>() / 1e5;
    let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e5;
    assert!((mean - 3.0).abs() < 0.05 && (variance - 4.0).abs() < 0.1, "{mean} {variance}");
}

/// Without its positions a largest element is found in another way.
#[test]
fn a_maximum_is_the_same_without_its_position() {
    let (mut found, mut seed) = (0, 16);
    while found < 60 && seed < 20_000 {
        seed += 20;
        let (operator, inputs) = crate::random::case(seed);
        if !matches!(operator, Operator::Pool { pooling: pto_operators::Pooling::Max { .. }, .. }) {
            continue;
        }
        found += 1;
        let given: Vec<_> = inputs.iter().map(Option::as_ref).collect();
        let all = operator.evaluate(&given).unwrap();
        let mut first = [Tensor::zeros(all[0].ty().clone())];
        let types: Vec<_> = inputs.iter().map(|input| input.as_ref().map(Tensor::ty)).collect();
        let units = operator.work(&types, &[all[0].ty().clone()]).unwrap().units;
        operator.evaluate_units(&given, &mut first, (0, units)).unwrap();
        assert_eq!(first[0], all[0], "seed {seed}: {operator:?}");
    }
    assert_eq!(found, 60, "cases with a maximum");
}

#[test]
fn a_shift_to_the_right_leaves_the_sign() {
    let shifted = two(Binary::ShiftRight, &[-8_i32, -8, 8, -8, 8], &[1, 32, 40, -1, -1]);
    same(&shifted, &[-4.0, -1.0, 0.0, -1.0, 0.0]);
    same(&two(Binary::ShiftRight, &[200_u8, 200], &[3, 8]), &[25.0, 0.0]);
}

//! What tasks cost on a core of the device: some that can be worked out by hand, and how parts relate to the whole.

use pto_abi::CoreKind;
use pto_operators::{
    Binary, DType, Epilogue, Operator, Padding, PreparedOperator, TensorType, Unary, Window,
};

use crate::random::case;

fn prepared(operator: Operator, inputs: &[&[usize]], output: &[usize]) -> PreparedOperator {
    let ty = |shape: &[usize]| TensorType::new(DType::F32, shape);
    let given = inputs.iter().map(|shape| Some(ty(shape))).collect();
    PreparedOperator::new(operator, given, vec![ty(output)]).unwrap()
}

fn ns(prepared: &PreparedOperator) -> u64 {
    prepared.cost((0, prepared.work().units)).ns()
}

fn product(m: usize, k: usize, n: usize) -> PreparedOperator {
    let operator = Operator::MatMul { epilogue: Epilogue::None };
    prepared(operator, &[&[m, k], &[k, n]], &[m, n])
}

#[test]
fn costs_by_hand() {
    // 65,536 elements: 512 KiB at 100.9 GB/s, 6 + 2 x 1,024 cycles of 0.541 ns, 256 KiB at 188.46 GB/s.
    let add = prepared(Operator::Binary(Binary::Add), &[&[65_536], &[65_536]], &[65_536]);
    assert_eq!(ns(&add), 5_196 + 1_111 + 1_391 + 1);
    // An addend of one element is not read 65,536 times.
    let add = prepared(Operator::Binary(Binary::Add), &[&[65_536], &[1]], &[65_536]);
    assert_eq!(ns(&add), 2_598 + 1_111 + 1_391 + 1);
    // 64 KiB of each side at 135 GB/s; at 441 and 220.5 GB/s to the unit; 6 + 2 x 8 x 16 x 8 cycles; 64 KiB at 70 GB/s.
    assert_eq!(ns(&product(128, 128, 128)), 2 * 485 + 149 + 297 + 1_111 + 936 + 2);
    // 256 columns go through the unit at once, and 128 rows: the left side of 512 columns goes there twice, the right side of 256 rows too.
    let (small, large) = (ns(&product(128, 128, 256)), ns(&product(256, 128, 512)));
    assert!((3 * small..=4 * small).contains(&large), "{small} {large}");
}

#[test]
fn the_kind_of_core_is_that_of_the_shorter_task() {
    assert_eq!(product(512, 1_024, 512).work().kind, CoreKind::AIC);
    assert_eq!(product(16, 64, 64).work().kind, CoreKind::AIC);
    let window =
        || Window { kernel: vec![], strides: vec![], dilations: vec![], padding: Padding::Valid };
    let conv = |groups: usize, weights: &[usize]| {
        let operator = Operator::Conv { window: window(), groups, epilogue: Epilogue::None };
        prepared(operator, &[&[1, 32, 40, 40], weights], &[1, 32, 38, 38])
    };
    assert_eq!(conv(1, &[32, 32, 3, 3]).work().kind, CoreKind::AIC);
    assert_eq!(conv(32, &[32, 1, 3, 3]).work().kind, CoreKind::AIV, "one channel at a time");
    let exp = prepared(Operator::Unary(Unary::Exp), &[&[64]], &[64]);
    assert_eq!(exp.work().kind, CoreKind::AIV);
}

/// Of every operator: a part takes at most as long as the whole, and two halves together at least as long.
#[test]
fn parts_cost_a_part() {
    let mut compared = 0;
    for seed in 0..240 {
        let (operator, inputs) = case(seed);
        let given: Vec<_> = inputs.iter().map(Option::as_ref).collect();
        let made = operator.evaluate(&given).unwrap();
        let types = inputs.iter().map(|input| input.as_ref().map(|input| input.ty().clone()));
        let made = made.iter().map(|made| made.ty().clone()).collect();
        // The shape of a few depends on constants.
        let Ok(prepared) = PreparedOperator::new(operator.clone(), types.collect(), made) else {
            continue;
        };
        let units = prepared.work().units;
        let (whole, half) = (ns(&prepared), units / 2);
        if half == 0 {
            continue;
        }
        let halves = [(0, half), (half, units - half)].map(|units| prepared.cost(units).ns());
        let told = || format!("seed {seed}: {operator:?}: {halves:?} of {whole}");
        assert!(whole > 0 && halves.iter().all(|half| *half <= whole), "{}", told());
        assert!(halves.iter().sum::<u64>() + 2 >= whole, "{}", told());
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}

/// Extents that fit no memory cost much, and overflow nothing.
#[test]
fn absurd_extents_have_a_cost() {
    let huge = 1 << 22;
    for prepared in [
        product(huge, 2, huge),
        product(2, huge, 2),
        prepared(Operator::Softmax { axis: 0 }, &[&[huge, huge]], &[huge, huge]),
    ] {
        assert!(ns(&prepared) > 100_000);
    }
}

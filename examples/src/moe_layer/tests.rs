//! Tests of `moe_layer`: the program on a simulated device, and what its reference admits.

use crate::host::rounding::Rounded;
use crate::host::{ElementVec, Inputs, Params, Tensor};
use crate::moe_layer::inputs::MoeShape;
use crate::moe_layer::job::{MoeLayer, PARAMS, chained};
use crate::moe_layer::reference::judge;
use crate::testing::{attempt, attempt_in, with_kernels_of};
use pto_abi::RuntimeVariant;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

const SMALL: &[(&str, &str)] = &[
    ("tokens", "9"),
    ("hidden", "24"),
    ("intermediate", "20"),
    ("experts", "12"),
    ("top_k", "2"),
    ("tile_n", "16"),
];

fn params(given: &[(&str, &str)]) -> Params {
    let mut params = Params::defaults(PARAMS);
    for (name, value) in SMALL.iter().chain(given) {
        params.set(name, value).unwrap();
    }
    params
}

/// Runs a layer, which must be right; how often each expert ran.
fn ran(given: &[(&str, &str)], inputs: &Inputs) -> Vec<i32> {
    let (report, mut prepared, _device) = attempt(&MoeLayer, &params(given), inputs).unwrap();
    assert_eq!(report.kernels, prepared.size().tasks, "{given:?}");
    let verdict = prepared.verify().unwrap();
    assert!(verdict.passed(), "{given:?}: {verdict:?}");
    let outputs = prepared.outputs().unwrap();
    let ran = match outputs.into_iter().find(|(name, _)| *name == "ran").unwrap().1.elements() {
        ElementVec::I32(ran) => ran.clone(),
        _ => unreachable!("a count is an integer"),
    };
    // All tasks of an expert but the one that lists its entries, and those that add its results.
    let params = params(given);
    let cut = |name| u64::div_ceil(params.get(name), params.get("tile_n"));
    let guarded = 1 + 3 * cut("intermediate") + cut("hidden");
    let silent = ran.iter().filter(|ran| **ran == 0).count() as u64;
    let parts_run: u64 = report.parts_run.iter().sum();
    assert_eq!(report.kernels - parts_run, silent * guarded, "{given:?}");
    ran
}

#[test]
fn layers_of_many_shapes() {
    let inputs = Inputs::default();
    for given in [
        &[][..],
        &[("tokens", "1"), ("top_k", "1"), ("seed", "2")],
        &[("tokens", "40"), ("experts", "3"), ("top_k", "3"), ("tile_n", "7")],
        &[("experts", "1"), ("top_k", "1"), ("tile_n", "500")],
        &[("experts", "41"), ("tile_n", "5")],
    ] {
        ran(given, &inputs);
    }
}

/// A chain for each of the four cube cores; fewer tiles in it where it would take long, or where the last chain would be short.
#[test]
fn chains_are_about_as_many_as_cores() {
    let four_tiles = [("intermediate", "64"), ("top_k", "1")];
    for (experts, ns, length) in [
        ("1", 1_000, 1),
        ("2", 1_000, 2),
        ("3", 1_000, 2),
        ("4", 1_000, 4),
        ("9", 0, 4),
        ("9", 5_000, 4),
        ("9", 7_000, 2),
        ("9", 13_000, 1),
        ("9", 50_000, 1),
    ] {
        let params = params(&[&four_tiles[..], &[("experts", experts)]].concat());
        let of = (with_kernels_of(ns), RuntimeVariant::TENSORMAP_AND_RINGBUFFER);
        let (_, mut prepared, device) =
            attempt_in(of, &MoeLayer, &params, &Inputs::default()).unwrap();
        let shape = MoeShape::new(&params).unwrap();
        assert_eq!(chained(&device, &shape).get(), length, "{experts} experts, {ns} ns");
        assert!(prepared.verify().unwrap().passed(), "{experts} experts, {ns} ns");
    }
}

/// All tokens choose the same two experts.
#[test]
fn an_expert_without_tokens_does_not_run() {
    let mut inputs = Inputs::default();
    let router = (0..24 * 12).map(|at| if [3, 7].contains(&(at % 12)) { 1.0 } else { 0.0 });
    inputs.insert("router", Tensor::f32(vec![24, 12], router.collect()));
    inputs
        .insert("x", Tensor::f32(vec![9, 24], (0..216_u8).map(|x| f32::from(x) / 99.0).collect()));
    let ran = ran(&[], &inputs);
    assert_eq!(ran.iter().sum::<i32>(), 2);
    assert_eq!((ran[3], ran[7]), (1, 1));
}

#[test]
fn choices_are_judged_by_the_logits() {
    let shape = MoeShape::new(&params(&[("tokens", "1"), ("experts", "4")])).unwrap();
    let of = |value: f64| Rounded { value, variance: 1e-14 };
    let is_right = |logits: [f64; 4], chosen: [i32; 2]| {
        judge(&shape, &[logits.map(of).to_vec()], &chosen).passed()
    };
    let apart = [1.0, 4.0, 3.0, 2.0];
    assert!(is_right(apart, [1, 2]));
    for wrong in [[2, 1], [1, 3], [1, 1], [-1, 2], [1, 4]] {
        assert!(!is_right(apart, wrong), "{wrong:?}");
    }
    let close = [1.0, 3.0, 3.0 + 1e-7, 2.0];
    assert!(is_right(close, [1, 2]) && is_right(close, [2, 1]) && !is_right(close, [1, 3]));
}

#[test]
fn a_token_has_different_experts() {
    let error = MoeShape::new(&params(&[("top_k", "13")])).unwrap_err().to_string();
    assert!(error.contains("top_k = 13 is more than experts = 12"), "{error}");
}

//! Tests of `decoder_layer`: the program on a simulated device, and what its reference sees.

use crate::decoder_layer::inputs::{DecoderShape, DecoderTensors};
use crate::decoder_layer::job::{DecoderLayer, PARAMS};
use crate::decoder_layer::reference::reference;
use crate::host::{Inputs, Params, Tensor};
use crate::paged_attention::inputs::Contexts;
use crate::testing::{attempt, run, run_with};
use std::string::ToString;
use std::vec;
use std::vec::Vec;

const SMALL: &[(&str, &str)] = &[
    ("batch", "3"),
    ("hidden", "40"),
    ("intermediate", "70"),
    ("heads", "4"),
    ("kv_heads", "2"),
    ("head_dim", "8"),
    ("block_size", "4"),
    ("max_context", "13"),
    ("tile_n", "16"),
    ("tile_k", "24"),
];

fn params(given: &[(&str, &str)]) -> Params {
    let mut params = Params::defaults(PARAMS);
    for (name, value) in SMALL.iter().chain(given) {
        params.set(name, value).unwrap();
    }
    params
}

#[test]
fn layers_of_many_shapes() {
    for given in [
        &[][..],
        &[("seed", "2"), ("tile_n", "1000"), ("tile_k", "1000")],
        &[("seed", "3"), ("tile_n", "3"), ("tile_k", "5"), ("batch", "1")],
        &[("kv_heads", "4"), ("max_context", "1")],
        &[("kv_heads", "1"), ("head_dim", "2"), ("block_size", "1")],
    ] {
        let (report, verdict) = run(&DecoderLayer, &params(given));
        let verdict = verdict.unwrap();
        assert!(verdict.passed(), "{given:?}: {verdict:?}");
        assert!(
            verdict.largest_error < verdict.tolerance && verdict.tolerance < 1e-4,
            "{verdict:?}"
        );
        let (_, prepared, _device) =
            attempt(&DecoderLayer, &params(given), &Inputs::default()).unwrap();
        assert_eq!(report.kernels, prepared.size().tasks, "{given:?}");
        // One task of three cores for each head of the cache.
        let parts: u64 = report.parts_run.iter().sum();
        assert_eq!(parts, report.kernels + 2 * params(given).get("kv_heads"), "{given:?}");
    }
}

/// Every part of the layer is seen in its result: a reference of other inputs is not met.
#[test]
fn each_input_counts() {
    let params = params(&[]);
    let shape = DecoderShape::new(&params).unwrap();
    let tensors = || {
        let inputs = Inputs::default();
        let contexts = Contexts::new(&shape.attention, &params, &inputs).unwrap();
        DecoderTensors::new(&shape, contexts, &params, &inputs).unwrap()
    };
    let right = reference(&shape, &tensors());
    let is_seen = |name: &str, change: &dyn Fn(&mut DecoderTensors)| {
        let mut changed = tensors();
        change(&mut changed);
        let mut pairs = right.iter().zip(reference(&shape, &changed));
        assert!(pairs.any(|(a, b)| (a.value - b.value).abs() > a.tolerance), "{name}");
    };
    is_seen("x", &|tensors| tensors.x[7] += 0.01);
    is_seen("norms", &|tensors| tensors.norms[3] *= 1.01);
    for weight in 0..5 {
        is_seen("a weight", &|tensors| tensors.weights[weight][11] += 0.01);
    }
    let longest = (0..3).max_by_key(|request| tensors().tokens(*request)).unwrap();
    let token_range = tensors().token_range(&shape.attention, longest, 0).start;
    is_seen("k", &|tensors| tensors.k[token_range] += 0.5);
    is_seen("v", &|tensors| tensors.v[token_range] += 0.01);
}

#[test]
fn inputs_of_ones_own() {
    let mut inputs = Inputs::default();
    inputs.insert("context_lens", Tensor::i32(vec![3], vec![13, 1, 5]));
    inputs.insert("x", Tensor::f32(vec![3, 40], (0..120_u8).map(f32::from).collect::<Vec<_>>()));
    let (_, verdict) = run_with(&DecoderLayer, &params(&[]), &inputs);
    assert!(verdict.unwrap().passed());
    let odd = DecoderShape::new(&params(&[("head_dim", "7")])).unwrap_err().to_string();
    assert!(odd.contains("head_dim = 7 is odd"), "{odd}");
}

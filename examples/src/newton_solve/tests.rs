//! Tests of `newton_solve`: the program on a simulated device.

use crate::host::{Example, Inputs, Params, Tensor};
use crate::newton_solve::job::{NewtonSolve, PARAMS};
use crate::newton_solve::stream::NOT_CONVERGED;
use crate::testing::{attempt, run, run_with};
use std::string::ToString;
use std::vec;
use std::vec::Vec;

fn params(given: &[(&str, &str)]) -> Params {
    let mut params = Params::defaults(PARAMS);
    for (name, value) in given {
        params.set(name, value).unwrap();
    }
    params
}

#[test]
fn the_iterations_are_those_of_the_reference() {
    for given in [
        &[("batch", "5"), ("n", "24"), ("tile", "8"), ("columns", "3"), ("wave", "2")][..],
        &[("batch", "3"), ("n", "19"), ("tile", "7"), ("columns", "1"), ("wave", "64")],
        &[("batch", "2"), ("n", "1"), ("tile", "4"), ("columns", "2"), ("digits", "5")],
    ] {
        let (_, verdict) = run(&NewtonSolve, &params(given));
        let verdict = verdict.unwrap();
        assert!(verdict.passed(), "{given:?}: {verdict:?}");
    }
}

/// Systems of which each takes another number of iterations, side by side.
#[test]
fn each_system_stops_by_itself() {
    let (n, scales) = (8, [1.0, 3.0, 10.0, 40.0_f32]);
    // diag(1, .., 1, scale): with the scale the number of iterations grows, about two for each doubling.
    let a: Vec<f32> = scales
        .iter()
        .flat_map(|scale| {
            (0..n * n).map(move |at| match (at / n, at % n) {
                (row, col) if row != col => 0.0,
                (row, _) if row == n - 1 => *scale,
                _ => 1.0,
            })
        })
        .collect();
    let mut inputs = Inputs::default();
    inputs.insert("a", Tensor::f32(vec![4, 8, 8], a));
    let given = params(&[("batch", "4"), ("n", "8"), ("tile", "4"), ("wave", "3")]);
    let (report, verdict) = run_with(&NewtonSolve, &given, &inputs);
    assert!(verdict.unwrap().passed());
    // Fewer tasks than if all were as slow as the slowest: more than 13 iterations of 13 tasks each.
    assert!(report.tasks < 4 * 13 * 13, "{}", report.tasks);
}

#[test]
fn a_matrix_without_inverse_is_given_up_with_a_code_that_says_so() {
    let mut inputs = Inputs::default();
    inputs.insert("a", Tensor::f32(vec![1, 2, 2], vec![1.0, 2.0, 2.0, 4.0]));
    let given = params(&[("batch", "1"), ("n", "2"), ("columns", "1"), ("limit", "20")]);
    let error = attempt(&NewtonSolve, &given, &inputs).err().unwrap().to_string();
    assert!(error.contains("The builder returned 1."), "{error}");
    assert!(NewtonSolve.failure(NOT_CONVERGED).unwrap().contains("no inverse"));
    assert!(NewtonSolve.failure(77).is_none());
}

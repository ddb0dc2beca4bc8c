//! Tests of `cholesky`: the program on a simulated device, and its reference.

use crate::args::Size;
use crate::cholesky::job::{Cholesky, PARAMS, chained, drawn};
use crate::cholesky::reference::{expected, factor, product};
use crate::cholesky::stream::tasks;
use crate::host::check::compare;
use crate::host::{Error, Inputs, Params, Tensor};
use crate::testing::{attempt_in, run, run_with};
use pto_host::Hosting;
use pto_host::virtual_time::{KernelCosts, VirtualOptions};
use std::string::ToString;
use std::vec;
use std::vec::Vec;

fn params(n: &str, tile: &str) -> Params {
    let mut params = Params::defaults(PARAMS);
    params.set("n", n).unwrap();
    params.set("tile", tile).unwrap();
    params
}

#[test]
fn sizes_that_tiles_divide_and_that_they_do_not() {
    for (n, tile) in [("1", "1"), ("1", "9"), ("32", "8"), ("37", "8"), ("50", "49"), ("9", "1")] {
        let (report, verdict) = run(&Cholesky, &params(n, tile));
        let (rows, size) = (n.parse::<u64>().unwrap(), tile.parse::<u64>().unwrap());
        assert_eq!(report.tasks, tasks(rows.div_ceil(size)), "{n} by {tile}");
        assert!(verdict.unwrap().passed(), "{n} by {tile}");
    }
}

/// Long products stand alone, so that no core waits beside a chain; the factor and the number of tasks are those of chains.
#[test]
fn chains_are_as_long_as_their_products_allow() {
    let of_columns = tasks(13);
    for (product_ns, length) in
        [(0, 16), (1_000, 16), (5_000, 5), (10_000, 2), (20_000, 1), (50_000, 1)]
    {
        let costs = KernelCosts::Constant(product_ns);
        let hosting = Hosting::Virtual(VirtualOptions { costs, ..VirtualOptions::default() });
        let (report, mut prepared, device) =
            attempt_in(hosting, &Cholesky, &params("100", "8"), &Inputs::default()).unwrap();
        assert_eq!(chained(&device, Size::new(8).unwrap()).get(), length, "{product_ns} ns");
        assert_eq!(report.tasks, of_columns, "{product_ns} ns");
        assert!(prepared.verify().unwrap().passed(), "{product_ns} ns");
    }
}

#[test]
fn what_is_not_definite_is_an_error_with_its_row() {
    for (row, tile) in [(0, "4"), (13, "4"), (22, "23")] {
        let mut a = drawn(Size::new(23).unwrap(), 5);
        a[row * 23 + row] = -1.0;
        let mut inputs = Inputs::default();
        inputs.insert("a", Tensor::f32(vec![23, 23], a));
        let (_, verdict) = run_with(&Cholesky, &params("23", tile), &inputs);
        let error = verdict.unwrap_err();
        assert!(
            matches!(error, Error::NotDefinite { row: found } if found == row as u64),
            "{error}"
        );
        assert!(error.to_string().contains("not positive definite"), "{error}");
    }
}

#[test]
fn the_reference_by_hand() {
    // [2 0 0; 1 3 0; -1 2 1].
    let a = [4.0, 2.0, -2.0, 2.0, 10.0, 5.0, -2.0, 5.0, 6.0];
    let l = factor(&a, 3).unwrap();
    assert_eq!(l, [2.0, 0.0, 0.0, 1.0, 3.0, 0.0, -1.0, 2.0, 1.0]);
    assert!(expected(&l, 3).iter().all(|element| element.tolerance < 1e-4));
    let found: Vec<f32> = l.iter().map(|element| nearest(*element)).collect();
    let back = product(&found, 3);
    assert!((0..9).filter(|at| at % 3 <= at / 3).all(|at| back[at].value == f64::from(a[at])));
    assert_eq!(factor(&[1.0, 2.0, 2.0, 1.0], 2), Err(1));
}

/// A tile that misses one of its updates is far outside of what roundings can do.
#[test]
fn a_lost_update_is_seen() {
    let n = 96;
    let a = drawn(Size::new(96).unwrap(), 1);
    let l = factor(&a, n).unwrap();
    let mut found: Vec<f32> = l.iter().map(|element| nearest(*element)).collect();
    let verdict = |found: &[f32]| compare("l", &[96, 96], found, &expected(&l, n));
    assert!(verdict(&found).passed());
    // Row 80 without the product of columns 0 to 15, in column 64.
    let lost: f64 = (0..16).map(|k| l[80 * n + k] * l[64 * n + k]).sum();
    found[80 * n + 64] += nearest(lost / l[64 * n + 64]);
    assert!(!verdict(&found).passed(), "lost {lost}");
}

#[expect(clippy::cast_possible_truncation, reason = "rounds to the nearest f32")]
fn nearest(value: f64) -> f32 {
    value as f32
}

//! The worker loop in C++ beside the one in Rust: both are given the same dispatches, and the same is seen of both: every status, every call with
//! its arguments, every line that they leave in GM.
//!
//! The cache of the core is modelled ([`model`], [`cache`]): a core sees old bytes until it makes a line fresh, loses what it does not write back, and writes
//! whole lines. The kernels in C++ are compared with those in Rust ([`kernels`]), on a model of the core's pipes ([`pipes`]). Every access of the loop is taken out once ([`mutants`]), and each time the comparison fails.

#![expect(
    clippy::cast_possible_truncation,
    reason = "addresses and small numbers of these tests fit"
)]

#[path = "../../../tools/cann-device/src/emulator/cache.rs"]
mod cache;
mod costs;
mod dialect;
mod kernels;
mod library;
mod model;
mod mutants;
mod pipes;
mod script;

use library::{Library, WORKER};
use script::{Seen, in_cpp, in_rust, scripts};

/// What one loop does, as lines of text.
fn assert_same(rust: &[Seen], cpp: &[Seen], script: &str) {
    let differs = rust.iter().zip(cpp).position(|(rust, cpp)| rust != cpp);
    let at = differs.unwrap_or(rust.len().min(cpp.len()));
    assert!(rust == cpp, "{script}, event {at}: Rust {:?}, C++ {:?}", rust.get(at), cpp.get(at));
}

#[test]
fn both_loops_do_the_same() {
    for is_cube in [true, false] {
        let library = Library::build(WORKER, is_cube).expect("the worker compiles");
        for script in scripts() {
            let (rust, cpp) = (in_rust(&script, is_cube), in_cpp(&script, is_cube, &library));
            assert!(rust.len() > 3, "{}: nothing happened", script.name);
            assert_same(&rust, &cpp.expect("the worker keeps the rules of its cache"), script.name);
        }
    }
}

#[test]
fn the_source_is_short() {
    let lines = WORKER.lines().count();
    assert!(lines <= 400, "the worker is to be read beside the one in Rust: it has {lines} lines");
}

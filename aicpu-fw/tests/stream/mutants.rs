//! A wrong derivation, and that the oracle finds it: the property tests can fail. Run alone, as `cargo xtask test` does
//! (`RUSTFLAGS='--cfg pto_mutants' cargo test -p pto-aicpu-fw --test stream mutants`): the choice is that of the process.

use std::panic::catch_unwind;

use pto_aicpu_fw::mutant::{Mutant, choose};

use crate::derivation::edges_are_those_of_the_oracle;

#[test]
fn readers_that_are_forgotten_are_missed() {
    choose(Mutant::None);
    edges_are_those_of_the_oracle();
    choose(Mutant::ForgetsReaders);
    let found = catch_unwind(edges_are_those_of_the_oracle);
    choose(Mutant::None);
    let panic = found.expect_err("a write overtakes a read");
    let said = panic.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(said.contains("seed 0, task"), "{said}");
}

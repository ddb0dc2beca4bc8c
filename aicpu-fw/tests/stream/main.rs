//! The streaming builder: regions, overlaps, derived edges against a brute-force oracle, rings near their wrap, waits.
#![cfg(not(any(loom, shuttle)))]

mod chains;
mod derivation;
mod elements;
#[cfg(pto_mutants)]
mod mutants;
mod oracle;
mod overlaps;
mod random;
mod ranges;
mod replay;
mod rig;
#[path = "../common/split_mix.rs"]
mod split_mix;
mod stuck;

//! The machine in virtual time: its clock and traces, injected faults, searches through all orders, and campaigns.

mod block_shapes;
mod explore;
mod faults;
mod gate;
mod graphs;
mod machine;
#[cfg(pto_mutants)]
mod mutants;
mod overhead;
mod soak;

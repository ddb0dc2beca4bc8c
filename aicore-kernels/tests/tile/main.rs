//! The tile machine against references: every instruction on every type, partial tiles, faults, and bytes that are no kernel.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the references convert numbers of known ranges"
)]

mod bytes;
mod cause_words;
mod elements;
mod faults;
mod functions;
mod layout;
mod math;
mod number;
mod pairs;
mod partial;
mod product;
mod reductions;
mod rig;

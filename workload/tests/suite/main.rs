//! Workloads: kernels and trees in texts and bytes, what is refused, and the counts of the `v9` clock.
#![expect(
    clippy::cast_possible_truncation,
    reason = "the references convert numbers of known ranges"
)]

mod axes;
mod docs;
mod expressions;
mod kernels;
mod pipelines;
mod plans;
mod programs;
mod random;
mod refused;
mod schedules;
mod sizes;
mod texts;
mod v9;

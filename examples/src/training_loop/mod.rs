//! A training loop of three programs that know nothing of each other: forward, backward, optimiser. The weights stay on the device, and the
//! tensors go from program to program without a copy; counters say so.
//!
//! ```text
//! Y = tanh(X W)        L[i] = mean((Y - T)^2),  G = X^T ((Y - T) (1 - Y^2))        W = W - rate G
//!   forward ---- Y ----> backward ------------------------ G --------------------> optimiser --- W ---> forward
//! ```
//! `texts.rs` has the programs, `training.rs` the loop, `reference.rs` the same in f64, `report.rs` what is checked.
//! The round is counted on the device as well: the backward program writes the loss of round `i` into element `i` of a tensor.

mod reference;
mod report;
mod sizes;
mod texts;
mod training;

#[cfg(test)]
mod tests;

pub use report::Report;
pub use sizes::TrainingSizes;
pub use training::{Layouts, Training};

/// What `pto run` calls it.
pub const NAME: &str = "training_loop";

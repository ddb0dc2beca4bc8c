//! What the whole-system tests share.

pub mod graphs;
pub mod sweep;
pub mod tidy;

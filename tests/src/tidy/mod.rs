//! The rules of STYLE.md that a machine can hold, as functions over text (`tests/tidy.rs` applies them).
//!
//! [`source`] reads the tree and tells code from comments, [`rules`] judges one file, [`arrows`] judges the
//! dependencies between crates, [`dependencies`] what comes from others, [`rooms`] where crates stand, [`circles`] the
//! dependencies between the files of one crate, [`python`] those between modules of Python, [`partners`] the partners of orderings,
//! [`features`] with which features a crate is compiled, [`links`], [`figures`] and [`decisions`] judge documentation.

pub mod arrows;
mod cfg;
pub mod circles;
pub mod decisions;
pub mod dependencies;
pub mod features;
pub mod figures;
pub mod links;
mod modules;
pub mod partners;
pub mod python;
pub mod recipes;
pub mod rooms;
pub mod rules;
pub mod source;

/// Something that a rule does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where: the file, and its line from 1 on; or a crate.
    pub location: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

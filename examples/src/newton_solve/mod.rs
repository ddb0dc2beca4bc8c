//! `newton_solve`: systems of linear equations, A x = b, by Newton's iteration for the inverse: a pipeline with a stage that
//! repeats until a value that it computes, and that the program reads, is small enough.

#[cfg(feature = "host")]
pub mod job;
#[cfg(feature = "host")]
pub mod reference;
pub mod stream;
#[cfg(all(test, feature = "host"))]
mod tests;

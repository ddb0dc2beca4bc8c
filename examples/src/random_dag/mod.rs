//! `random_dag`: a seeded graph whose checksums prove that every task ran once, after all its producers.

pub mod graph;
#[cfg(feature = "host")]
pub mod job;

//! Traces made by hand, with known answers: analysis, files, pictures.

mod analysis;
mod file;
mod hand;
mod pictures;

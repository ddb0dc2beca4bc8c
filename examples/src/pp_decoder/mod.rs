//! `pp_decoder`: the layers of a transformer as a pipeline. Each device has some layers, and works on one micro-batch of the requests while the
//! device after it works on the one before.

#[cfg(feature = "host")]
pub mod job;
pub mod stream;

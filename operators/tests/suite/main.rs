//! Operators: against a naive reference in `f64` with random shapes, types and attributes; errors; on the simulated device.

mod array;
mod cost;
mod device;
mod random;
mod reach;
mod reference;
mod refused;
mod schema;
mod special;

//! `dp_training`: steps of gradient descent on several devices. Each has a share of the samples; the devices add up their gradients, tile by
//! tile, while the gradient of the next tile is computed.

#[cfg(feature = "host")]
pub mod job;
pub mod stream;

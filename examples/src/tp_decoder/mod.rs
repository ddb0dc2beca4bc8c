//! `tp_decoder`: a decoding step of a layer of a transformer on several devices. Each has some heads and some columns of the MLP; the two
//! projections back to the tokens give sums that the devices add up, tile by tile, while the next tile is computed.

#[cfg(feature = "host")]
pub mod job;
#[cfg(feature = "host")]
mod shares;
pub mod stream;

//! `ep_moe`: a mixture of experts on several devices. Each has some tokens and some experts; tokens travel to their experts and back, as many as
//! the router on the device has chosen, which no host knows.

#[cfg(feature = "host")]
pub mod job;
pub mod stream;

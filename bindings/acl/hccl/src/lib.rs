//! `libhccl.so`: the collectives `Hccl*` of the CANN interface, on groups of devices.
//!
//! ```text
//! the program --HcclAllReduce--> api: arguments --launch in the stream--> libascendcl.so --in its turn--> comm: bytes of the rank
//!                                                                                                            | (in this process, or over TCP)
//!                            engine: a run of a Group <--all ranks are there, and agree-- meeting <----------'
//! ```
//! A call is an operator of the stream: streams order it, captures record it, and the validation layer sees the memory that it uses. The process that has made the
//! root information, or that has rank 0 of the rank table, holds a [`Group`](pto_host::group::Group) with a device for each rank; ranks meet there.

mod api;
mod call;
mod comm;
mod device;
mod engine;
mod failure;
mod meeting;
mod rank_table;
mod wire;

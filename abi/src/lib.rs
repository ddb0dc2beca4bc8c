//! The only definition of the bytes that host, AICPU and AICore share.
//!
//! ```text
//! Runtime (fixed size, at the start of the runtime arena in GM)
//!   header, config, regions, orch_args, kernel_addrs, worker table   plain data, host -> firmware
//!   progress, fault, epitaph, handshake lines                        live words, both ways
//! regions, sized at launch
//!   tasks, payloads, edges, ready queues, log rings, graph image, trace rings,
//!   what the streaming builder keeps
//! ```
//!
//! Where to look: [`runtime`] the arena's first block, [`task`] the hot line of a task, [`handshake`]
//! how work reaches a core, [`arena`] how capacities become regions, [`launch`] what a host writes for a run, [`bootstrap`] how an image
//! reaches an Ascend device, [`image`] the
//! graph a host builds, [`session`] rings of commands, [`stream`] what the streaming builder keeps, [`foreign`] what programs in C hand to it, [`fault`]
//! the table of faults, [`layout`] the compile-time checks and the layout hash, [`sync`] the only module that names the
//! atomics.
//!
//! The interface that programs are written against is in `pto_graph`. Nothing here knows a platform; nothing here allocates; it
//! depends on no other crate of ours.
#![no_std]

pub mod arena;
pub mod block;
pub mod bootstrap;
pub mod chain;
pub mod closed_set;

pub mod fault;
pub mod foreign;
mod fw_bytes;
pub mod fw_image;
pub mod gm;
mod graph_header;
pub mod handshake;
pub mod ids;
pub mod image;
pub mod kinds;
#[cfg(not(any(loom, shuttle)))]
pub mod launch;
pub mod launch_args;
pub mod launch_words;
pub mod layout;
pub mod limits;
#[cfg(not(any(loom, shuttle)))]
mod live;
pub mod log_ring;
pub mod numbers;
pub mod ready;
pub mod runtime;
pub mod session;
mod shared_struct;
pub mod stream;
pub mod symbol;
pub mod sync;
pub mod task;
pub mod trace;
pub mod wait;

pub use fault::Fault;
pub use gm::GmWindow;
pub use ids::{FuncId, GmAddr, TaskId};
pub use kinds::{BuildMode, CoreKind, FanoutStrategy, RuntimeVariant};

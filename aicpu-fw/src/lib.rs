//! The AICPU firmware: ready queues, fanout append, termination, faults. Policy only.
//!
//! ```text
//!            Arena (alleged)                     Platform (cores, clock, doorbells)
//!                 | Launch::accept                    |
//!                 v                                   v
//! Instance::step: Greet -> AwaitCores -> [Build|Load] -> Schedule -> StopCores -> Returned
//!                                           |               |
//!                              Builder (add, edge, publish)  Scheduler::step (collect, release, dispatch)
//!                                           \_____ SharedState: tasks, queues, progress ______/
//! ```
//!
//! Everything is a bounded step; the one unbounded loop is [`run`]. Nothing here knows a platform, nothing
//! is `unsafe`, nothing allocates. [`Platform`] holds barriers and cache maintenance; policy sees neither.
#![no_std]
#![forbid(unsafe_code)]

pub mod blame;
pub mod block_shapes;
pub mod builder;
mod config;
mod cores;
pub mod divide;
pub mod fanout;
mod hosted;
pub mod lines;
pub mod machine;
#[cfg(pto_mutants)]
pub mod mutant;
#[cfg(not(pto_mutants))]
mod mutant;
pub mod pace;
pub mod platform;
pub mod ready_queue;
pub mod scheduler;
pub mod stall;
pub mod state;
pub mod stream;
pub mod trace;
pub mod transfers;
mod watchdog;
mod wire_level;

// These read the arena, whose words are not those of a model checker.
#[cfg(not(any(loom, shuttle)))]
pub mod instance;
#[cfg(not(any(loom, shuttle)))]
pub mod launch;
#[cfg(not(any(loom, shuttle)))]
mod loader;
#[cfg(not(any(loom, shuttle)))]
mod resident;

pub use builder::{Builder, DeviceMemory};
pub use config::Config;
pub use fanout::{FanoutPolicy, LockFree, Locked};
#[cfg(not(any(loom, shuttle)))]
pub use instance::{BuildResult, Instance, Program, Progressed, run};
#[cfg(not(any(loom, shuttle)))]
pub use launch::Launch;
pub use lines::LinesPlatform;
pub use machine::{Machine, RangeNote, Terms};
pub use platform::{CoreStatus, Platform};
pub use scheduler::{Scheduler, Step};
pub use state::SharedState;
#[cfg(not(any(loom, shuttle)))]
pub use trace::TraceWriter;
pub use trace::{NoTrace, Tracer};
pub use watchdog::Budgets;
pub use wire_level::wire_level;

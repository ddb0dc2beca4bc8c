//! The host side of the PTO Runtime: a library that owns devices, their memory, kernels, graphs and runs.
//!
//! ```text
//! Device --- Memory (GM + Allocator) <--- DeviceBuffer        memory.rs, gm.rs, allocator.rs, runs.rs, buffer.rs
//!   |------ KernelTable: func id -> kernel                    kernels.rs
//!   |------ RuntimeArena: the bytes that the firmware reads   arena.rs, launch.rs
//!   |------ dyn Backend: the simulator, `qemu`, or `a2a3`     backend/, qemu/, a2a3/
//!   run(Work, RunOptions) -> RunReport | FaultReport          options.rs, report.rs, fault_report.rs, control.rs
//!   session(SessionOptions) -> Session: streams, events, copies    session
//!     stitch::Stitcher: programs that pass tensors on without copies    stitch/
//! group::Group: devices with ranks, transfers, collectives     group/
//! fw::Image --flash--> fw::Store --load--> Device::open_qemu  fw/
//! HostGraph --finish--> GraphImage --> Work::HostGraph        graph.rs, cycle.rs, image.rs
//! ```
//!
//! A graph on the simulator, from memory to result:
//!
#![cfg_attr(feature = "sim", doc = "```")]
#![cfg_attr(not(feature = "sim"), doc = "```ignore")]
//! use pto_host::abi::CoreKind;
//! use pto_host::graph::{GraphBuilder, TaskSpec, NoBuilders};
//! use pto_host::{Device, DeviceOptions, HostGraph, RunOptions, Work, func};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut device = Device::open_sim(DeviceOptions::default(), NoBuilders)?;
//! device.register_library()?;
//! let (a, b) = (device.upload(&[2.0_f32; 64])?, device.upload(&[3.0_f32; 64])?);
//! let sum = device.zeroed::<f32>(64)?;
//!
//! let mut graph = HostGraph::new(&device, &[]);
//! let args = [a.address().0, b.address().0, sum.address().0, 64];
//! graph.submit(TaskSpec::new(func::ADD, CoreKind::AIV, &args), &[])?;
//! let image = graph.finish()?;
//!
//! let report = device.run(Work::HostGraph(&image), &RunOptions::default())?;
//! assert_eq!(sum.read()?, [5.0; 64]);
//! println!("{} tasks in {:?}", report.tasks, report.makespan);
//! # Ok(())
//! # }
//! ```
#![cfg_attr(
    not(any(feature = "sim", test)),
    expect(
        dead_code,
        reason = "memory of this process is the simulator's; without a backend no device is opened"
    )
)]

#[cfg(feature = "a2a3")]
pub mod a2a3;
mod address_state;
mod allocator;
mod arena;
mod backend;
mod buffer;
#[cfg_attr(
    not(feature = "sim"),
    expect(dead_code, reason = "programs of this process are the simulator's")
)]
mod builder_calls;
mod call_check;
mod control;
mod copy_costs;
mod cycle;
mod debug_as_display;
mod device;
mod device_memory;
mod error;
mod fault_report;
pub mod fw;
mod gm;
#[cfg(feature = "sim")]
pub mod group;
mod host_graph;
mod image;
mod kernel;
mod kernel_kinds;
mod kernels;
mod launch;
mod list_builder;
mod lists;
mod logs;
mod memory;
mod of_process;
mod options;
mod progress;
#[cfg(feature = "qemu")]
pub mod qemu;
mod report;
mod runs;
pub mod session;
mod shared_object;
#[cfg(feature = "sim")]
mod soak_timeline;
pub mod stitch;
mod stream_report;
pub mod timeline;
mod trace;
mod trace_options;
mod traffic;
pub mod whole_file;
pub mod workload;

pub use address_state::AddressState;
#[cfg(feature = "a2a3")]
pub use backend::A2a3Options;
pub use backend::StartTimes;
#[cfg(feature = "qemu")]
pub use backend::{Placement, QemuDeviceOptions};
pub use buffer::DeviceBuffer;
pub use builder_calls::CallRefusal;
pub use control::RunControl;
pub use cycle::Cycle;
pub use device::{Device, DeviceDescription};
pub use device_memory::DeviceMemory;
pub use error::Error;
pub use fault_report::FaultReport;
pub use host_graph::HostGraph;
pub use image::GraphImage;
pub use kernel::Kernel;
pub use kernels::KernelDescription;
pub use list_builder::{ListBuilder, RunList};
pub use logs::LogMessage;
pub use of_process::{OfProcess, OtherProcess};
pub use options::{BUILD_MODE_VARIABLE, DeviceOptions, KernelTimes, RunOptions, Work};
pub use progress::RunProgress;
pub use report::RunReport;
pub use session::{Event, Session, SessionError, SessionOptions, Stream, StreamOptions};
pub use shared_object::{check_shared_object, checked_shared_object};
#[cfg(feature = "sim")]
pub use soak_timeline::soak_timeline;
pub use stream_report::{RingUse, StreamReport};
pub use trace_options::TraceOptions;
pub use traffic::Traffic;

/// The bytes that host and firmware share: layouts, limits, faults.
pub use pto_abi as abi;
pub use pto_abi::arena::Capacities;
pub use pto_abi::stream::StreamCapacities;
pub use pto_abi::trace::WhenFull;
/// The library kernels and their func ids, as [`Device::register_library`] registers them.
pub use pto_aicore_kernels::{KernelFn, LIBRARY, LibraryKernel, func};
/// What programs are written against: `GraphBuilder`, `StreamBuilder`, tasks and tensors.
pub use pto_graph as graph;
/// Kernels that go on after their call returns, in virtual time.
#[cfg(feature = "sim")]
pub use pto_sim_shim::async_kernels;
/// Virtual time: profiles, costs, injected faults, reports, campaigns.
#[cfg(feature = "sim")]
pub use pto_sim_shim::virtual_time;
#[cfg(feature = "sim")]
pub use pto_sim_shim::{
    Hosting, MAX_OS_THREADS, UnknownHosting, default_campaign_threads, default_pool_threads,
    logging as sim_logging,
};
/// Programs as loops over tiles: the tree, tile kernels, plans.
pub use pto_workload as workloads;

// Images and arenas are little-endian, and addresses have 64 bits.
const _: () = assert!(cfg!(target_endian = "little") && usize::BITS == 64);

//! What can go wrong on the host: what, where, and what to do.

use std::io;
use std::time::Duration;

use pto_abi::arena::CapacityError;
use pto_abi::limits::{MAX_FUNC_ID, MAX_ORCH_ARGS, MAX_WORKERS};
use pto_abi::{Fault, FuncId, GmAddr};
use pto_aicore_kernels::LIBRARY;

use crate::address_state::AddressState;
use crate::cycle::Cycle;
use crate::debug_as_display::debug_as_display;
use crate::fault_report::FaultReport;

/// An error of the host library.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device's memory cannot be mapped.
    #[error(
        "{bytes} bytes of GM cannot be mapped ({source}): open the device with another gm_bytes"
    )]
    MapGm {
        /// Size asked for.
        bytes: u64,
        /// What the operating system says.
        source: io::Error,
    },

    /// A buffer of the host that the process has no memory for.
    #[error(
        "this process cannot have a host buffer of {bytes} bytes: its memory is limited; ask for fewer bytes"
    )]
    HostMemory {
        /// Size asked for.
        bytes: usize,
    },

    /// A device with no cores, or with more than the worker table holds.
    #[error(
        "a device cannot have {aic} AIC and {aiv} AIV: together they must be 1 to {MAX_WORKERS} cores"
    )]
    Workers {
        /// Cube cores asked for.
        aic: u32,
        /// Vector cores asked for.
        aiv: u32,
    },

    /// A pool was asked for more OS threads than it can have.
    #[cfg(feature = "sim")]
    #[error(
        "a pool cannot have {os_threads} OS threads: use 1 to {}",
        pto_sim_shim::MAX_OS_THREADS
    )]
    PoolThreads {
        /// OS threads asked for.
        os_threads: usize,
    },

    /// A fault is to be injected into a core that the device does not have.
    #[cfg(feature = "sim")]
    #[error(
        "the fault {injection} names core {}, and the device has {cores} cores: name one from 0 to {}",
        injection.worker, cores - 1
    )]
    InjectionCore {
        /// What was to go wrong.
        injection: pto_sim_shim::virtual_time::Injection,
        /// Cores of the device.
        cores: u32,
    },

    /// A device that cannot be a member of a group.
    #[error(
        "the device {device} has no transfer engine: open the group's devices on the simulator"
    )]
    NoTransfers {
        /// The device's name.
        device: String,
    },

    /// An allocation of nothing.
    #[error("an allocation cannot have zero bytes: ask for at least one")]
    ZeroSize,

    /// A size in bytes that 64 bits do not hold.
    #[error(
        "{count} elements of {element_bytes} bytes take more bytes than 64 bits can count: check the shape"
    )]
    SizeOverflow {
        /// Elements.
        count: u64,
        /// Size of one.
        element_bytes: u64,
    },

    /// No free block is large enough.
    #[error(
        "GM is full: {asked} bytes were asked for, {free} bytes are free, at most {largest} of them in one piece{}; \
         free buffers, or open the device with more memory (gm_bytes; `pto run --memory`)",
        waiting_clause(*.waiting)
    )]
    OutOfMemory {
        /// Size asked for.
        asked: u64,
        /// Bytes free.
        free: u64,
        /// Bytes that were freed while a run used them, or that a run which did not come back may still write.
        waiting: u64,
        /// Size of the largest free block.
        largest: u64,
    },

    /// An address is freed again.
    #[error("{address} is freed twice: free each allocation once")]
    DoubleFree {
        /// The address.
        address: GmAddr,
    },

    /// An address is freed that no allocation starts at.
    #[error("{address} is not the start of an allocation; it is {state}: free what alloc returned")]
    ForeignPointer {
        /// The address.
        address: GmAddr,
        /// What the address is.
        state: AddressState,
    },

    /// A copy that does not lie in one live allocation.
    #[error(
        "a copy of {bytes} bytes at {address}, which is {state}, leaves its allocation: check the range"
    )]
    CopyOutOfRange {
        /// First address of the device's side.
        address: GmAddr,
        /// Size of the copy.
        bytes: u64,
        /// What the address is.
        state: AddressState,
    },

    /// A kernel name that the library does not have.
    #[error("there is no library kernel \"{name}\": use one of {}", library_names())]
    UnknownKernel {
        /// The name.
        name: String,
    },

    /// A kernel whose code cannot run on this device.
    #[error(
        "kernel {name} is a function of this process, and cannot run on {device}: use a kernel of the library, or \
         flash a blob that has it (`pto fw build --kernels FILE.c`, docs/how-to/firmware.md)"
    )]
    KernelNotForDevice {
        /// The kernel.
        name: String,
        /// The device.
        device: &'static str,
    },

    /// A kernel that the flashed kernels do not have.
    #[error(
        "the kernels flashed to {device} do not have {name}: build and flash those of this release with \
         `pto fw build` and `pto fw flash`, or a blob of your own with `kernel_blob! {{ library; .. }}`"
    )]
    KernelNotFlashed {
        /// The kernel.
        name: String,
        /// The device.
        device: &'static str,
    },

    /// The firmware does not record runs.
    #[error(
        "the firmware of {device} does not record runs: build one that does with `pto fw build --tracing`, and \
         flash it with `pto fw flash`"
    )]
    TracesNothing {
        /// The device.
        device: String,
    },

    /// The thread that reads trace rings while the run lasts cannot be had.
    #[error(
        "no thread could be started to read the trace rings ({source}): end other threads of this process, or record with \
         WhenFull::DropOldest or KeepOldest"
    )]
    TraceReader {
        /// What the operating system says.
        source: io::Error,
    },

    /// The thread that reports the progress of the run cannot be started.
    #[error(
        "no thread could be started to watch the run ({source}): end other threads of this process, or run unwatched"
    )]
    Watcher {
        /// What the operating system says.
        source: io::Error,
    },

    /// No image is flashed to this device.
    #[error("{device} has no flashed kernels: its kernels are functions of this process")]
    NothingFlashed {
        /// The device.
        device: String,
    },

    /// An image that a device cannot have.
    #[error(transparent)]
    Image(#[from] crate::fw::ImageError),

    /// More cores than an emulated machine has, or none of a sort.
    #[error(
        "qemu cannot have {aicpu} AICPU, {aic} AIC and {aiv} AIV: each of them is a vCPU, and the machine has at most {}; \
         give at least one AICPU and one core",
        pto_abi::fw_image::qemu::MAX_VCPUS
    )]
    QemuCores {
        /// AICPU instances asked for.
        aicpu: u32,
        /// Cube cores asked for.
        aic: u32,
        /// Vector cores asked for.
        aiv: u32,
    },

    /// The options ask for more memory than an emulated machine has.
    #[error(
        "qemu cannot have {bytes} bytes of GM: ask for at most {most} (8 GiB less 36 MiB)",
        most = crate::qemu::memory::MAX_GM_BYTES
    )]
    QemuGm {
        /// Size asked for.
        bytes: u64,
    },

    /// The emulated machine cannot be started.
    #[cfg(feature = "qemu")]
    #[error(transparent)]
    Qemu(#[from] crate::qemu::QemuError),

    /// The device `a2a3` cannot be used.
    #[cfg(feature = "a2a3")]
    #[error(transparent)]
    A2a3(#[from] crate::a2a3::A2a3Error),

    /// Every func id has a kernel.
    #[error(
        "kernel {name} finds no func id: all {MAX_FUNC_ID} have kernels; unregister those that nothing runs any more"
    )]
    NoFuncId {
        /// The kernel.
        name: String,
    },

    /// A func id above the limit.
    #[error("func id {func_id} is above the limit: use 0 to {}", MAX_FUNC_ID - 1)]
    FuncIdLimit {
        /// The func id.
        func_id: FuncId,
    },

    /// A func id that has a kernel already.
    #[error(
        "func id {func_id} is taken by kernel {registered}, and {refused} cannot have it: \
         use another one, or unregister it first"
    )]
    DuplicateFuncId {
        /// The func id.
        func_id: FuncId,
        /// The kernel that has it.
        registered: String,
        /// The kernel that was refused.
        refused: String,
    },

    /// A func id without a kernel.
    #[error(
        "func id {func_id} has no kernel to unregister: see Device::describe for those that have"
    )]
    FuncIdNotRegistered {
        /// The func id.
        func_id: FuncId,
    },

    /// A builder program failed while it built a graph on the host.
    #[error("the graph was not built: {fault} The cause: {what}.")]
    Build {
        /// Why.
        fault: Fault,
        /// Which task, edge or word.
        what: String,
    },

    /// A task or a launch calls a kernel with what the kernel does not take. It was not run.
    #[error("{what}")]
    Call {
        /// The task, the kernel, the argument, and what to give.
        what: String,
    },

    /// A graph with a task that cannot start.
    #[error(
        "{count} tasks are not published, and the first of them is task {first}: publish every task"
    )]
    NotPublished {
        /// The first of them.
        first: usize,
        /// How many.
        count: usize,
    },

    /// A graph with tasks that wait for each other.
    #[error("the graph has a cycle: {cycle}; remove one of its edges")]
    Cycle {
        /// The tasks.
        cycle: Cycle,
    },

    /// The program gets more orchestration words than a run can carry.
    #[error(
        "the program gets {given} orchestration words, and the limit is {MAX_ORCH_ARGS}: \
         put tables into GM and pass their address"
    )]
    OrchArgs {
        /// How many were given.
        given: usize,
    },

    /// A budget that is zero or beyond 64 bits of nanoseconds.
    #[error("{name} is {budget:?}: give more than zero and less than 584 years")]
    Budget {
        /// The option.
        name: &'static str,
        /// The budget's value.
        budget: Duration,
    },

    /// A capacity above its limit.
    #[error("{0}: run a smaller graph, or lower the capacity")]
    Capacity(#[from] CapacityError),

    /// The arena of a run does not fit GM.
    #[error("the run's tasks, edges and arguments need {bytes} bytes of GM: {cause}")]
    ArenaMemory {
        /// Size of the arena.
        bytes: u64,
        /// Why it could not be had.
        cause: Box<Error>,
    },

    /// An image that its region does not hold.
    #[error(
        "the arena has no room for the graph image of {bytes} bytes: this is an error of the runtime; report it"
    )]
    ImageRegion {
        /// Size of the image.
        bytes: u64,
    },

    /// A value of the environment variable that is not a build mode.
    #[error("{variable} is \"{value}\": use 0 (sequential) or 1 (concurrent)")]
    BuildModeVariable {
        /// The variable's name.
        variable: &'static str,
        /// The value.
        value: String,
    },

    /// The host panicked while the device ran. The device can be used again.
    #[error(
        "the host panicked while the device ran: {message}; this is an error of the runtime, or of code that it was given; report it"
    )]
    Panicked {
        /// What the panic said.
        message: String,
    },

    /// The run ended with a fault. The device can be used again.
    #[error("{report}")]
    Fault {
        /// The first fault.
        fault: Fault,
        /// The post-mortem of the fault.
        report: Box<FaultReport>,
    },
}

debug_as_display!(Error);

impl Error {
    /// The fault of the interface's table that this is, where it is one.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Self::Fault { fault, .. } | Self::Build { fault, .. } => Some(*fault),
            Self::NotPublished { .. } => Some(Fault::BUILD_NOT_PUBLISHED),
            Self::Cycle { .. } => Some(Fault::GRAPH_CYCLE),
            Self::OrchArgs { .. } => Some(Fault::RUNTIME_ORCH_ARGC),
            Self::Budget { .. } => Some(Fault::RUNTIME_BUDGETS),
            _ => None,
        }
    }
}

fn waiting_clause(waiting: u64) -> String {
    if waiting == 0 {
        return String::new();
    }
    format!(", and {waiting} more become free when the present run ends")
}

fn library_names() -> String {
    let names: Vec<_> = LIBRARY.iter().map(|kernel| kernel.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::Error;
    use crate::session::SessionError;
    use std::sync::Arc;

    #[test]
    fn what_main_returns_is_shown_in_sentences() {
        assert_eq!(format!("{:?}", Error::ZeroSize), Error::ZeroSize.to_string());
        let error = SessionError::Device(Arc::new(Error::ZeroSize));
        assert_eq!(
            format!("{error:?}"),
            "an allocation cannot have zero bytes: ask for at least one"
        );
    }
}

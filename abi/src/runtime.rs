//! `Runtime`: the fixed-size block at the start of the runtime arena.
//!
//! The first part is plain data that the host writes before the launch; the firmware reads it once, checks
//! it and then trusts its own copy. The second part are live words: progress, the first fault, the epitaph,
//! and the handshake lines of the workers.

use bytemuck::{Pod, Zeroable};

use crate::fault::Fault;
use crate::handshake::Handshake;
use crate::ids::{GmAddr, TaskId};
use crate::kinds::CoreKind;
use crate::limits::{MAX_AICPU_INSTANCES, MAX_FUNC_ID, MAX_ORCH_ARGS, MAX_WORKERS};
use crate::shared_struct::shared_struct;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// `Runtime::header.magic`: "PTORUNT1", little-endian.
pub const RUNTIME_MAGIC: u64 = u64::from_le_bytes(*b"PTORUNT1");
/// Host and firmware must agree on it.
pub const ABI_MAJOR: u16 = 1;
/// The firmware takes this one and lower ones.
pub const ABI_MINOR: u16 = 8;

/// Index into the directory of regions.
pub mod region {
    /// Lines of tasks.
    pub const TASKS: usize = 0;
    /// Argument words.
    pub const PAYLOADS: usize = 1;
    /// Chunks of consumers.
    pub const EDGES: usize = 2;
    /// Ready queues.
    pub const READY: usize = 3;
    /// Log rings.
    pub const LOGS: usize = 4;
    /// The graph image of `host_build_graph`.
    pub const GRAPH: usize = 5;
    /// Trace rings, of a run that is traced.
    pub const TRACE: usize = 6;
    /// What the streaming builder keeps, and its heap.
    pub const STREAM: usize = 7;
    /// Entries of the directory.
    pub const COUNT: usize = 8;
    /// Their names.
    pub const NAMES: [&str; COUNT] =
        ["tasks", "payloads", "edges", "ready", "logs", "graph", "trace", "stream"];
}

shared_struct! {
    /// Identity of the arena.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct RuntimeHeader [size = 64, align = 8] {
        /// [`RUNTIME_MAGIC`].
        0 => magic: u64,
        /// [`ABI_MAJOR`].
        8 => abi_major: u16,
        /// [`ABI_MINOR`].
        10 => abi_minor: u16,
        /// Size of `Runtime`.
        12 => header_bytes: u32,
        /// `layout::LAYOUT_HASH`.
        16 => layout_hash: u64,
        /// Size of the arena, regions included.
        24 => total_bytes: u64,
        /// Address of the arena in GM.
        32 => arena_address: GmAddr,
        /// First address of GM.
        40 => gm_address: GmAddr,
        /// Size of GM.
        48 => gm_bytes: u64,
        /// Generation of this run's task ids; never zero.
        56 => run_epoch: u32,
        /// Which bring-up the cores are to answer; never zero.
        60 => bring_up_epoch: u32,
    }
}

shared_struct! {
    /// Configuration of one run.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct RunConfig [size = 64, align = 8] {
        /// A `RuntimeVariant`.
        0 => variant: u32,
        /// A `BuildMode`.
        4 => build_mode: u32,
        /// A `FanoutStrategy`.
        8 => fanout: u32,
        /// `RunFlags`.
        12 => flags: u32,
        /// AICPU instances.
        16 => aicpu_instances: u32,
        /// Valid entries of the worker table.
        20 => worker_count: u32,
        /// Symbol of the builder's name; zero: none.
        24 => builder: u64,
        /// How long one task may run on a core.
        32 => task_budget_ns: u64,
        /// How long a run may go without progress while no core is busy.
        40 => stall_budget_ns: u64,
        /// How long a core may take to answer the greeting.
        48 => bring_up_budget_ns: u64,
        /// How long the whole run may take; zero: no limit.
        56 => run_budget_ns: u64,
    }
}

shared_struct! {
    /// A part of the arena.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct Region [size = 16, align = 8] {
        /// Bytes from the start of the arena.
        0 => offset: u64,
        /// Size in bytes.
        8 => bytes: u64,
    }
}

shared_struct! {
    /// What the host passes to a builder: `LaunchArgs` in memory.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct OrchArgs [size = 64 + 8 * MAX_ORCH_ARGS, align = 8] {
        /// How many words the program has.
        0 => orch_argc: u32,
        /// How many words behind them describe the group of the run; 0: it has none.
        4 => group_argc: u32,
        /// Not used; zero.
        8 => reserved: [u32; 14],
        /// The words.
        64 => orch_args: [u64; MAX_ORCH_ARGS],
    }
}

shared_struct! {
    /// One worker of the device.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct WorkerEntry [size = 8, align = 4] {
        /// A `CoreKind`.
        0 => kind: u32,
        /// Workers with the same number share a cluster (at most 1 AIC and 2 AIV).
        4 => cluster: u32,
    }
}

shared_struct! {
    /// What termination is decided from, each word in a line of its own; and which graph the arena holds.
    #[derive(Default)]
    pub struct Progress [size = 128, align = 64] {
        /// 1 after the last publish.
        0 => build_done: AtomicU32,
        /// Tasks of the graph that the loader has put into the arena.
        4 => loaded_tasks: AtomicU32,
        /// Edges of it.
        8 => loaded_edges: AtomicU64,
        /// `GraphHeader.checksum` of its image.
        16 => loaded_checksum: AtomicU64,
        /// The run epoch in which it was started last; zero: it is not complete.
        24 => loaded_run: AtomicU32,
        /// Not used; zero.
        28 => build_reserved: [AtomicU32; 9],
        /// Tasks published (or about to be) whose consumers have not all been released.
        64 => outstanding: AtomicU64,
        /// Not used; zero.
        72 => outstanding_reserved: [AtomicU64; 7],
    }
}

shared_struct! {
    /// What one AICPU instance says of itself; written by it alone.
    #[derive(Default)]
    pub struct InstanceLine [size = 64, align = 64] {
        /// 0 not started, 1 running, 2 returned.
        0 => phase: AtomicU32,
        /// Cores with a dispatch that has not been collected.
        4 => busy_cores: AtomicU32,
        /// Tasks added.
        8 => added: AtomicU64,
        /// Tasks published.
        16 => published: AtomicU64,
        /// Tasks completed.
        24 => completed: AtomicU64,
        /// Edges added.
        32 => edges: AtomicU64,
        /// Edges whose producer had completed.
        40 => edges_satisfied: AtomicU64,
        /// Cores without a dispatch, by kind; only where cores may have two dispatches.
        48 => free_cores: [AtomicU32; CoreKind::COUNT],
        /// Kernels of published chains, without the first of each.
        56 => chained: AtomicU64,
    }
}

shared_struct! {
    /// The first fault of a run, and whether its epitaph is written.
    #[derive(Default)]
    pub struct FaultLine [size = 64, align = 64] {
        /// The fault's code; zero: none.
        0 => code: AtomicU32,
        /// 1 when the epitaph is complete.
        4 => epitaph_ready: AtomicU32,
        /// Not used; zero.
        8 => reserved: [AtomicU64; 7],
    }
}

impl FaultLine {
    /// Makes `fault` the run's fault, if it is the first.
    pub fn raise(&self, fault: Fault) -> bool {
        // Release: pairs with the Acquire load in `first`, which sees what led to the fault.
        self.code.compare_exchange(0, fault.code(), Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// The run's fault.
    #[must_use]
    pub fn first(&self) -> Option<Fault> {
        // Acquire: pairs with the Release exchange in `raise`.
        Fault::from_code(self.code.load(Ordering::Acquire))
    }

    /// Whether there is a fault; for the hot path.
    #[must_use]
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.code.load(Ordering::Relaxed) != 0
    }

    /// Says that the epitaph is complete.
    pub fn seal_epitaph(&self) {
        // Release: pairs with the Acquire load in `epitaph_is_sealed`.
        self.epitaph_ready.store(1, Ordering::Release);
    }

    /// Whether the epitaph is complete.
    #[must_use]
    pub fn epitaph_is_sealed(&self) -> bool {
        // Acquire: pairs with the Release store in `seal_epitaph`.
        self.epitaph_ready.load(Ordering::Acquire) != 0
    }
}

/// In an epitaph: no core, no instance, no func id, no slot.
pub const NOBODY: u32 = u32::MAX;
/// Blocked tasks that an epitaph names.
pub const EPITAPH_BLOCKED: usize = 16;

shared_struct! {
    /// A task that waits, and one producer that it waits for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct BlockedTask [size = 16, align = 4] {
        /// Slot of the task that waits.
        0 => task: u32,
        /// Producers that have not completed.
        4 => fanin: u32,
        /// Slot of one of them, or [`NOBODY`] when no edge leads here (a lost edge).
        8 => producer: u32,
        /// `TaskState` of that producer.
        12 => producer_state: u32,
    }
}

shared_struct! {
    /// The post-mortem of the first fault: who, which task, which kernel, which core, since when.
    #[derive(Clone, Copy, Debug, Pod, Zeroable)]
    pub struct Epitaph [size = 512, align = 8] {
        /// The fault's code.
        0 => fault: u32,
        /// The AICPU instance that raised it, or [`NOBODY`].
        4 => instance: u32,
        /// The worker concerned, or [`NOBODY`].
        8 => core: u32,
        /// The func id concerned, or [`NOBODY`].
        12 => func_id: u32,
        /// The task concerned, or `TaskId::NONE`.
        16 => task: TaskId,
        /// GM address of the kernel concerned.
        24 => kernel: u64,
        /// The instance's clock when the fault was raised.
        32 => time_ns: u64,
        /// For how long the cause had lasted.
        40 => since_ns: u64,
        /// What was found, what was expected, as the fault's sentence says.
        48 => detail: [u64; 2],
        /// Tasks added.
        64 => added: u64,
        /// Tasks published.
        72 => published: u64,
        /// Tasks completed.
        80 => completed: u64,
        /// Ids in the ready queue, per core kind.
        88 => ready: [u32; 2],
        /// Cores with a dispatch, over all instances.
        96 => busy_cores: u32,
        /// How many tasks are blocked.
        100 => blocked_count: u32,
        /// The first of them.
        104 => blocked: [BlockedTask; EPITAPH_BLOCKED],
        /// The ring concerned, of the streaming runtime: index into `StreamHeader.rings`, plus 1; zero: none.
        360 => ring: u32,
        /// The argument concerned, plus 1; zero: none.
        364 => argument: u32,
        /// The scope concerned: its number in the run.
        368 => scope: u64,
        /// The part of the task concerned, as its `BlockContext`; zero: the task has one only.
        376 => part: u64,
        /// Tasks that wait for several cores, or by their priority.
        384 => shaped: u32,
        /// Not used; zero.
        388 => reserved_half: u32,
        /// Not used; zero.
        392 => reserved: [u64; 15],
    }
}

impl Epitaph {
    /// An epitaph without a culprit yet.
    #[must_use]
    pub fn of(fault: Fault) -> Self {
        Self {
            fault: fault.code(),
            instance: NOBODY,
            core: NOBODY,
            func_id: NOBODY,
            task: TaskId::NONE,
            ..Self::zeroed()
        }
    }
}

shared_struct! {
    /// The fixed-size block at the start of the runtime arena.
    pub struct Runtime [size = 28672, align = 64] {
        /// Identity.
        0 => header: RuntimeHeader,
        /// Configuration.
        64 => config: RunConfig,
        /// Where the regions are.
        128 => regions: [Region; region::COUNT],
        /// The builder's arguments.
        256 => orch: OrchArgs,
        /// GM address of the code of each func id; zero: not registered.
        1344 => kernel_addrs: [u64; MAX_FUNC_ID],
        /// The workers.
        9536 => worker_table: [WorkerEntry; MAX_WORKERS],
        /// Termination.
        10560 => progress: Progress,
        /// Per AICPU instance.
        10688 => instances: [InstanceLine; MAX_AICPU_INSTANCES],
        /// The first fault.
        11712 => fault: FaultLine,
        /// Its post-mortem.
        11776 => epitaph: Epitaph,
        /// Handshake lines, by worker.
        12288 => workers: [Handshake; MAX_WORKERS],
    }
}

//! The limits: what no launch can exceed. Capacities below them are chosen at each launch.
//!
//! A limit that is hit is a fault with a name, never a truncation.

/// Tasks alive at once (the ids are 32 bits wide; the limit keeps the ready queues below 512 MiB).
pub const MAX_TASKS: u32 = 1 << 25;
/// Func ids: `0 .. MAX_FUNC_ID`.
pub const MAX_FUNC_ID: usize = 1024;
/// Words that the host passes to a builder.
pub const MAX_ORCH_ARGS: usize = 128;
/// Arguments of one task, without the block context.
pub const MAX_ARGS: usize = 128;
/// Blocks of one task (their numbers are 24 bits wide).
pub const MAX_BLOCKS: u32 = (1 << 24) - 1;
/// Workers (AICores) of one device.
pub const MAX_WORKERS: usize = 128;
/// AICPU instances of one run.
pub const MAX_AICPU_INSTANCES: usize = 16;
/// Fewest AICPU instances of `aicpu_build_graph`: a builder and a scheduler.
pub const MIN_AICPU_BUILD_INSTANCES: u32 = 2;
/// Producers that one task can wait for (the bit above says that it is unpublished).
pub const MAX_FANIN: u32 = (1 << 31) - 1;
/// Consumers that one task can release (the bit above says that the fanout is closed).
pub const MAX_FANOUT: u32 = (1 << 31) - 1;
/// Edges of one graph image (indices are 32 bits wide).
pub const MAX_IMAGE_EDGES: u64 = u32::MAX as u64;

/// Streams of a session alive at once: what the devices of the field have.
pub const MAX_STREAMS: usize = 1984;

/// The largest number of dimensions of a tensor view.
pub const MAX_RANK: usize = 5;
/// Levels of priority; each has lists of its own on the board.
pub const PRIORITY_LEVELS: u32 = 4;

/// Name, value and meaning of each limit, for `pto info limits`.
pub const TABLE: &[(&str, u64, &str)] = &[
    ("MAX_TASKS", MAX_TASKS as u64, "tasks alive at once"),
    ("MAX_FUNC_ID", MAX_FUNC_ID as u64, "func ids"),
    ("MAX_ORCH_ARGS", MAX_ORCH_ARGS as u64, "orchestration words of a run"),
    ("MAX_ARGS", MAX_ARGS as u64, "arguments of a task"),
    ("MAX_BLOCKS", MAX_BLOCKS as u64, "blocks of a task"),
    ("MAX_WORKERS", MAX_WORKERS as u64, "workers of a device"),
    ("MAX_AICPU_INSTANCES", MAX_AICPU_INSTANCES as u64, "AICPU instances of a run"),
    ("MAX_FANIN", MAX_FANIN as u64, "producers of a task"),
    ("MAX_FANOUT", MAX_FANOUT as u64, "consumers of a task"),
    ("MAX_IMAGE_EDGES", MAX_IMAGE_EDGES, "edges of a graph image"),
    ("MAX_STREAMS", MAX_STREAMS as u64, "streams of a session"),
];

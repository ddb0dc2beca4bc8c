//! The table of faults: code, name, sentence, remedy. Subsystem in the high half, cause in the low half.

use core::fmt;
use core::num::NonZeroU32;

/// An error code of the runtime; never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Fault(NonZeroU32);

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FaultEntry {
    /// The fault.
    pub fault: Fault,
    /// The fault's name, as the constant is called.
    pub name: &'static str,
    /// What happened.
    pub sentence: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

macro_rules! faults {
    ($(
        $(#[$smeta:meta])*
        $subsystem:ident = $high:literal {
            $( $low:literal $name:ident: $sentence:literal, $remedy:literal; )+
        }
    )+) => {
        impl Fault {
            $($(
                #[doc = $sentence]
                pub const $name: Self = Self::new(($high << 16) | $low);
            )+)+

            const fn name_of(code: u32) -> Option<(&'static str, &'static str)> {
                match code {
                    $($( c if c == ($high << 16) | $low => Some((stringify!($name), stringify!($subsystem))), )+)+
                    _ => None,
                }
            }
        }

        /// Every fault, in the order of its code.
        pub const TABLE: &[FaultEntry] = &[
            $($( FaultEntry {
                fault: Fault::$name,
                name: stringify!($name),
                sentence: $sentence,
                remedy: $remedy,
            }, )+)+
        ];
    };
}

faults! {
    /// The header of the runtime arena.
    RUNTIME = 0x0001 {
        0x01 RUNTIME_MAGIC: "Runtime.header.magic is not that of a runtime arena.",
            "The address handed to the firmware is not an arena, or it was overwritten: launch through Device::run.";
        0x02 RUNTIME_ABI_MAJOR: "Runtime.header.abi_major differs from the firmware's.",
            "Build host and firmware from the same release.";
        0x03 RUNTIME_ABI_MINOR: "Runtime.header.abi_minor is newer than the firmware's.",
            "Flash the firmware that belongs to this host.";
        0x04 RUNTIME_HEADER_BYTES: "Runtime.header.header_bytes is not the size of Runtime.",
            "Build host and firmware from the same sources.";
        0x05 RUNTIME_LAYOUT_HASH: "Runtime.header.layout_hash differs from the firmware's.",
            "Build host and firmware from the same sources.";
        0x06 RUNTIME_TOTAL_BYTES: "Runtime.header.total_bytes is not the size of the arena.",
            "The header was overwritten: look for a kernel that writes outside its buffers.";
        0x07 RUNTIME_ARENA_ADDRESS: "Runtime.header.arena_address is not where the arena is.",
            "Launch through Device::run; an arena cannot be moved.";
        0x08 RUNTIME_GM_WINDOW: "Runtime.header.gm_address and gm_bytes do not hold the arena.",
            "Launch through Device::run.";
        0x09 RUNTIME_RUN_EPOCH: "Runtime.header.run_epoch is zero.",
            "Launch through Device::run.";
        0x0A RUNTIME_BRING_UP_EPOCH: "Runtime.header.bring_up_epoch is zero.",
            "Launch through Device::run.";
        0x10 RUNTIME_VARIANT: "RunConfig.variant is not a runtime variant.",
            "Use host_build_graph, aicpu_build_graph or tensormap_and_ringbuffer (unless the image was built without-streaming).";
        0x11 RUNTIME_BUILD_MODE: "RunConfig.build_mode is not a build mode.",
            "Use 1 (concurrent) or 0 (sequential).";
        0x12 RUNTIME_FANOUT: "RunConfig.fanout is not a fanout strategy.",
            "Use locked or lock-free (unless the image was built without-locked).";
        0x13 RUNTIME_FLAGS: "RunConfig.flags has bits that this firmware does not know.",
            "Flash the firmware that belongs to this host.";
        0x14 RUNTIME_AICPU_INSTANCES: "RunConfig.aicpu_instances is outside the range of the variant.",
            "Use 1 to 16, and at least 2 where a builder program runs on the AICPU.";
        0x15 RUNTIME_WORKER_COUNT: "RunConfig.worker_count is zero or above the limit.",
            "Use 1 to 128 workers.";
        0x16 RUNTIME_BUDGETS: "RunConfig holds a budget of zero.",
            "Give task, stall and bring-up budgets above zero.";
        0x17 RUNTIME_WORKER_ENTRY: "A worker table entry has an unknown core kind or an overfull cluster.",
            "A cluster is at most 1 AIC and 2 AIV; clusters are numbered in ascending order.";
        0x18 RUNTIME_ORCH_ARGC: "OrchArgs.orch_argc and OrchArgs.group_argc are above the limit together.",
            "Pass at most 128 words to the builder, those of a group included; put tables into GM and pass their address.";
        0x20 RUNTIME_REGION_TASKS: "The region of tasks is outside the arena, misaligned or too large.",
            "Launch through Device::run; at most 33,554,432 tasks.";
        0x21 RUNTIME_REGION_PAYLOADS: "The region of payloads is outside the arena or misaligned.",
            "Launch through Device::run.";
        0x22 RUNTIME_REGION_EDGES: "The region of edges is outside the arena or misaligned.",
            "Launch through Device::run.";
        0x23 RUNTIME_REGION_READY: "The region of ready queues is outside the arena or too small for the tasks.",
            "Launch through Device::run.";
        0x24 RUNTIME_REGION_LOGS: "The region of log rings is outside the arena or misaligned.",
            "Launch through Device::run.";
        0x25 RUNTIME_REGION_GRAPH: "The region of the graph image is outside the arena or misaligned.",
            "Launch through Device::run.";
        0x27 RUNTIME_REGION_TRACE: "The region of trace rings is outside the arena, misaligned, or has not a ring for each instance and core.",
            "Launch through Device::run.";
        0x28 RUNTIME_REGION_STREAM: "The region of the streaming builder is outside the arena, or too small for its sizes.",
            "Launch through Device::run.";
        0x30 RUNTIME_REGIONS_OVERLAP: "Two regions of the arena overlap.",
            "Launch through Device::run.";
        0x31 RUNTIME_ORCH_RESERVED: "OrchArgs.reserved is not zero.",
            "Flash the firmware that belongs to this host.";
    }
    /// The graph image of `host_build_graph`.
    GRAPH = 0x0002 {
        0x01 GRAPH_MAGIC: "GraphHeader.magic is not that of a graph image.",
            "Build the image with GraphImage; this is another file.";
        0x02 GRAPH_ABI_MAJOR: "GraphHeader.abi_major differs from the firmware's.",
            "Build the image again with this release.";
        0x03 GRAPH_ABI_MINOR: "GraphHeader.abi_minor is newer than the firmware's.",
            "Flash the firmware that belongs to this host.";
        0x04 GRAPH_HEADER_BYTES: "GraphHeader.header_bytes is not the size of the header.",
            "Build the image again.";
        0x05 GRAPH_LAYOUT_HASH: "GraphHeader.layout_hash differs from the firmware's.",
            "Build the image again with this release.";
        0x06 GRAPH_TOTAL_BYTES: "GraphHeader.total_bytes is not the size of the image.",
            "The image was cut or padded: build or copy it again.";
        0x07 GRAPH_CHECKSUM: "GraphHeader.checksum does not match the image.",
            "The image was damaged: build or copy it again.";
        0x08 GRAPH_FLAGS: "GraphHeader.flags has bits that this firmware does not know, or claims an order that the edges do not have.",
            "Build the image again with this release.";
        0x09 GRAPH_TASK_COUNT: "GraphHeader.task_count is above the capacity of the arena.",
            "Launch with larger capacities.";
        0x0A GRAPH_EDGE_COUNT: "GraphHeader.edge_count does not match the tasks.",
            "Build the image again.";
        0x0B GRAPH_ARG_WORDS: "GraphHeader.arg_words does not match the tasks.",
            "Build the image again.";
        0x0C GRAPH_TASKS_OFFSET: "GraphHeader.tasks_offset is outside the image or misaligned.",
            "Build the image again.";
        0x0D GRAPH_EDGES_OFFSET: "GraphHeader.edges_offset is outside the image or misaligned.",
            "Build the image again.";
        0x0E GRAPH_ARGS_OFFSET: "GraphHeader.args_offset is outside the image or misaligned.",
            "Build the image again.";
        0x0F GRAPH_RESERVED: "A reserved word of GraphHeader is not zero.",
            "Flash the firmware that belongs to this host.";
        0x10 GRAPH_TASK_ARGS: "A task's arguments are outside the image.",
            "Build the image again.";
        0x11 GRAPH_TASK_EDGES: "A task's edges are outside the image.",
            "Build the image again.";
        0x12 GRAPH_EDGE_PRODUCER: "An edge names a producer that does not exist.",
            "Build the image again.";
        0x13 GRAPH_CYCLE: "The graph has a cycle.",
            "Remove one of the edges that the message names.";
        0x14 GRAPH_NOT_LOADED: "The run is to repeat a graph, and the arena holds another one, or one that was not run to its end.",
            "Launch through Device::run.";
    }
    /// Adding tasks and edges.
    BUILD = 0x0003 {
        0x01 BUILD_NO_BUILDER: "The run needs a builder, and the firmware has none of that name.",
            "Link the builder into the firmware, or name one that is there (pto info). Sessions need an image that was not built without-sessions.";
        0x02 BUILD_FAILED: "The builder returned an error.",
            "See the builder's own code in the report, and its log lines.";
        0x03 BUILD_UNKNOWN_FUNC: "A task names a func id that is not below the limit.",
            "Use func ids 0 to 1023.";
        0x04 BUILD_KERNEL_MISSING: "A task names a func id for which no kernel is registered.",
            "Register the kernel before the launch: Device::register_kernel.";
        0x05 BUILD_TOO_MANY_ARGS: "A task has more arguments than the limit.",
            "Pass at most 128 words; put the rest into GM and pass its address.";
        0x06 BUILD_TASKS_FULL: "The graph has more tasks than the launch provided for.",
            "Raise RunOptions.capacities.tasks.";
        0x07 BUILD_PAYLOADS_FULL: "The graph has more argument words than the launch provided for.",
            "Raise RunOptions.capacities.arg_words (each task takes its arguments and one word).";
        0x08 BUILD_EDGES_FULL: "The graph has more edges than the launch provided for.",
            "Raise RunOptions.capacities.edges.";
        0x09 BUILD_NO_CORE_OF_KIND: "A task needs a core kind that the device does not have.",
            "Open the device with cores of that kind.";
        0x0A BUILD_UNKNOWN_KIND: "A task names an unknown core kind.",
            "Use CoreKind::AIC or CoreKind::AIV.";
        0x0B BUILD_UNKNOWN_TASK: "An edge or a publish names a task that does not exist.",
            "Use the ids that add_task returned.";
        0x0C BUILD_STALE_TASK: "An edge or a publish names a task of another run, which is retired.",
            "Use the ids that add_task returned in this run.";
        0x0D BUILD_CONSUMER_PUBLISHED: "An edge leads to a task that is published already.",
            "Add all edges to a task before it is published.";
        0x0E BUILD_SELF_EDGE: "An edge leads from a task to itself.",
            "Remove it; a task cannot wait for itself.";
        0x0F BUILD_ALREADY_PUBLISHED: "A task is published twice.",
            "Publish each task once.";
        0x10 BUILD_NOT_PUBLISHED: "The builder returned, and a task that it added is not published.",
            "Publish every task.";
        0x11 BUILD_GM_RANGE: "The builder reads GM outside the device's memory, or misaligned.",
            "Check the addresses among the orchestration words.";
        0x12 BUILD_ORCH_ARGS: "The builder does not accept its orchestration words.",
            "See the builder's log lines for the word.";
        0x13 BUILD_FANIN_LIMIT: "A task has more producers than the limit.",
            "Join in stages: 2,147,483,647 producers are the most.";
        0x14 BUILD_CHAIN_EMPTY: "A chain has no kernel, or a link of it runs no time.",
            "Give a chain at least one link, and each link at least one time.";
        0x15 BUILD_CHAIN_KIND: "The kernels of a chain run on cores of different kinds.",
            "One core runs a chain: make a chain for each kind, and let one wait for the other.";
        0x16 BUILD_CHAIN_VARIES: "What varies in a chain is no argument of its kernel, or has a column of another length, or too large a step.",
            "Name an argument that the kernel has; give a column one word for each time; steps have 56 bits.";
        0x17 BUILD_CHAIN_LIMIT: "A chain has more kernels, or a kernel in it more arguments, than the limit.",
            "Use at most 16,383 kernels of 31 arguments in one chain; cut it in two, of which one waits for the other.";
        0x18 BUILD_CHAIN_WORDS: "A chain of a streaming run takes more words than the limit.",
            "Use at most 128 words in one chain: each link takes 2, its arguments, one for each that varies, and its columns.";
        0x19 BUILD_CHAIN_TURNS: "Links of a chain that take turns run a different number of times.",
            "Give the links that take turns the same number of times.";
        0x1A BUILD_RANGE_LENGTH: "What a program gives for each task of a range has another length than the range.",
            "Give a range an id for each task, and each list of producers an end for each task, in ascending order and up to the last producer.";
        0x1B BUILD_TEMPLATE_LIMIT: "A chain has more words, links or variations than a template holds, or tensors.",
            "Make templates of chains of 128 words, 16 links and 32 variations at most, without tensors; submit others by submit_chain.";
        0x1C BUILD_TEMPLATE_FOREIGN: "A template of a chain is submitted by another run than the one that it was made in.",
            "Fill it by fill_template of the builder that submits it, in the same run.";
        0x40 BUILD_NOT_STREAMING: "A builder submits tensors, and the run does not stream.",
            "Run it under tensormap_and_ringbuffer.";
        0x41 BUILD_FOREIGN_STRUCT: "A structure that a builder in C passes has a size or a field that this firmware does not know.",
            "Set struct_size to its sizeof and reserved fields to zero; build with the headers of this release.";
        0x42 BUILD_NULL_POINTER: "A builder in C passes a null or misaligned pointer.",
            "Pass the address of what the header names.";
        0x43 BUILD_HOST_ONLY: "A builder on the device calls a method that only the host's orchestration has.",
            "Allocate, copy and record in the orchestration, and pass addresses in orch_args.";
    }
    /// Scheduling.
    SCHEDULE = 0x0004 {
        0x01 SCHEDULE_NO_CORES: "A scheduler has no cores.",
            "Use fewer AICPU instances, or more clusters.";
        0x02 SCHEDULE_CORE_NOT_FREE: "A task was dispatched to a core that is not free.",
            "This is an error of the runtime: report it with the graph and the options.";
        0x03 SCHEDULE_LEFT_WORK: "The run ended with ready tasks or busy cores.",
            "This is an error of the runtime: report it with the graph and the options.";
        0x04 SCHEDULE_TASK_STATE: "A ready task is not in the state of one.",
            "Memory of the arena was overwritten, or this is an error of the runtime.";
    }
    /// The compute cores.
    CORE = 0x0005 {
        0x01 CORE_NO_ANSWER: "A core did not answer the greeting.",
            "The core is hung or not started: reset the device.";
        0x02 CORE_WRONG_ID: "A core answered with another core's id.",
            "The worker table does not describe this device.";
        0x03 CORE_WRONG_KIND: "A core is not of the kind that the worker table says.",
            "The worker table does not describe this device.";
        0x04 CORE_WRONG_STATUS: "A core reported a dispatch that it was not given.",
            "Look for a kernel that writes outside its buffers.";
        0x05 CORE_NOT_STOPPED: "A core did not leave its loop when it was asked to.",
            "The kernel that it runs does not return: the report names it.";
        0x06 CORE_EXCEPTION: "A core took an exception in a kernel.",
            "Check the task's arguments against the kernel's; the report says where and at which address.";
    }
    /// No progress.
    STALL = 0x0006 {
        0x01 STALL_CORE: "A task runs on a core for longer than the task budget.",
            "The report names kernel and core; raise the task budget if the kernel is right.";
        0x02 STALL_READY: "Tasks are ready and cores of their kind are idle.",
            "This is an error of the runtime: report it with the graph and the options.";
        0x03 STALL_DEADLOCK: "Tasks wait for producers that can never complete: a cycle, or a lost edge.",
            "The report names tasks and producers; look for a cycle among them.";
        0x04 STALL_BUILDER: "The builder has not returned and adds nothing.",
            "Look for an endless loop in the builder, or raise the stall budget.";
        0x05 STALL_RUN_BUDGET: "The run took longer than its budget.",
            "Raise the run budget, or look at what the report names.";
        0x06 STALL_INSTANCE: "An AICPU instance does not return from a step.",
            "A kernel or builder that runs on it does not return: the report names it.";
        0x07 STALL_TRACE: "A trace ring is full, and the host does not read it.",
            "Is the host stopped? Else record into larger rings, or into ones that drop events when they are full.";
    }
    /// Orders from the host.
    RUN = 0x0007 {
        0x01 RUN_CANCELLED: "The host cancelled the run.",
            "Nothing to do.";
        0x02 RUN_PANIC: "Host code of the simulator panicked in the run.",
            "See the message on standard error; a builder or kernel of yours may be the cause.";
    }
    /// The launch words of an image that a driver loads.
    LAUNCH = 0x0008 {
        0x01 LAUNCH_MAGIC: "LaunchPlan.magic is not that of launch words.",
            "The argument of the entry is not the address of launch words: launch through the host library.";
        0x02 LAUNCH_ABI_MAJOR: "LaunchPlan.abi_major differs from the firmware's.",
            "Build host and firmware from the same release.";
        0x03 LAUNCH_ABI_MINOR: "LaunchPlan.abi_minor is newer than the firmware's.",
            "Flash the firmware that belongs to this host.";
        0x04 LAUNCH_WORDS_BYTES: "LaunchPlan.words_bytes is not the size of LaunchWords.",
            "Build host and firmware from the same sources.";
        0x05 LAUNCH_LAYOUT_HASH: "LaunchPlan.layout_hash differs from the firmware's.",
            "Build host and firmware from the same sources.";
        0x06 LAUNCH_ARENA: "LaunchPlan's arena is not in its GM, or GM is null, misaligned or too large.",
            "Launch through the host library.";
        0x07 LAUNCH_ARCHITECTURE: "LaunchPlan.architecture is not an architecture.",
            "Use a2a3 or a5.";
        0x08 LAUNCH_RESERVED: "A reserved word of LaunchPlan is not zero, or a switch is neither 0 nor 1.",
            "Flash the firmware that belongs to this host.";
        0x09 LAUNCH_CORE_COUNT: "LaunchPlan.core_count is not the number of workers in the arena.",
            "Launch through the host library.";
        0x0A LAUNCH_POSITION: "A core position is outside the register window, taken twice, or of the other core kind.",
            "The table of cores does not describe this device.";
        0x0B LAUNCH_C_BUILDERS: "More C builders are at work at once than the firmware has room for.",
            "Run fewer devices with C builders at once in one process.";
    }
    /// The machine that runs a firmware image.
    FW = 0x0009 {
        0x01 FW_EXCEPTION: "An AICPU instance took an exception.",
            "The report says where; a builder of yours may be the cause, or a kernel that writes outside its buffers.";
        0x02 FW_PANIC: "The firmware panicked.",
            "The console says where; a builder of yours may be the cause.";
        0x03 FW_LOST: "The machine ended, or does not answer.",
            "The report says how it ended and what its console said; the next run starts another one.";
    }
    /// Submission in the streaming runtime. Where an argument is at fault, the detail is its index.
    STREAM = 0x000A {
        0x01 STREAM_WINDOW_SIZE: "The window is zero, no power of two, or larger than the region of tasks.",
            "Use a power of two, such as 4096.";
        0x02 STREAM_MAP_SIZE: "The tensor map has not a power of two of entries, or fewer than 256.",
            "Use a power of two of at least 256, such as 16384.";
        0x03 STREAM_HEAP_SIZE: "The heap has no ring, more than 8, or rings of a size that is no multiple of 64.",
            "Use 1 to 8 rings of a multiple of 64 bytes.";
        0x04 STREAM_RING_SIZE: "The ring of argument words or that of edges is zero or larger than its region.",
            "Raise arg_words and edges of the capacities (--arg-words, --edge-chunks).";
        0x10 STREAM_VIEW_RANK: "An argument's view has more than 5 dimensions, or uses one that it does not have.",
            "Merge dimensions, or make one task for each index of the outermost one.";
        0x11 STREAM_VIEW_RANGE: "An argument's view has an element outside of its tensor, or none at all.",
            "Compare offset, shape and strides with the tensor's size.";
        0x12 STREAM_VIEW_ELEMENT: "An argument's element type is not one of the supported ones.",
            "See ElementType; bytes of any other type can be passed as u8.";
        0x13 STREAM_VIEW_IRREGULAR: "Whether an argument's region overlaps an earlier one takes too many steps to decide.",
            "Use strides that are multiples of each other, or make the dependency explicit with NoDep and after.";
        0x14 STREAM_OUT_OVERLAP: "Two arguments of a task write the same element.",
            "Give each output a region of its own.";
        0x15 STREAM_STALE_TENSOR: "An argument is a tensor of a scope that is closed.",
            "Use it inside of its scope, or allocate it in an outer one.";
        0x18 STREAM_ARG_KIND: "An argument is of no known kind.",
            "Use In, Out, InOut, NoDep or Scalar.";
        0x20 STREAM_SCOPE_DEPTH: "A scope is opened deeper than there are heap rings.",
            "Raise heap_rings (--heap-rings), or nest less.";
        0x21 STREAM_SCOPE_NOT_OPEN: "A scope is closed that is not the innermost open one, or is closed already.",
            "Close each scope once, in the reverse order of opening.";
        0x22 STREAM_SCOPE_LEFT_OPEN: "The program returned, and a scope is open.",
            "Close each scope, or use StreamBuilder::scope.";
        0x28 STREAM_SCOPE_MODE: "A scope is opened with an unknown dependency mode.",
            "Use derived, explicit or manual.";
        0x30 STREAM_WINDOW_RING: "The window is full, and nothing in it can retire.",
            "Raise the window to the size that the report names, publish the task that it names earlier, or let the schedulers run while the program does (concurrent build mode).";
        0x31 STREAM_ARGS_RING: "The ring of arguments is full, and nothing in it can retire.",
            "Raise arg_words (--arg-words) to the size that the report names.";
        0x32 STREAM_EDGES_RING: "The ring of edges is full, and nothing in it can retire.",
            "Raise --edge-chunks to the size that the report names, or edges of the capacities to six times that.";
        0x33 STREAM_MAP_RING: "The tensor map is full, and nothing in it can retire.",
            "Raise map_entries (--map-entries) to the size that the report names.";
        0x34 STREAM_HEAP_RING: "A heap ring is full of tensors of a scope that is open, or of tasks that cannot complete.",
            "Raise heap_bytes (--heap-bytes) to the size that the report names, or close the scope, or publish the task, earlier.";
        0x35 STREAM_WAIT_FOREVER: "The program waits for a task that cannot complete before the program goes on.",
            "Publish the task that the report names before you wait, or let the schedulers run while the program does (concurrent build mode).";
        0x40 STREAM_BLOCKS: "A task has no block, or more than 16,777,215.",
            "Ask for one block at least; where there are too many, give each of them more to do.";
        0x41 STREAM_SYNC_BLOCKS: "A task that starts all of its blocks at once has more of them than the device has cores.",
            "Use no more blocks than there are cores of the kind, for a MIX task clusters; or let the blocks spread.";
        0x42 STREAM_MIX: "A task mixes kernels for which no cluster of the device has cores.",
            "A cluster has one cube core and two vector cores.";
        0x43 STREAM_PREDICATE: "A task's predicate is on an element that is not in GM, or not aligned.",
            "Use a tensor that the device allocated.";
        0x50 STREAM_RECORDING_OPEN: "The program asks for something while it records that a recording cannot hold.",
            "Record tasks with tensors, scopes and their tensors; do the rest before the recording or after it.";
        0x51 STREAM_RECORDING_FULL: "A recording has more tasks, bindings or words than there is room for.",
            "Record less, bind at most 64 tensors and 64 scalars, or raise the window: each slot gives recordings 32 words.";
        0x52 STREAM_RECORDING_UNKNOWN: "A recording is replayed that this run did not make.",
            "Record and replay in the same run of the program.";
        0x53 STREAM_REPLAY_MISFIT: "A replay binds a tensor or scalars that do not fit the recording, or a recording holds a tensor of an outer scope.",
            "Bind as many as were recorded, with the same element types, extents and strides; bind tensors of outer scopes.";
        0x54 STREAM_REPLAY_ALIAS: "A replay binds two views that overlap, and the recording writes one of them.",
            "Bind views without an element in common, or record the program with one tensor for both bindings.";
        0x55 STREAM_NOT_RECORDING: "A recording is ended or a bound scalar used, and no recording is open.",
            "Use them in the body of StreamBuilder::record only.";
    }
    /// Plans of workloads: what a builder finds before it expands one, while it does, and what its tile kernels find. The
    /// epitaph of the run's plan says where.
    PLAN = 0x000B {
        0x01 PLAN_HEADER: "The words are no plan, or one of another version or length.",
            "Compile the workload again with this release.";
        0x02 PLAN_LIMIT: "A plan has more of something than the builder has room for.",
            "Make two workloads of it; the report says what there is too much of.";
        0x03 PLAN_LENGTH: "A part of a plan does not end where the plan says that it does.",
            "Compile the workload again; the plan was damaged.";
        0x04 PLAN_CODE: "A word of a plan has a code that is not known.",
            "Compile the workload again; the plan was damaged.";
        0x05 PLAN_DEPTH: "The nodes or expressions of a plan are nested too deep.",
            "Nest fewer loops, or compute parts of the expression in slots.";
        0x06 PLAN_TYPE: "A part of a plan has a type that does not fit its position.",
            "Compile the workload again; the plan was damaged.";
        0x07 PLAN_NAME: "A plan uses a tensor, kernel, symbol, array, variable or slot that it does not have.",
            "Compile the workload again; the plan was damaged.";
        0x08 PLAN_BINDINGS: "The bindings are not in GM, or not those of the plan.",
            "Bind the workload again, with memory that the device allocated.";
        0x10 PLAN_DIVISION: "An expression of a workload divides by zero.",
            "The report says where; keep the divisor from zero there.";
        0x11 PLAN_INDEX: "An index of a workload is not in the dimension of its tensor.",
            "The report says where; compare the sizes of the loops with those of the tensor.";
        0x12 PLAN_TILE: "A tile of a workload leaves its tensor.",
            "The report says where; give the view a range, so that the tile is partial, or choose another tile.";
        0x13 PLAN_ARRAY: "An array of an axis is shorter than the axis needs.",
            "Bind an array of the length that the report names.";
        0x14 PLAN_ELEMENT: "An array of an axis has an element that cannot be: a negative length, or a beginning before the one before it.",
            "The report says which; correct it.";
         0x15 PLAN_TURNS: "The loops of a workload make turn after turn without a task.",
             "The report names the loop; look at its size, and at the predicates of its tasks.";
        0x16 PLAN_DEADLOCK: "The processes of a pipeline wait for each other.",
            "The report says who waits for whom; make a channel deeper, or change the order of sends and receives.";
        0x20 PLAN_KERNEL: "A tile kernel ended with a fault.",
            "The report names kernel, operand and index.";
    }
    /// Transfers between the devices of a group.
    TRANSFER = 0x000C {
        0x01 TRANSFER_FAILED: "A transfer to or from another rank has failed.",
            "The report of the group names ranks, hosts and the cause.";
        0x02 TRANSFER_STALL: "A transfer waits for longer than the stall budget, and nothing else gets on.",
            "The report names the task; look why the other rank does not do its part, or raise the stall budget.";
        0x03 TRANSFER_NO_ENGINE: "A transfer is ready, and nothing on this device moves it.",
            "Run the program on a member of a group: Group::open_local, or Group::join.";
        0x04 TRANSFER_RANK: "A call names a rank that the communicator does not have.",
            "Ranks are 0 to the number of ranks - 1.";
        0x05 TRANSFER_TENSOR: "A tensor of a transfer is not dense, or not as large as the call needs.",
            "Transfer dense views; the parts of a collective are as large as its documentation says.";
        0x06 TRANSFER_WINDOW: "A call names a window that the group does not have, or bytes outside of the window.",
            "Make the window with Group::window before the run; compare offset and size with its bytes.";
        0x07 TRANSFER_SLOT: "A call names a signal slot that a rank does not have.",
            "A rank has 256 signal slots, from 0 on.";
        0x08 TRANSFER_WORDS: "The words of the group in the launch arguments are damaged.",
            "Run the program with Group::run, and make its communicator from launch_args().";
        0x09 TRANSFER_TYPE: "A reduction has no kernel for the element type.",
            "Reduce f16, bf16, f32, f64, or integers of 8 to 64 bits.";
        0x0A TRANSFER_TAGS: "A program has used up the numbers that identify its transfers.",
            "A group has at most 32,768 ranks, a launch 16,384 programs, a communicator 65,535 sub-groups, nested three deep, and 2,147,483,647 calls.";
    }
}

impl Fault {
    const fn new(code: u32) -> Self {
        match NonZeroU32::new(code) {
            Some(code) => Self(code),
            None => panic!("a fault's code is not zero"),
        }
    }

    /// The fault with this code; `None` for zero. Codes that the table does not hold are kept.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        match NonZeroU32::new(code) {
            Some(code) => Some(Self(code)),
            None => None,
        }
    }

    /// The code, as in `FaultLine::code`.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0.get()
    }

    /// The fault's row of the table, if the table holds it.
    #[must_use]
    pub fn entry(self) -> Option<&'static FaultEntry> {
        TABLE.iter().find(|entry| entry.fault == self)
    }

    /// The fault's name, or "UNKNOWN".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match Self::name_of(self.code()) {
            Some((name, _)) => name,
            None => "UNKNOWN",
        }
    }

    /// The subsystem that it belongs to, or "UNKNOWN".
    #[must_use]
    pub const fn subsystem(self) -> &'static str {
        match Self::name_of(self.code()) {
            Some((_, subsystem)) => subsystem,
            None => "UNKNOWN",
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:#010x})", self.name(), self.code())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some(entry) => write!(f, "{} {:#010x}: {}", entry.name, self.code(), entry.sentence),
            None => write!(f, "fault {:#010x}, which this release does not know", self.code()),
        }
    }
}

impl core::error::Error for Fault {}

// Codes ascend, therefore they are unique.
const _: () = {
    let mut i = 1;
    while i < TABLE.len() {
        assert!(TABLE[i - 1].fault.code() < TABLE[i].fault.code(), "fault codes ascend");
        i += 1;
    }
};

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{Fault, TABLE};
    use crate::task::{chunks_for, edges_for};
    use std::format;

    /// A report counts chunks. The command has an option in chunks, and the capacities of all languages count edges.
    #[test]
    fn the_remedy_for_edges_turns_chunks_into_edges() {
        let remedy = Fault::STREAM_EDGES_RING.entry().unwrap().remedy;
        assert!(remedy.contains("--edge-chunks") && remedy.contains("six times"), "{remedy}");
        assert_eq!((edges_for(10), chunks_for(6 * 10)), (60, 10));
    }

    #[test]
    fn every_row_says_what_and_what_to_do() {
        for entry in TABLE {
            assert!(entry.sentence.ends_with('.') && entry.remedy.len() > 10, "{}", entry.name);
            assert!(entry.name.starts_with(entry.fault.subsystem()), "{}", entry.name);
            assert_eq!(entry.fault.name(), entry.name);
        }
    }

    #[test]
    fn an_unknown_code_is_kept_and_said() {
        let fault = Fault::from_code(0x00FF_0001).unwrap();
        assert_eq!(fault.code(), 0x00FF_0001);
        assert!(format!("{fault}").contains("0x00ff0001"));
        assert!(Fault::from_code(0).is_none());
    }
}

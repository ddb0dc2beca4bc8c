/* The bytes that host, AICPU and AICore of the PTO Runtime share.
 *
 * Generated from pto_abi by `cargo xtask generate`; do not edit. Little-endian, 64-bit addresses.
 * Fields marked `atomic` may be written by others at any time: read and write them by atomic
 * operations of their width. */
#ifndef PTO_ABI_H
#define PTO_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PTO_ALIGN(bytes) alignas(bytes)
#define PTO_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define PTO_ALIGN(bytes) _Alignas(bytes)
#define PTO_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* A device address in global memory. */
typedef uint64_t pto_gm_addr;

/* A task: its slot, and the generation of that slot. */
typedef struct pto_task_id {
    uint32_t slot;
    uint32_t generation;
} pto_task_id;

/* Identity */
#define PTO_RUNTIME_MAGIC UINT64_C(0x31544e55524f5450)       /* RuntimeHeader.magic */
#define PTO_GRAPH_MAGIC UINT64_C(0x32464152474f5450)         /* GraphHeader.magic */
#define PTO_ABI_MAJOR UINT32_C(1)                            /* host and firmware agree on it */
#define PTO_ABI_MINOR UINT32_C(8)                            /* the firmware takes this one and lower ones */
#define PTO_LAYOUT_HASH UINT64_C(0x6a80263440193307)         /* hash over names, offsets and sizes of all shared structs */

/* Limits */
#define PTO_MAX_TASKS UINT32_C(33554432)                     /* tasks alive at once */
#define PTO_MAX_FUNC_ID UINT32_C(1024)                       /* func ids */
#define PTO_MAX_ORCH_ARGS UINT32_C(128)                      /* orchestration words of a run */
#define PTO_MAX_ARGS UINT32_C(128)                           /* arguments of a task */
#define PTO_MAX_BLOCKS UINT32_C(16777215)                    /* blocks of a task */
#define PTO_MAX_WORKERS UINT32_C(128)                        /* workers of a device */
#define PTO_MAX_AICPU_INSTANCES UINT32_C(16)                 /* AICPU instances of a run */
#define PTO_MAX_FANIN UINT32_C(2147483647)                   /* producers of a task */
#define PTO_MAX_FANOUT UINT32_C(2147483647)                  /* consumers of a task */
#define PTO_MAX_IMAGE_EDGES UINT32_C(4294967295)             /* edges of a graph image */
#define PTO_MAX_STREAMS UINT32_C(1984)                       /* streams of a session */

/* Closed sets */
#define PTO_CORE_KIND_AIC UINT32_C(0)                        /* core_kind: aic */
#define PTO_CORE_KIND_AIV UINT32_C(1)                        /* core_kind: aiv */
#define PTO_RUNTIME_VARIANT_HOST_BUILD_GRAPH UINT32_C(1)     /* runtime_variant: host_build_graph */
#define PTO_RUNTIME_VARIANT_AICPU_BUILD_GRAPH UINT32_C(2)    /* runtime_variant: aicpu_build_graph */
#define PTO_RUNTIME_VARIANT_TENSORMAP_AND_RINGBUFFER UINT32_C(3) /* runtime_variant: tensormap_and_ringbuffer */
#define PTO_BUILD_MODE_SEQUENTIAL UINT32_C(0)                /* build_mode: sequential */
#define PTO_BUILD_MODE_CONCURRENT UINT32_C(1)                /* build_mode: concurrent */
#define PTO_FANOUT_STRATEGY_LOCKED UINT32_C(0)               /* fanout_strategy: locked */
#define PTO_FANOUT_STRATEGY_LOCK_FREE UINT32_C(1)            /* fanout_strategy: lock-free */
#define PTO_TASK_STATE_NONE UINT32_C(0)                      /* task_state: none */
#define PTO_TASK_STATE_ADDED UINT32_C(1)                     /* task_state: added */
#define PTO_TASK_STATE_PUBLISHED UINT32_C(2)                 /* task_state: published */
#define PTO_TASK_STATE_DISPATCHED UINT32_C(3)                /* task_state: dispatched */
#define PTO_TASK_STATE_COMPLETED UINT32_C(4)                 /* task_state: completed */
#define PTO_TRACE_KIND_ADDED UINT32_C(1)                     /* trace_kind: added */
#define PTO_TRACE_KIND_EDGE UINT32_C(2)                      /* trace_kind: edge */
#define PTO_TRACE_KIND_EDGE_SATISFIED UINT32_C(3)            /* trace_kind: edge satisfied */
#define PTO_TRACE_KIND_PUBLISHED UINT32_C(4)                 /* trace_kind: published */
#define PTO_TRACE_KIND_READY UINT32_C(5)                     /* trace_kind: ready */
#define PTO_TRACE_KIND_DISPATCHED UINT32_C(6)                /* trace_kind: dispatched */
#define PTO_TRACE_KIND_STARTED UINT32_C(7)                   /* trace_kind: started */
#define PTO_TRACE_KIND_FINISHED UINT32_C(8)                  /* trace_kind: finished */
#define PTO_TRACE_KIND_COMPLETED UINT32_C(9)                 /* trace_kind: completed */
#define PTO_TRACE_KIND_SKIPPED UINT32_C(10)                  /* trace_kind: skipped */
#define PTO_TRACE_KIND_PART UINT32_C(11)                     /* trace_kind: part */
#define PTO_TRACE_KIND_COLLECTED UINT32_C(12)                /* trace_kind: collected */
#define PTO_TRACE_KIND_LANE UINT32_C(13)                     /* trace_kind: lane */
#define PTO_DEPENDENCY_MODE_DERIVED UINT32_C(0)              /* dependency_mode: derived */
#define PTO_DEPENDENCY_MODE_EXPLICIT UINT32_C(1)             /* dependency_mode: explicit */
#define PTO_DEPENDENCY_MODE_MANUAL UINT32_C(2)               /* dependency_mode: manual */
#define PTO_ELEMENT_TYPE_F32 UINT32_C(0)                     /* element_type: f32 */
#define PTO_ELEMENT_TYPE_F16 UINT32_C(1)                     /* element_type: f16 */
#define PTO_ELEMENT_TYPE_BF16 UINT32_C(2)                    /* element_type: bf16 */
#define PTO_ELEMENT_TYPE_I8 UINT32_C(3)                      /* element_type: i8 */
#define PTO_ELEMENT_TYPE_U8 UINT32_C(4)                      /* element_type: u8 */
#define PTO_ELEMENT_TYPE_I16 UINT32_C(5)                     /* element_type: i16 */
#define PTO_ELEMENT_TYPE_U16 UINT32_C(6)                     /* element_type: u16 */
#define PTO_ELEMENT_TYPE_I32 UINT32_C(7)                     /* element_type: i32 */
#define PTO_ELEMENT_TYPE_U32 UINT32_C(8)                     /* element_type: u32 */
#define PTO_ELEMENT_TYPE_I64 UINT32_C(9)                     /* element_type: i64 */
#define PTO_ELEMENT_TYPE_U64 UINT32_C(10)                    /* element_type: u64 */
#define PTO_ELEMENT_TYPE_F64 UINT32_C(11)                    /* element_type: f64 */
#define PTO_ARG_KIND_IN UINT32_C(0)                          /* arg_kind: in */
#define PTO_ARG_KIND_OUT UINT32_C(1)                         /* arg_kind: out */
#define PTO_ARG_KIND_INOUT UINT32_C(2)                       /* arg_kind: inout */
#define PTO_ARG_KIND_NO_DEP UINT32_C(3)                      /* arg_kind: no-dep */
#define PTO_ARG_KIND_SCALAR UINT32_C(4)                      /* arg_kind: scalar */
#define PTO_ARG_KIND_BOUND_SCALAR UINT32_C(5)                /* arg_kind: bound-scalar */
#define PTO_PRIORITY_LOW UINT32_C(0)                         /* priority: low */
#define PTO_PRIORITY_NORMAL UINT32_C(1)                      /* priority: normal */
#define PTO_PRIORITY_HIGH UINT32_C(2)                        /* priority: high */
#define PTO_PRIORITY_URGENT UINT32_C(3)                      /* priority: urgent */
#define PTO_START_MODE_SPREAD UINT32_C(0)                    /* start_mode: spread */
#define PTO_START_MODE_SYNC UINT32_C(1)                      /* start_mode: sync */
#define PTO_COMPARISON_EQUAL UINT32_C(0)                     /* comparison: == */
#define PTO_COMPARISON_NOT_EQUAL UINT32_C(1)                 /* comparison: != */
#define PTO_COMPARISON_LESS UINT32_C(2)                      /* comparison: < */
#define PTO_COMPARISON_LESS_EQUAL UINT32_C(3)                /* comparison: <= */
#define PTO_COMPARISON_GREATER UINT32_C(4)                   /* comparison: > */
#define PTO_COMPARISON_GREATER_EQUAL UINT32_C(5)             /* comparison: >= */

/* Flags */
#define PTO_RUN_FLAG_KERNEL_TIMES UINT32_C(0x00000001)       /* RunConfig.flags */
#define PTO_RUN_FLAG_KEEP_CORES UINT32_C(0x00000002)         /* RunConfig.flags */
#define PTO_RUN_FLAG_TRACE_KEEP_OLDEST UINT32_C(0x00000004)  /* RunConfig.flags */
#define PTO_RUN_FLAG_TRACE_WAITS UINT32_C(0x00000008)        /* RunConfig.flags */
#define PTO_RUN_FLAG_RUN_AGAIN UINT32_C(0x00000010)          /* RunConfig.flags */
#define PTO_GRAPH_FLAG_TOPOLOGICAL UINT32_C(0x00000001)      /* GraphHeader.flags */
#define PTO_GRAPH_FLAG_TRANSFERS UINT32_C(0x00000002)        /* GraphHeader.flags */

/* Regions */
#define PTO_REGION_TASKS UINT32_C(0)                         /* index into Runtime.regions */
#define PTO_REGION_PAYLOADS UINT32_C(1)                      /* index into Runtime.regions */
#define PTO_REGION_EDGES UINT32_C(2)                         /* index into Runtime.regions */
#define PTO_REGION_READY UINT32_C(3)                         /* index into Runtime.regions */
#define PTO_REGION_LOGS UINT32_C(4)                          /* index into Runtime.regions */
#define PTO_REGION_GRAPH UINT32_C(5)                         /* index into Runtime.regions */
#define PTO_REGION_TRACE UINT32_C(6)                         /* index into Runtime.regions */
#define PTO_REGION_STREAM UINT32_C(7)                        /* index into Runtime.regions */
#define PTO_REGION_COUNT UINT32_C(8)                         /* entries of Runtime.regions */

/* Handshake */
#define PTO_FINISHED UINT32_C(0x80000000)                    /* in WorkerLine.status: the dispatch is finished */
#define PTO_LAST_DISPATCH_ID UINT32_C(0x7fffffef)            /* then ids start again at 0 */
#define PTO_DOORBELL_IDLE UINT32_C(0x7ffffffd)               /* doorbell: nothing was dispatched yet */
#define PTO_DOORBELL_EXIT UINT32_C(0x7ffffff0)               /* doorbell register: leave the loop */
#define PTO_STATUS_IDLE UINT32_C(0x7fffffff)                 /* status: nothing was run yet */
#define PTO_STATUS_EXITED UINT32_C(0x7ffffffe)               /* status: the core has left its loop */
#define PTO_CONTROL_RUN UINT32_C(0x00000000)                 /* control: keep running */
#define PTO_CONTROL_QUIT UINT32_C(0x00000001)                /* control: leave the loop */
#define PTO_CHAIN_KERNEL UINT32_C(1)                         /* DispatchWords.kernel: args are a chain's words */
#define PTO_CHAIN_VERSION UINT32_C(3)                        /* of a chain's words */
#define PTO_MAX_CHAIN_ARGS UINT32_C(31)                      /* arguments of a kernel in a chain */
#define PTO_CHAIN_WITH_NEXT UINT32_C(0x80000000)             /* in the times of a link: the next one takes turns */

/* Tasks */
#define PTO_TASK_UNPUBLISHED UINT32_C(0x80000000)            /* in Task.fanin: not published */
#define PTO_TASK_CLOSED UINT32_C(0x80000000)                 /* in Task.fanout: completed */
#define PTO_TASK_NO_CHUNK UINT32_C(0xffffffff)               /* in Task.first_chunk: none */
#define PTO_NOBODY UINT32_C(0xffffffff)                      /* in Epitaph: no core, instance, func id or slot */
#define PTO_INLINE_CONSUMERS UINT32_C(5)                     /* consumers in a task's own line */
#define PTO_CHUNK_CONSUMERS UINT32_C(15)                     /* consumers in one chunk */
#define PTO_STREAM_RANKS UINT32_C(5)                         /* dimensions of a pto_stream_tensor */
#define PTO_EPITAPH_BLOCKED UINT32_C(16)                     /* blocked tasks that an epitaph names */
#define PTO_TRACE_KIND_BITS UINT32_C(7)                      /* bits of TraceEvent.what that are the kind */
#define PTO_LOG_ENTRY_TEXT_BYTES UINT32_C(112)               /* bytes of text in a log entry */

/* Faults: what happened, and what to do */
/* Runtime.header.magic is not that of a runtime arena. The address handed to the firmware is not an arena, or it was overwritten: launch through Device::run. */
#define PTO_FAULT_RUNTIME_MAGIC UINT32_C(0x00010001)
/* Runtime.header.abi_major differs from the firmware's. Build host and firmware from the same release. */
#define PTO_FAULT_RUNTIME_ABI_MAJOR UINT32_C(0x00010002)
/* Runtime.header.abi_minor is newer than the firmware's. Flash the firmware that belongs to this host. */
#define PTO_FAULT_RUNTIME_ABI_MINOR UINT32_C(0x00010003)
/* Runtime.header.header_bytes is not the size of Runtime. Build host and firmware from the same sources. */
#define PTO_FAULT_RUNTIME_HEADER_BYTES UINT32_C(0x00010004)
/* Runtime.header.layout_hash differs from the firmware's. Build host and firmware from the same sources. */
#define PTO_FAULT_RUNTIME_LAYOUT_HASH UINT32_C(0x00010005)
/* Runtime.header.total_bytes is not the size of the arena. The header was overwritten: look for a kernel that writes outside its buffers. */
#define PTO_FAULT_RUNTIME_TOTAL_BYTES UINT32_C(0x00010006)
/* Runtime.header.arena_address is not where the arena is. Launch through Device::run; an arena cannot be moved. */
#define PTO_FAULT_RUNTIME_ARENA_ADDRESS UINT32_C(0x00010007)
/* Runtime.header.gm_address and gm_bytes do not hold the arena. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_GM_WINDOW UINT32_C(0x00010008)
/* Runtime.header.run_epoch is zero. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_RUN_EPOCH UINT32_C(0x00010009)
/* Runtime.header.bring_up_epoch is zero. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_BRING_UP_EPOCH UINT32_C(0x0001000a)
/* RunConfig.variant is not a runtime variant. Use host_build_graph, aicpu_build_graph or tensormap_and_ringbuffer (unless the image was built without-streaming). */
#define PTO_FAULT_RUNTIME_VARIANT UINT32_C(0x00010010)
/* RunConfig.build_mode is not a build mode. Use 1 (concurrent) or 0 (sequential). */
#define PTO_FAULT_RUNTIME_BUILD_MODE UINT32_C(0x00010011)
/* RunConfig.fanout is not a fanout strategy. Use locked or lock-free (unless the image was built without-locked). */
#define PTO_FAULT_RUNTIME_FANOUT UINT32_C(0x00010012)
/* RunConfig.flags has bits that this firmware does not know. Flash the firmware that belongs to this host. */
#define PTO_FAULT_RUNTIME_FLAGS UINT32_C(0x00010013)
/* RunConfig.aicpu_instances is outside the range of the variant. Use 1 to 16, and at least 2 where a builder program runs on the AICPU. */
#define PTO_FAULT_RUNTIME_AICPU_INSTANCES UINT32_C(0x00010014)
/* RunConfig.worker_count is zero or above the limit. Use 1 to 128 workers. */
#define PTO_FAULT_RUNTIME_WORKER_COUNT UINT32_C(0x00010015)
/* RunConfig holds a budget of zero. Give task, stall and bring-up budgets above zero. */
#define PTO_FAULT_RUNTIME_BUDGETS UINT32_C(0x00010016)
/* A worker table entry has an unknown core kind or an overfull cluster. A cluster is at most 1 AIC and 2 AIV; clusters are numbered in ascending order. */
#define PTO_FAULT_RUNTIME_WORKER_ENTRY UINT32_C(0x00010017)
/* OrchArgs.orch_argc and OrchArgs.group_argc are above the limit together. Pass at most 128 words to the builder, those of a group included; put tables into GM and pass their address. */
#define PTO_FAULT_RUNTIME_ORCH_ARGC UINT32_C(0x00010018)
/* The region of tasks is outside the arena, misaligned or too large. Launch through Device::run; at most 33,554,432 tasks. */
#define PTO_FAULT_RUNTIME_REGION_TASKS UINT32_C(0x00010020)
/* The region of payloads is outside the arena or misaligned. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGION_PAYLOADS UINT32_C(0x00010021)
/* The region of edges is outside the arena or misaligned. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGION_EDGES UINT32_C(0x00010022)
/* The region of ready queues is outside the arena or too small for the tasks. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGION_READY UINT32_C(0x00010023)
/* The region of log rings is outside the arena or misaligned. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGION_LOGS UINT32_C(0x00010024)
/* The region of the graph image is outside the arena or misaligned. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGION_GRAPH UINT32_C(0x00010025)
/* The region of trace rings is outside the arena, misaligned, or has not a ring for each instance and core. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGION_TRACE UINT32_C(0x00010027)
/* The region of the streaming builder is outside the arena, or too small for its sizes. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGION_STREAM UINT32_C(0x00010028)
/* Two regions of the arena overlap. Launch through Device::run. */
#define PTO_FAULT_RUNTIME_REGIONS_OVERLAP UINT32_C(0x00010030)
/* OrchArgs.reserved is not zero. Flash the firmware that belongs to this host. */
#define PTO_FAULT_RUNTIME_ORCH_RESERVED UINT32_C(0x00010031)
/* GraphHeader.magic is not that of a graph image. Build the image with GraphImage; this is another file. */
#define PTO_FAULT_GRAPH_MAGIC UINT32_C(0x00020001)
/* GraphHeader.abi_major differs from the firmware's. Build the image again with this release. */
#define PTO_FAULT_GRAPH_ABI_MAJOR UINT32_C(0x00020002)
/* GraphHeader.abi_minor is newer than the firmware's. Flash the firmware that belongs to this host. */
#define PTO_FAULT_GRAPH_ABI_MINOR UINT32_C(0x00020003)
/* GraphHeader.header_bytes is not the size of the header. Build the image again. */
#define PTO_FAULT_GRAPH_HEADER_BYTES UINT32_C(0x00020004)
/* GraphHeader.layout_hash differs from the firmware's. Build the image again with this release. */
#define PTO_FAULT_GRAPH_LAYOUT_HASH UINT32_C(0x00020005)
/* GraphHeader.total_bytes is not the size of the image. The image was cut or padded: build or copy it again. */
#define PTO_FAULT_GRAPH_TOTAL_BYTES UINT32_C(0x00020006)
/* GraphHeader.checksum does not match the image. The image was damaged: build or copy it again. */
#define PTO_FAULT_GRAPH_CHECKSUM UINT32_C(0x00020007)
/* GraphHeader.flags has bits that this firmware does not know, or claims an order that the edges do not have. Build the image again with this release. */
#define PTO_FAULT_GRAPH_FLAGS UINT32_C(0x00020008)
/* GraphHeader.task_count is above the capacity of the arena. Launch with larger capacities. */
#define PTO_FAULT_GRAPH_TASK_COUNT UINT32_C(0x00020009)
/* GraphHeader.edge_count does not match the tasks. Build the image again. */
#define PTO_FAULT_GRAPH_EDGE_COUNT UINT32_C(0x0002000a)
/* GraphHeader.arg_words does not match the tasks. Build the image again. */
#define PTO_FAULT_GRAPH_ARG_WORDS UINT32_C(0x0002000b)
/* GraphHeader.tasks_offset is outside the image or misaligned. Build the image again. */
#define PTO_FAULT_GRAPH_TASKS_OFFSET UINT32_C(0x0002000c)
/* GraphHeader.edges_offset is outside the image or misaligned. Build the image again. */
#define PTO_FAULT_GRAPH_EDGES_OFFSET UINT32_C(0x0002000d)
/* GraphHeader.args_offset is outside the image or misaligned. Build the image again. */
#define PTO_FAULT_GRAPH_ARGS_OFFSET UINT32_C(0x0002000e)
/* A reserved word of GraphHeader is not zero. Flash the firmware that belongs to this host. */
#define PTO_FAULT_GRAPH_RESERVED UINT32_C(0x0002000f)
/* A task's arguments are outside the image. Build the image again. */
#define PTO_FAULT_GRAPH_TASK_ARGS UINT32_C(0x00020010)
/* A task's edges are outside the image. Build the image again. */
#define PTO_FAULT_GRAPH_TASK_EDGES UINT32_C(0x00020011)
/* An edge names a producer that does not exist. Build the image again. */
#define PTO_FAULT_GRAPH_EDGE_PRODUCER UINT32_C(0x00020012)
/* The graph has a cycle. Remove one of the edges that the message names. */
#define PTO_FAULT_GRAPH_CYCLE UINT32_C(0x00020013)
/* The run is to repeat a graph, and the arena holds another one, or one that was not run to its end. Launch through Device::run. */
#define PTO_FAULT_GRAPH_NOT_LOADED UINT32_C(0x00020014)
/* The run needs a builder, and the firmware has none of that name. Link the builder into the firmware, or name one that is there (pto info). Sessions need an image that was not built without-sessions. */
#define PTO_FAULT_BUILD_NO_BUILDER UINT32_C(0x00030001)
/* The builder returned an error. See the builder's own code in the report, and its log lines. */
#define PTO_FAULT_BUILD_FAILED UINT32_C(0x00030002)
/* A task names a func id that is not below the limit. Use func ids 0 to 1023. */
#define PTO_FAULT_BUILD_UNKNOWN_FUNC UINT32_C(0x00030003)
/* A task names a func id for which no kernel is registered. Register the kernel before the launch: Device::register_kernel. */
#define PTO_FAULT_BUILD_KERNEL_MISSING UINT32_C(0x00030004)
/* A task has more arguments than the limit. Pass at most 128 words; put the rest into GM and pass its address. */
#define PTO_FAULT_BUILD_TOO_MANY_ARGS UINT32_C(0x00030005)
/* The graph has more tasks than the launch provided for. Raise RunOptions.capacities.tasks. */
#define PTO_FAULT_BUILD_TASKS_FULL UINT32_C(0x00030006)
/* The graph has more argument words than the launch provided for. Raise RunOptions.capacities.arg_words (each task takes its arguments and one word). */
#define PTO_FAULT_BUILD_PAYLOADS_FULL UINT32_C(0x00030007)
/* The graph has more edges than the launch provided for. Raise RunOptions.capacities.edges. */
#define PTO_FAULT_BUILD_EDGES_FULL UINT32_C(0x00030008)
/* A task needs a core kind that the device does not have. Open the device with cores of that kind. */
#define PTO_FAULT_BUILD_NO_CORE_OF_KIND UINT32_C(0x00030009)
/* A task names an unknown core kind. Use CoreKind::AIC or CoreKind::AIV. */
#define PTO_FAULT_BUILD_UNKNOWN_KIND UINT32_C(0x0003000a)
/* An edge or a publish names a task that does not exist. Use the ids that add_task returned. */
#define PTO_FAULT_BUILD_UNKNOWN_TASK UINT32_C(0x0003000b)
/* An edge or a publish names a task of another run, which is retired. Use the ids that add_task returned in this run. */
#define PTO_FAULT_BUILD_STALE_TASK UINT32_C(0x0003000c)
/* An edge leads to a task that is published already. Add all edges to a task before it is published. */
#define PTO_FAULT_BUILD_CONSUMER_PUBLISHED UINT32_C(0x0003000d)
/* An edge leads from a task to itself. Remove it; a task cannot wait for itself. */
#define PTO_FAULT_BUILD_SELF_EDGE UINT32_C(0x0003000e)
/* A task is published twice. Publish each task once. */
#define PTO_FAULT_BUILD_ALREADY_PUBLISHED UINT32_C(0x0003000f)
/* The builder returned, and a task that it added is not published. Publish every task. */
#define PTO_FAULT_BUILD_NOT_PUBLISHED UINT32_C(0x00030010)
/* The builder reads GM outside the device's memory, or misaligned. Check the addresses among the orchestration words. */
#define PTO_FAULT_BUILD_GM_RANGE UINT32_C(0x00030011)
/* The builder does not accept its orchestration words. See the builder's log lines for the word. */
#define PTO_FAULT_BUILD_ORCH_ARGS UINT32_C(0x00030012)
/* A task has more producers than the limit. Join in stages: 2,147,483,647 producers are the most. */
#define PTO_FAULT_BUILD_FANIN_LIMIT UINT32_C(0x00030013)
/* A chain has no kernel, or a link of it runs no time. Give a chain at least one link, and each link at least one time. */
#define PTO_FAULT_BUILD_CHAIN_EMPTY UINT32_C(0x00030014)
/* The kernels of a chain run on cores of different kinds. One core runs a chain: make a chain for each kind, and let one wait for the other. */
#define PTO_FAULT_BUILD_CHAIN_KIND UINT32_C(0x00030015)
/* What varies in a chain is no argument of its kernel, or has a column of another length, or too large a step. Name an argument that the kernel has; give a column one word for each time; steps have 56 bits. */
#define PTO_FAULT_BUILD_CHAIN_VARIES UINT32_C(0x00030016)
/* A chain has more kernels, or a kernel in it more arguments, than the limit. Use at most 16,383 kernels of 31 arguments in one chain; cut it in two, of which one waits for the other. */
#define PTO_FAULT_BUILD_CHAIN_LIMIT UINT32_C(0x00030017)
/* A chain of a streaming run takes more words than the limit. Use at most 128 words in one chain: each link takes 2, its arguments, one for each that varies, and its columns. */
#define PTO_FAULT_BUILD_CHAIN_WORDS UINT32_C(0x00030018)
/* Links of a chain that take turns run a different number of times. Give the links that take turns the same number of times. */
#define PTO_FAULT_BUILD_CHAIN_TURNS UINT32_C(0x00030019)
/* What a program gives for each task of a range has another length than the range. Give a range an id for each task, and each list of producers an end for each task, in ascending order and up to the last producer. */
#define PTO_FAULT_BUILD_RANGE_LENGTH UINT32_C(0x0003001a)
/* A chain has more words, links or variations than a template holds, or tensors. Make templates of chains of 128 words, 16 links and 32 variations at most, without tensors; submit others by submit_chain. */
#define PTO_FAULT_BUILD_TEMPLATE_LIMIT UINT32_C(0x0003001b)
/* A template of a chain is submitted by another run than the one that it was made in. Fill it by fill_template of the builder that submits it, in the same run. */
#define PTO_FAULT_BUILD_TEMPLATE_FOREIGN UINT32_C(0x0003001c)
/* A builder submits tensors, and the run does not stream. Run it under tensormap_and_ringbuffer. */
#define PTO_FAULT_BUILD_NOT_STREAMING UINT32_C(0x00030040)
/* A structure that a builder in C passes has a size or a field that this firmware does not know. Set struct_size to its sizeof and reserved fields to zero; build with the headers of this release. */
#define PTO_FAULT_BUILD_FOREIGN_STRUCT UINT32_C(0x00030041)
/* A builder in C passes a null or misaligned pointer. Pass the address of what the header names. */
#define PTO_FAULT_BUILD_NULL_POINTER UINT32_C(0x00030042)
/* A builder on the device calls a method that only the host's orchestration has. Allocate, copy and record in the orchestration, and pass addresses in orch_args. */
#define PTO_FAULT_BUILD_HOST_ONLY UINT32_C(0x00030043)
/* A scheduler has no cores. Use fewer AICPU instances, or more clusters. */
#define PTO_FAULT_SCHEDULE_NO_CORES UINT32_C(0x00040001)
/* A task was dispatched to a core that is not free. This is an error of the runtime: report it with the graph and the options. */
#define PTO_FAULT_SCHEDULE_CORE_NOT_FREE UINT32_C(0x00040002)
/* The run ended with ready tasks or busy cores. This is an error of the runtime: report it with the graph and the options. */
#define PTO_FAULT_SCHEDULE_LEFT_WORK UINT32_C(0x00040003)
/* A ready task is not in the state of one. Memory of the arena was overwritten, or this is an error of the runtime. */
#define PTO_FAULT_SCHEDULE_TASK_STATE UINT32_C(0x00040004)
/* A core did not answer the greeting. The core is hung or not started: reset the device. */
#define PTO_FAULT_CORE_NO_ANSWER UINT32_C(0x00050001)
/* A core answered with another core's id. The worker table does not describe this device. */
#define PTO_FAULT_CORE_WRONG_ID UINT32_C(0x00050002)
/* A core is not of the kind that the worker table says. The worker table does not describe this device. */
#define PTO_FAULT_CORE_WRONG_KIND UINT32_C(0x00050003)
/* A core reported a dispatch that it was not given. Look for a kernel that writes outside its buffers. */
#define PTO_FAULT_CORE_WRONG_STATUS UINT32_C(0x00050004)
/* A core did not leave its loop when it was asked to. The kernel that it runs does not return: the report names it. */
#define PTO_FAULT_CORE_NOT_STOPPED UINT32_C(0x00050005)
/* A core took an exception in a kernel. Check the task's arguments against the kernel's; the report says where and at which address. */
#define PTO_FAULT_CORE_EXCEPTION UINT32_C(0x00050006)
/* A task runs on a core for longer than the task budget. The report names kernel and core; raise the task budget if the kernel is right. */
#define PTO_FAULT_STALL_CORE UINT32_C(0x00060001)
/* Tasks are ready and cores of their kind are idle. This is an error of the runtime: report it with the graph and the options. */
#define PTO_FAULT_STALL_READY UINT32_C(0x00060002)
/* Tasks wait for producers that can never complete: a cycle, or a lost edge. The report names tasks and producers; look for a cycle among them. */
#define PTO_FAULT_STALL_DEADLOCK UINT32_C(0x00060003)
/* The builder has not returned and adds nothing. Look for an endless loop in the builder, or raise the stall budget. */
#define PTO_FAULT_STALL_BUILDER UINT32_C(0x00060004)
/* The run took longer than its budget. Raise the run budget, or look at what the report names. */
#define PTO_FAULT_STALL_RUN_BUDGET UINT32_C(0x00060005)
/* An AICPU instance does not return from a step. A kernel or builder that runs on it does not return: the report names it. */
#define PTO_FAULT_STALL_INSTANCE UINT32_C(0x00060006)
/* A trace ring is full, and the host does not read it. Is the host stopped? Else record into larger rings, or into ones that drop events when they are full. */
#define PTO_FAULT_STALL_TRACE UINT32_C(0x00060007)
/* The host cancelled the run. Nothing to do. */
#define PTO_FAULT_RUN_CANCELLED UINT32_C(0x00070001)
/* Host code of the simulator panicked in the run. See the message on standard error; a builder or kernel of yours may be the cause. */
#define PTO_FAULT_RUN_PANIC UINT32_C(0x00070002)
/* LaunchPlan.magic is not that of launch words. The argument of the entry is not the address of launch words: launch through the host library. */
#define PTO_FAULT_LAUNCH_MAGIC UINT32_C(0x00080001)
/* LaunchPlan.abi_major differs from the firmware's. Build host and firmware from the same release. */
#define PTO_FAULT_LAUNCH_ABI_MAJOR UINT32_C(0x00080002)
/* LaunchPlan.abi_minor is newer than the firmware's. Flash the firmware that belongs to this host. */
#define PTO_FAULT_LAUNCH_ABI_MINOR UINT32_C(0x00080003)
/* LaunchPlan.words_bytes is not the size of LaunchWords. Build host and firmware from the same sources. */
#define PTO_FAULT_LAUNCH_WORDS_BYTES UINT32_C(0x00080004)
/* LaunchPlan.layout_hash differs from the firmware's. Build host and firmware from the same sources. */
#define PTO_FAULT_LAUNCH_LAYOUT_HASH UINT32_C(0x00080005)
/* LaunchPlan's arena is not in its GM, or GM is null, misaligned or too large. Launch through the host library. */
#define PTO_FAULT_LAUNCH_ARENA UINT32_C(0x00080006)
/* LaunchPlan.architecture is not an architecture. Use a2a3 or a5. */
#define PTO_FAULT_LAUNCH_ARCHITECTURE UINT32_C(0x00080007)
/* A reserved word of LaunchPlan is not zero, or a switch is neither 0 nor 1. Flash the firmware that belongs to this host. */
#define PTO_FAULT_LAUNCH_RESERVED UINT32_C(0x00080008)
/* LaunchPlan.core_count is not the number of workers in the arena. Launch through the host library. */
#define PTO_FAULT_LAUNCH_CORE_COUNT UINT32_C(0x00080009)
/* A core position is outside the register window, taken twice, or of the other core kind. The table of cores does not describe this device. */
#define PTO_FAULT_LAUNCH_POSITION UINT32_C(0x0008000a)
/* More C builders are at work at once than the firmware has room for. Run fewer devices with C builders at once in one process. */
#define PTO_FAULT_LAUNCH_C_BUILDERS UINT32_C(0x0008000b)
/* An AICPU instance took an exception. The report says where; a builder of yours may be the cause, or a kernel that writes outside its buffers. */
#define PTO_FAULT_FW_EXCEPTION UINT32_C(0x00090001)
/* The firmware panicked. The console says where; a builder of yours may be the cause. */
#define PTO_FAULT_FW_PANIC UINT32_C(0x00090002)
/* The machine ended, or does not answer. The report says how it ended and what its console said; the next run starts another one. */
#define PTO_FAULT_FW_LOST UINT32_C(0x00090003)
/* The window is zero, no power of two, or larger than the region of tasks. Use a power of two, such as 4096. */
#define PTO_FAULT_STREAM_WINDOW_SIZE UINT32_C(0x000a0001)
/* The tensor map has not a power of two of entries, or fewer than 256. Use a power of two of at least 256, such as 16384. */
#define PTO_FAULT_STREAM_MAP_SIZE UINT32_C(0x000a0002)
/* The heap has no ring, more than 8, or rings of a size that is no multiple of 64. Use 1 to 8 rings of a multiple of 64 bytes. */
#define PTO_FAULT_STREAM_HEAP_SIZE UINT32_C(0x000a0003)
/* The ring of argument words or that of edges is zero or larger than its region. Raise arg_words and edges of the capacities (--arg-words, --edge-chunks). */
#define PTO_FAULT_STREAM_RING_SIZE UINT32_C(0x000a0004)
/* An argument's view has more than 5 dimensions, or uses one that it does not have. Merge dimensions, or make one task for each index of the outermost one. */
#define PTO_FAULT_STREAM_VIEW_RANK UINT32_C(0x000a0010)
/* An argument's view has an element outside of its tensor, or none at all. Compare offset, shape and strides with the tensor's size. */
#define PTO_FAULT_STREAM_VIEW_RANGE UINT32_C(0x000a0011)
/* An argument's element type is not one of the supported ones. See ElementType; bytes of any other type can be passed as u8. */
#define PTO_FAULT_STREAM_VIEW_ELEMENT UINT32_C(0x000a0012)
/* Whether an argument's region overlaps an earlier one takes too many steps to decide. Use strides that are multiples of each other, or make the dependency explicit with NoDep and after. */
#define PTO_FAULT_STREAM_VIEW_IRREGULAR UINT32_C(0x000a0013)
/* Two arguments of a task write the same element. Give each output a region of its own. */
#define PTO_FAULT_STREAM_OUT_OVERLAP UINT32_C(0x000a0014)
/* An argument is a tensor of a scope that is closed. Use it inside of its scope, or allocate it in an outer one. */
#define PTO_FAULT_STREAM_STALE_TENSOR UINT32_C(0x000a0015)
/* An argument is of no known kind. Use In, Out, InOut, NoDep or Scalar. */
#define PTO_FAULT_STREAM_ARG_KIND UINT32_C(0x000a0018)
/* A scope is opened deeper than there are heap rings. Raise heap_rings (--heap-rings), or nest less. */
#define PTO_FAULT_STREAM_SCOPE_DEPTH UINT32_C(0x000a0020)
/* A scope is closed that is not the innermost open one, or is closed already. Close each scope once, in the reverse order of opening. */
#define PTO_FAULT_STREAM_SCOPE_NOT_OPEN UINT32_C(0x000a0021)
/* The program returned, and a scope is open. Close each scope, or use StreamBuilder::scope. */
#define PTO_FAULT_STREAM_SCOPE_LEFT_OPEN UINT32_C(0x000a0022)
/* A scope is opened with an unknown dependency mode. Use derived, explicit or manual. */
#define PTO_FAULT_STREAM_SCOPE_MODE UINT32_C(0x000a0028)
/* The window is full, and nothing in it can retire. Raise the window to the size that the report names, publish the task that it names earlier, or let the schedulers run while the program does (concurrent build mode). */
#define PTO_FAULT_STREAM_WINDOW_RING UINT32_C(0x000a0030)
/* The ring of arguments is full, and nothing in it can retire. Raise arg_words (--arg-words) to the size that the report names. */
#define PTO_FAULT_STREAM_ARGS_RING UINT32_C(0x000a0031)
/* The ring of edges is full, and nothing in it can retire. Raise --edge-chunks to the size that the report names, or edges of the capacities to six times that. */
#define PTO_FAULT_STREAM_EDGES_RING UINT32_C(0x000a0032)
/* The tensor map is full, and nothing in it can retire. Raise map_entries (--map-entries) to the size that the report names. */
#define PTO_FAULT_STREAM_MAP_RING UINT32_C(0x000a0033)
/* A heap ring is full of tensors of a scope that is open, or of tasks that cannot complete. Raise heap_bytes (--heap-bytes) to the size that the report names, or close the scope, or publish the task, earlier. */
#define PTO_FAULT_STREAM_HEAP_RING UINT32_C(0x000a0034)
/* The program waits for a task that cannot complete before the program goes on. Publish the task that the report names before you wait, or let the schedulers run while the program does (concurrent build mode). */
#define PTO_FAULT_STREAM_WAIT_FOREVER UINT32_C(0x000a0035)
/* A task has no block, or more than 16,777,215. Ask for one block at least; where there are too many, give each of them more to do. */
#define PTO_FAULT_STREAM_BLOCKS UINT32_C(0x000a0040)
/* A task that starts all of its blocks at once has more of them than the device has cores. Use no more blocks than there are cores of the kind, for a MIX task clusters; or let the blocks spread. */
#define PTO_FAULT_STREAM_SYNC_BLOCKS UINT32_C(0x000a0041)
/* A task mixes kernels for which no cluster of the device has cores. A cluster has one cube core and two vector cores. */
#define PTO_FAULT_STREAM_MIX UINT32_C(0x000a0042)
/* A task's predicate is on an element that is not in GM, or not aligned. Use a tensor that the device allocated. */
#define PTO_FAULT_STREAM_PREDICATE UINT32_C(0x000a0043)
/* The program asks for something while it records that a recording cannot hold. Record tasks with tensors, scopes and their tensors; do the rest before the recording or after it. */
#define PTO_FAULT_STREAM_RECORDING_OPEN UINT32_C(0x000a0050)
/* A recording has more tasks, bindings or words than there is room for. Record less, bind at most 64 tensors and 64 scalars, or raise the window: each slot gives recordings 32 words. */
#define PTO_FAULT_STREAM_RECORDING_FULL UINT32_C(0x000a0051)
/* A recording is replayed that this run did not make. Record and replay in the same run of the program. */
#define PTO_FAULT_STREAM_RECORDING_UNKNOWN UINT32_C(0x000a0052)
/* A replay binds a tensor or scalars that do not fit the recording, or a recording holds a tensor of an outer scope. Bind as many as were recorded, with the same element types, extents and strides; bind tensors of outer scopes. */
#define PTO_FAULT_STREAM_REPLAY_MISFIT UINT32_C(0x000a0053)
/* A replay binds two views that overlap, and the recording writes one of them. Bind views without an element in common, or record the program with one tensor for both bindings. */
#define PTO_FAULT_STREAM_REPLAY_ALIAS UINT32_C(0x000a0054)
/* A recording is ended or a bound scalar used, and no recording is open. Use them in the body of StreamBuilder::record only. */
#define PTO_FAULT_STREAM_NOT_RECORDING UINT32_C(0x000a0055)
/* The words are no plan, or one of another version or length. Compile the workload again with this release. */
#define PTO_FAULT_PLAN_HEADER UINT32_C(0x000b0001)
/* A plan has more of something than the builder has room for. Make two workloads of it; the report says what there is too much of. */
#define PTO_FAULT_PLAN_LIMIT UINT32_C(0x000b0002)
/* A part of a plan does not end where the plan says that it does. Compile the workload again; the plan was damaged. */
#define PTO_FAULT_PLAN_LENGTH UINT32_C(0x000b0003)
/* A word of a plan has a code that is not known. Compile the workload again; the plan was damaged. */
#define PTO_FAULT_PLAN_CODE UINT32_C(0x000b0004)
/* The nodes or expressions of a plan are nested too deep. Nest fewer loops, or compute parts of the expression in slots. */
#define PTO_FAULT_PLAN_DEPTH UINT32_C(0x000b0005)
/* A part of a plan has a type that does not fit its position. Compile the workload again; the plan was damaged. */
#define PTO_FAULT_PLAN_TYPE UINT32_C(0x000b0006)
/* A plan uses a tensor, kernel, symbol, array, variable or slot that it does not have. Compile the workload again; the plan was damaged. */
#define PTO_FAULT_PLAN_NAME UINT32_C(0x000b0007)
/* The bindings are not in GM, or not those of the plan. Bind the workload again, with memory that the device allocated. */
#define PTO_FAULT_PLAN_BINDINGS UINT32_C(0x000b0008)
/* An expression of a workload divides by zero. The report says where; keep the divisor from zero there. */
#define PTO_FAULT_PLAN_DIVISION UINT32_C(0x000b0010)
/* An index of a workload is not in the dimension of its tensor. The report says where; compare the sizes of the loops with those of the tensor. */
#define PTO_FAULT_PLAN_INDEX UINT32_C(0x000b0011)
/* A tile of a workload leaves its tensor. The report says where; give the view a range, so that the tile is partial, or choose another tile. */
#define PTO_FAULT_PLAN_TILE UINT32_C(0x000b0012)
/* An array of an axis is shorter than the axis needs. Bind an array of the length that the report names. */
#define PTO_FAULT_PLAN_ARRAY UINT32_C(0x000b0013)
/* An array of an axis has an element that cannot be: a negative length, or a beginning before the one before it. The report says which; correct it. */
#define PTO_FAULT_PLAN_ELEMENT UINT32_C(0x000b0014)
/* The loops of a workload make turn after turn without a task. The report names the loop; look at its size, and at the predicates of its tasks. */
#define PTO_FAULT_PLAN_TURNS UINT32_C(0x000b0015)
/* The processes of a pipeline wait for each other. The report says who waits for whom; make a channel deeper, or change the order of sends and receives. */
#define PTO_FAULT_PLAN_DEADLOCK UINT32_C(0x000b0016)
/* A tile kernel ended with a fault. The report names kernel, operand and index. */
#define PTO_FAULT_PLAN_KERNEL UINT32_C(0x000b0020)
/* A transfer to or from another rank has failed. The report of the group names ranks, hosts and the cause. */
#define PTO_FAULT_TRANSFER_FAILED UINT32_C(0x000c0001)
/* A transfer waits for longer than the stall budget, and nothing else gets on. The report names the task; look why the other rank does not do its part, or raise the stall budget. */
#define PTO_FAULT_TRANSFER_STALL UINT32_C(0x000c0002)
/* A transfer is ready, and nothing on this device moves it. Run the program on a member of a group: Group::open_local, or Group::join. */
#define PTO_FAULT_TRANSFER_NO_ENGINE UINT32_C(0x000c0003)
/* A call names a rank that the communicator does not have. Ranks are 0 to the number of ranks - 1. */
#define PTO_FAULT_TRANSFER_RANK UINT32_C(0x000c0004)
/* A tensor of a transfer is not dense, or not as large as the call needs. Transfer dense views; the parts of a collective are as large as its documentation says. */
#define PTO_FAULT_TRANSFER_TENSOR UINT32_C(0x000c0005)
/* A call names a window that the group does not have, or bytes outside of the window. Make the window with Group::window before the run; compare offset and size with its bytes. */
#define PTO_FAULT_TRANSFER_WINDOW UINT32_C(0x000c0006)
/* A call names a signal slot that a rank does not have. A rank has 256 signal slots, from 0 on. */
#define PTO_FAULT_TRANSFER_SLOT UINT32_C(0x000c0007)
/* The words of the group in the launch arguments are damaged. Run the program with Group::run, and make its communicator from launch_args(). */
#define PTO_FAULT_TRANSFER_WORDS UINT32_C(0x000c0008)
/* A reduction has no kernel for the element type. Reduce f16, bf16, f32, f64, or integers of 8 to 64 bits. */
#define PTO_FAULT_TRANSFER_TYPE UINT32_C(0x000c0009)
/* A program has used up the numbers that identify its transfers. A group has at most 32,768 ranks, a launch 16,384 programs, a communicator 65,535 sub-groups, nested three deep, and 2,147,483,647 calls. */
#define PTO_FAULT_TRANSFER_TAGS UINT32_C(0x000c000a)

/* Identity of the arena. */
typedef struct pto_runtime_header {
    /* `RUNTIME_MAGIC`. */
    PTO_ALIGN(8) uint64_t magic;
    /* `ABI_MAJOR`. */
    uint16_t abi_major;
    /* `ABI_MINOR`. */
    uint16_t abi_minor;
    /* Size of `Runtime`. */
    uint32_t header_bytes;
    /* `layout::LAYOUT_HASH`. */
    uint64_t layout_hash;
    /* Size of the arena, regions included. */
    uint64_t total_bytes;
    /* Address of the arena in GM. */
    pto_gm_addr arena_address;
    /* First address of GM. */
    pto_gm_addr gm_address;
    /* Size of GM. */
    uint64_t gm_bytes;
    /* Generation of this run's task ids; never zero. */
    uint32_t run_epoch;
    /* Which bring-up the cores are to answer; never zero. */
    uint32_t bring_up_epoch;
} pto_runtime_header;
PTO_STATIC_ASSERT(sizeof(pto_runtime_header) == 64, "size of pto_runtime_header");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, magic) == 0, "offset of pto_runtime_header.magic");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, abi_major) == 8, "offset of pto_runtime_header.abi_major");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, abi_minor) == 10, "offset of pto_runtime_header.abi_minor");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, header_bytes) == 12, "offset of pto_runtime_header.header_bytes");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, layout_hash) == 16, "offset of pto_runtime_header.layout_hash");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, total_bytes) == 24, "offset of pto_runtime_header.total_bytes");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, arena_address) == 32, "offset of pto_runtime_header.arena_address");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, gm_address) == 40, "offset of pto_runtime_header.gm_address");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, gm_bytes) == 48, "offset of pto_runtime_header.gm_bytes");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, run_epoch) == 56, "offset of pto_runtime_header.run_epoch");
PTO_STATIC_ASSERT(offsetof(pto_runtime_header, bring_up_epoch) == 60, "offset of pto_runtime_header.bring_up_epoch");

/* Configuration of one run. */
typedef struct pto_run_config {
    /* A `RuntimeVariant`. */
    PTO_ALIGN(8) uint32_t variant;
    /* A `BuildMode`. */
    uint32_t build_mode;
    /* A `FanoutStrategy`. */
    uint32_t fanout;
    /* `RunFlags`. */
    uint32_t flags;
    /* AICPU instances. */
    uint32_t aicpu_instances;
    /* Valid entries of the worker table. */
    uint32_t worker_count;
    /* Symbol of the builder's name; zero: none. */
    uint64_t builder;
    /* How long one task may run on a core. */
    uint64_t task_budget_ns;
    /* How long a run may go without progress while no core is busy. */
    uint64_t stall_budget_ns;
    /* How long a core may take to answer the greeting. */
    uint64_t bring_up_budget_ns;
    /* How long the whole run may take; zero: no limit. */
    uint64_t run_budget_ns;
} pto_run_config;
PTO_STATIC_ASSERT(sizeof(pto_run_config) == 64, "size of pto_run_config");
PTO_STATIC_ASSERT(offsetof(pto_run_config, variant) == 0, "offset of pto_run_config.variant");
PTO_STATIC_ASSERT(offsetof(pto_run_config, build_mode) == 4, "offset of pto_run_config.build_mode");
PTO_STATIC_ASSERT(offsetof(pto_run_config, fanout) == 8, "offset of pto_run_config.fanout");
PTO_STATIC_ASSERT(offsetof(pto_run_config, flags) == 12, "offset of pto_run_config.flags");
PTO_STATIC_ASSERT(offsetof(pto_run_config, aicpu_instances) == 16, "offset of pto_run_config.aicpu_instances");
PTO_STATIC_ASSERT(offsetof(pto_run_config, worker_count) == 20, "offset of pto_run_config.worker_count");
PTO_STATIC_ASSERT(offsetof(pto_run_config, builder) == 24, "offset of pto_run_config.builder");
PTO_STATIC_ASSERT(offsetof(pto_run_config, task_budget_ns) == 32, "offset of pto_run_config.task_budget_ns");
PTO_STATIC_ASSERT(offsetof(pto_run_config, stall_budget_ns) == 40, "offset of pto_run_config.stall_budget_ns");
PTO_STATIC_ASSERT(offsetof(pto_run_config, bring_up_budget_ns) == 48, "offset of pto_run_config.bring_up_budget_ns");
PTO_STATIC_ASSERT(offsetof(pto_run_config, run_budget_ns) == 56, "offset of pto_run_config.run_budget_ns");

/* A part of the arena. */
typedef struct pto_region {
    /* Bytes from the start of the arena. */
    PTO_ALIGN(8) uint64_t offset;
    /* Size in bytes. */
    uint64_t bytes;
} pto_region;
PTO_STATIC_ASSERT(sizeof(pto_region) == 16, "size of pto_region");
PTO_STATIC_ASSERT(offsetof(pto_region, offset) == 0, "offset of pto_region.offset");
PTO_STATIC_ASSERT(offsetof(pto_region, bytes) == 8, "offset of pto_region.bytes");

/* What the host passes to a builder: `LaunchArgs` in memory. */
typedef struct pto_orch_args {
    /* How many words the program has. */
    PTO_ALIGN(8) uint32_t orch_argc;
    /* How many words behind them describe the group of the run; 0: it has none. */
    uint32_t group_argc;
    /* Not used; zero. */
    uint32_t reserved[14];
    /* The words. */
    uint64_t orch_args[128];
} pto_orch_args;
PTO_STATIC_ASSERT(sizeof(pto_orch_args) == 1088, "size of pto_orch_args");
PTO_STATIC_ASSERT(offsetof(pto_orch_args, orch_argc) == 0, "offset of pto_orch_args.orch_argc");
PTO_STATIC_ASSERT(offsetof(pto_orch_args, group_argc) == 4, "offset of pto_orch_args.group_argc");
PTO_STATIC_ASSERT(offsetof(pto_orch_args, reserved) == 8, "offset of pto_orch_args.reserved");
PTO_STATIC_ASSERT(offsetof(pto_orch_args, orch_args) == 64, "offset of pto_orch_args.orch_args");

/* One worker of the device. */
typedef struct pto_worker_entry {
    /* A `CoreKind`. */
    PTO_ALIGN(4) uint32_t kind;
    /* Workers with the same number share a cluster (at most 1 AIC and 2 AIV). */
    uint32_t cluster;
} pto_worker_entry;
PTO_STATIC_ASSERT(sizeof(pto_worker_entry) == 8, "size of pto_worker_entry");
PTO_STATIC_ASSERT(offsetof(pto_worker_entry, kind) == 0, "offset of pto_worker_entry.kind");
PTO_STATIC_ASSERT(offsetof(pto_worker_entry, cluster) == 4, "offset of pto_worker_entry.cluster");

/* What termination is decided from, each word in a line of its own; and which graph the arena holds. */
typedef struct pto_progress {
    /* atomic: 1 after the last publish. */
    PTO_ALIGN(64) uint32_t build_done;
    /* atomic: Tasks of the graph that the loader has put into the arena. */
    uint32_t loaded_tasks;
    /* atomic: Edges of it. */
    uint64_t loaded_edges;
    /* atomic: `GraphHeader.checksum` of its image. */
    uint64_t loaded_checksum;
    /* atomic: The run epoch in which it was started last; zero: it is not complete. */
    uint32_t loaded_run;
    /* atomic: Not used; zero. */
    uint32_t build_reserved[9];
    /* atomic: Tasks published (or about to be) whose consumers have not all been released. */
    uint64_t outstanding;
    /* atomic: Not used; zero. */
    uint64_t outstanding_reserved[7];
} pto_progress;
PTO_STATIC_ASSERT(sizeof(pto_progress) == 128, "size of pto_progress");
PTO_STATIC_ASSERT(offsetof(pto_progress, build_done) == 0, "offset of pto_progress.build_done");
PTO_STATIC_ASSERT(offsetof(pto_progress, loaded_tasks) == 4, "offset of pto_progress.loaded_tasks");
PTO_STATIC_ASSERT(offsetof(pto_progress, loaded_edges) == 8, "offset of pto_progress.loaded_edges");
PTO_STATIC_ASSERT(offsetof(pto_progress, loaded_checksum) == 16, "offset of pto_progress.loaded_checksum");
PTO_STATIC_ASSERT(offsetof(pto_progress, loaded_run) == 24, "offset of pto_progress.loaded_run");
PTO_STATIC_ASSERT(offsetof(pto_progress, build_reserved) == 28, "offset of pto_progress.build_reserved");
PTO_STATIC_ASSERT(offsetof(pto_progress, outstanding) == 64, "offset of pto_progress.outstanding");
PTO_STATIC_ASSERT(offsetof(pto_progress, outstanding_reserved) == 72, "offset of pto_progress.outstanding_reserved");

/* What one AICPU instance says of itself; written by it alone. */
typedef struct pto_instance_line {
    /* atomic: 0 not started, 1 running, 2 returned. */
    PTO_ALIGN(64) uint32_t phase;
    /* atomic: Cores with a dispatch that has not been collected. */
    uint32_t busy_cores;
    /* atomic: Tasks added. */
    uint64_t added;
    /* atomic: Tasks published. */
    uint64_t published;
    /* atomic: Tasks completed. */
    uint64_t completed;
    /* atomic: Edges added. */
    uint64_t edges;
    /* atomic: Edges whose producer had completed. */
    uint64_t edges_satisfied;
    /* atomic: Cores without a dispatch, by kind; only where cores may have two dispatches. */
    uint32_t free_cores[2];
    /* atomic: Kernels of published chains, without the first of each. */
    uint64_t chained;
} pto_instance_line;
PTO_STATIC_ASSERT(sizeof(pto_instance_line) == 64, "size of pto_instance_line");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, phase) == 0, "offset of pto_instance_line.phase");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, busy_cores) == 4, "offset of pto_instance_line.busy_cores");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, added) == 8, "offset of pto_instance_line.added");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, published) == 16, "offset of pto_instance_line.published");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, completed) == 24, "offset of pto_instance_line.completed");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, edges) == 32, "offset of pto_instance_line.edges");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, edges_satisfied) == 40, "offset of pto_instance_line.edges_satisfied");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, free_cores) == 48, "offset of pto_instance_line.free_cores");
PTO_STATIC_ASSERT(offsetof(pto_instance_line, chained) == 56, "offset of pto_instance_line.chained");

/* The first fault of a run, and whether its epitaph is written. */
typedef struct pto_fault_line {
    /* atomic: The fault's code; zero: none. */
    PTO_ALIGN(64) uint32_t code;
    /* atomic: 1 when the epitaph is complete. */
    uint32_t epitaph_ready;
    /* atomic: Not used; zero. */
    uint64_t reserved[7];
} pto_fault_line;
PTO_STATIC_ASSERT(sizeof(pto_fault_line) == 64, "size of pto_fault_line");
PTO_STATIC_ASSERT(offsetof(pto_fault_line, code) == 0, "offset of pto_fault_line.code");
PTO_STATIC_ASSERT(offsetof(pto_fault_line, epitaph_ready) == 4, "offset of pto_fault_line.epitaph_ready");
PTO_STATIC_ASSERT(offsetof(pto_fault_line, reserved) == 8, "offset of pto_fault_line.reserved");

/* A task that waits, and one producer that it waits for. */
typedef struct pto_blocked_task {
    /* Slot of the task that waits. */
    PTO_ALIGN(4) uint32_t task;
    /* Producers that have not completed. */
    uint32_t fanin;
    /* Slot of one of them, or `NOBODY` when no edge leads here (a lost edge). */
    uint32_t producer;
    /* `TaskState` of that producer. */
    uint32_t producer_state;
} pto_blocked_task;
PTO_STATIC_ASSERT(sizeof(pto_blocked_task) == 16, "size of pto_blocked_task");
PTO_STATIC_ASSERT(offsetof(pto_blocked_task, task) == 0, "offset of pto_blocked_task.task");
PTO_STATIC_ASSERT(offsetof(pto_blocked_task, fanin) == 4, "offset of pto_blocked_task.fanin");
PTO_STATIC_ASSERT(offsetof(pto_blocked_task, producer) == 8, "offset of pto_blocked_task.producer");
PTO_STATIC_ASSERT(offsetof(pto_blocked_task, producer_state) == 12, "offset of pto_blocked_task.producer_state");

/* The post-mortem of the first fault: who, which task, which kernel, which core, since when. */
typedef struct pto_epitaph {
    /* The fault's code. */
    PTO_ALIGN(8) uint32_t fault;
    /* The AICPU instance that raised it, or `NOBODY`. */
    uint32_t instance;
    /* The worker concerned, or `NOBODY`. */
    uint32_t core;
    /* The func id concerned, or `NOBODY`. */
    uint32_t func_id;
    /* The task concerned, or `TaskId::NONE`. */
    pto_task_id task;
    /* GM address of the kernel concerned. */
    uint64_t kernel;
    /* The instance's clock when the fault was raised. */
    uint64_t time_ns;
    /* For how long the cause had lasted. */
    uint64_t since_ns;
    /* What was found, what was expected, as the fault's sentence says. */
    uint64_t detail[2];
    /* Tasks added. */
    uint64_t added;
    /* Tasks published. */
    uint64_t published;
    /* Tasks completed. */
    uint64_t completed;
    /* Ids in the ready queue, per core kind. */
    uint32_t ready[2];
    /* Cores with a dispatch, over all instances. */
    uint32_t busy_cores;
    /* How many tasks are blocked. */
    uint32_t blocked_count;
    /* The first of them. */
    pto_blocked_task blocked[16];
    /* The ring concerned, of the streaming runtime: index into `StreamHeader.rings`, plus 1; zero: none. */
    uint32_t ring;
    /* The argument concerned, plus 1; zero: none. */
    uint32_t argument;
    /* The scope concerned: its number in the run. */
    uint64_t scope;
    /* The part of the task concerned, as its `BlockContext`; zero: the task has one only. */
    uint64_t part;
    /* Tasks that wait for several cores, or by their priority. */
    uint32_t shaped;
    /* Not used; zero. */
    uint32_t reserved_half;
    /* Not used; zero. */
    uint64_t reserved[15];
} pto_epitaph;
PTO_STATIC_ASSERT(sizeof(pto_epitaph) == 512, "size of pto_epitaph");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, fault) == 0, "offset of pto_epitaph.fault");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, instance) == 4, "offset of pto_epitaph.instance");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, core) == 8, "offset of pto_epitaph.core");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, func_id) == 12, "offset of pto_epitaph.func_id");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, task) == 16, "offset of pto_epitaph.task");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, kernel) == 24, "offset of pto_epitaph.kernel");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, time_ns) == 32, "offset of pto_epitaph.time_ns");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, since_ns) == 40, "offset of pto_epitaph.since_ns");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, detail) == 48, "offset of pto_epitaph.detail");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, added) == 64, "offset of pto_epitaph.added");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, published) == 72, "offset of pto_epitaph.published");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, completed) == 80, "offset of pto_epitaph.completed");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, ready) == 88, "offset of pto_epitaph.ready");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, busy_cores) == 96, "offset of pto_epitaph.busy_cores");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, blocked_count) == 100, "offset of pto_epitaph.blocked_count");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, blocked) == 104, "offset of pto_epitaph.blocked");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, ring) == 360, "offset of pto_epitaph.ring");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, argument) == 364, "offset of pto_epitaph.argument");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, scope) == 368, "offset of pto_epitaph.scope");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, part) == 376, "offset of pto_epitaph.part");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, shaped) == 384, "offset of pto_epitaph.shaped");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, reserved_half) == 388, "offset of pto_epitaph.reserved_half");
PTO_STATIC_ASSERT(offsetof(pto_epitaph, reserved) == 392, "offset of pto_epitaph.reserved");

/* One of the two dispatches that a core may have. */
typedef struct pto_dispatch_words {
    /* atomic: GM address of the kernel's code. */
    PTO_ALIGN(8) uint64_t kernel;
    /* atomic: GM address of the arguments. */
    uint64_t args;
    /* atomic: Slot of the task. */
    uint32_t task;
    /* atomic: Not used; zero. */
    uint32_t reserved;
} pto_dispatch_words;
PTO_STATIC_ASSERT(sizeof(pto_dispatch_words) == 24, "size of pto_dispatch_words");
PTO_STATIC_ASSERT(offsetof(pto_dispatch_words, kernel) == 0, "offset of pto_dispatch_words.kernel");
PTO_STATIC_ASSERT(offsetof(pto_dispatch_words, args) == 8, "offset of pto_dispatch_words.args");
PTO_STATIC_ASSERT(offsetof(pto_dispatch_words, task) == 16, "offset of pto_dispatch_words.task");
PTO_STATIC_ASSERT(offsetof(pto_dispatch_words, reserved) == 20, "offset of pto_dispatch_words.reserved");

/* What AICPU writes for one core. */
typedef struct pto_scheduler_line {
    /* atomic: Bring-up epoch, written to greet the core. */
    PTO_ALIGN(64) uint32_t aicpu_ready;
    /* atomic: `CONTROL_RUN` or `CONTROL_QUIT`. */
    uint32_t control;
    /* atomic: The dispatch id; written last. */
    uint32_t doorbell;
    /* atomic: Not used; zero. */
    uint32_t reserved;
    /* The dispatches, by the low bit of their ids. */
    pto_dispatch_words dispatches[2];
} pto_scheduler_line;
PTO_STATIC_ASSERT(sizeof(pto_scheduler_line) == 64, "size of pto_scheduler_line");
PTO_STATIC_ASSERT(offsetof(pto_scheduler_line, aicpu_ready) == 0, "offset of pto_scheduler_line.aicpu_ready");
PTO_STATIC_ASSERT(offsetof(pto_scheduler_line, control) == 4, "offset of pto_scheduler_line.control");
PTO_STATIC_ASSERT(offsetof(pto_scheduler_line, doorbell) == 8, "offset of pto_scheduler_line.doorbell");
PTO_STATIC_ASSERT(offsetof(pto_scheduler_line, reserved) == 12, "offset of pto_scheduler_line.reserved");
PTO_STATIC_ASSERT(offsetof(pto_scheduler_line, dispatches) == 16, "offset of pto_scheduler_line.dispatches");

/* What the core writes. */
typedef struct pto_worker_line {
    /* atomic: Bring-up epoch, echoed when the core is ready. */
    PTO_ALIGN(64) uint32_t aicore_done;
    /* atomic: The core's own id. */
    uint32_t core_id;
    /* atomic: The core's own kind. */
    uint32_t kind;
    /* atomic: `FINISHED` and the dispatch id. */
    uint32_t status;
    /* atomic: Tasks run since bring-up. */
    uint64_t tasks_run;
    /* atomic: Time in kernels since bring-up, if the run asks for it. */
    uint64_t busy_ns;
    /* atomic: Which kernel of a chain it runs, from 1 on; zero: it runs none. */
    uint32_t chain_kernel;
    /* atomic: Its func id. */
    uint32_t chain_func;
    /* atomic: Not used; zero. */
    uint64_t reserved[3];
} pto_worker_line;
PTO_STATIC_ASSERT(sizeof(pto_worker_line) == 64, "size of pto_worker_line");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, aicore_done) == 0, "offset of pto_worker_line.aicore_done");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, core_id) == 4, "offset of pto_worker_line.core_id");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, kind) == 8, "offset of pto_worker_line.kind");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, status) == 12, "offset of pto_worker_line.status");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, tasks_run) == 16, "offset of pto_worker_line.tasks_run");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, busy_ns) == 24, "offset of pto_worker_line.busy_ns");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, chain_kernel) == 32, "offset of pto_worker_line.chain_kernel");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, chain_func) == 36, "offset of pto_worker_line.chain_func");
PTO_STATIC_ASSERT(offsetof(pto_worker_line, reserved) == 40, "offset of pto_worker_line.reserved");

/* The two lines of one core. */
typedef struct pto_handshake {
    /* Written by AICPU. */
    PTO_ALIGN(64) pto_scheduler_line scheduler;
    /* Written by the core. */
    pto_worker_line worker;
} pto_handshake;
PTO_STATIC_ASSERT(sizeof(pto_handshake) == 128, "size of pto_handshake");
PTO_STATIC_ASSERT(offsetof(pto_handshake, scheduler) == 0, "offset of pto_handshake.scheduler");
PTO_STATIC_ASSERT(offsetof(pto_handshake, worker) == 64, "offset of pto_handshake.worker");

/* The fixed-size block at the start of the runtime arena. */
typedef struct pto_runtime {
    /* Identity. */
    PTO_ALIGN(64) pto_runtime_header header;
    /* Configuration. */
    pto_run_config config;
    /* Where the regions are. */
    pto_region regions[8];
    /* The builder's arguments. */
    pto_orch_args orch;
    /* GM address of the code of each func id; zero: not registered. */
    uint64_t kernel_addrs[1024];
    /* The workers. */
    pto_worker_entry worker_table[128];
    /* Termination. */
    pto_progress progress;
    /* Per AICPU instance. */
    pto_instance_line instances[16];
    /* The first fault. */
    pto_fault_line fault;
    /* Its post-mortem. */
    pto_epitaph epitaph;
    /* Handshake lines, by worker. */
    pto_handshake workers[128];
} pto_runtime;
PTO_STATIC_ASSERT(sizeof(pto_runtime) == 28672, "size of pto_runtime");
PTO_STATIC_ASSERT(offsetof(pto_runtime, header) == 0, "offset of pto_runtime.header");
PTO_STATIC_ASSERT(offsetof(pto_runtime, config) == 64, "offset of pto_runtime.config");
PTO_STATIC_ASSERT(offsetof(pto_runtime, regions) == 128, "offset of pto_runtime.regions");
PTO_STATIC_ASSERT(offsetof(pto_runtime, orch) == 256, "offset of pto_runtime.orch");
PTO_STATIC_ASSERT(offsetof(pto_runtime, kernel_addrs) == 1344, "offset of pto_runtime.kernel_addrs");
PTO_STATIC_ASSERT(offsetof(pto_runtime, worker_table) == 9536, "offset of pto_runtime.worker_table");
PTO_STATIC_ASSERT(offsetof(pto_runtime, progress) == 10560, "offset of pto_runtime.progress");
PTO_STATIC_ASSERT(offsetof(pto_runtime, instances) == 10688, "offset of pto_runtime.instances");
PTO_STATIC_ASSERT(offsetof(pto_runtime, fault) == 11712, "offset of pto_runtime.fault");
PTO_STATIC_ASSERT(offsetof(pto_runtime, epitaph) == 11776, "offset of pto_runtime.epitaph");
PTO_STATIC_ASSERT(offsetof(pto_runtime, workers) == 12288, "offset of pto_runtime.workers");

/* A task: everything a scheduler touches on the way through, in one 64-byte line. Its arguments are in the payload region, from word `payload`, followed by one word of block context. */
typedef struct pto_task {
    /* atomic: Producers not yet complete; plus `UNPUBLISHED` until the builder publishes. */
    PTO_ALIGN(64) uint32_t fanin;
    /* atomic: Consumers appended; `CLOSED` when the task has completed. */
    uint32_t fanout;
    /* atomic: A `TaskState`. */
    uint8_t state;
    /* atomic: Guards `fanout` under the `locked` strategy. */
    uint8_t lock;
    /* atomic: Which kernel. */
    uint16_t func_id;
    /* atomic: Producers counted so far; becomes `fanin` when the task is published. */
    uint32_t edges_in;
    /* atomic: GM address of the kernel's code. */
    uint64_t kernel;
    /* atomic: First word of the arguments in the payload region. */
    uint32_t payload;
    /* atomic: How many arguments. */
    uint8_t arg_count;
    /* atomic: A `CoreKind`, and `SHAPED`. */
    uint8_t kind;
    /* atomic: The worker that the task was dispatched to. */
    uint16_t core;
    /* atomic: The generation of this slot. */
    uint32_t generation;
    /* atomic: First chunk of the fanout beyond the inline consumers, or `NO_CHUNK`. */
    uint32_t first_chunk;
    /* atomic: Last chunk; the builder's own. A launch of a session has no chunks: here is the time that it may take, in microseconds, or `NO_CHUNK`, where it has that of the run. */
    uint32_t last_chunk;
    /* atomic: The first consumers, as slots. */
    uint32_t consumers[5];
} pto_task;
PTO_STATIC_ASSERT(sizeof(pto_task) == 64, "size of pto_task");
PTO_STATIC_ASSERT(offsetof(pto_task, fanin) == 0, "offset of pto_task.fanin");
PTO_STATIC_ASSERT(offsetof(pto_task, fanout) == 4, "offset of pto_task.fanout");
PTO_STATIC_ASSERT(offsetof(pto_task, state) == 8, "offset of pto_task.state");
PTO_STATIC_ASSERT(offsetof(pto_task, lock) == 9, "offset of pto_task.lock");
PTO_STATIC_ASSERT(offsetof(pto_task, func_id) == 10, "offset of pto_task.func_id");
PTO_STATIC_ASSERT(offsetof(pto_task, edges_in) == 12, "offset of pto_task.edges_in");
PTO_STATIC_ASSERT(offsetof(pto_task, kernel) == 16, "offset of pto_task.kernel");
PTO_STATIC_ASSERT(offsetof(pto_task, payload) == 24, "offset of pto_task.payload");
PTO_STATIC_ASSERT(offsetof(pto_task, arg_count) == 28, "offset of pto_task.arg_count");
PTO_STATIC_ASSERT(offsetof(pto_task, kind) == 29, "offset of pto_task.kind");
PTO_STATIC_ASSERT(offsetof(pto_task, core) == 30, "offset of pto_task.core");
PTO_STATIC_ASSERT(offsetof(pto_task, generation) == 32, "offset of pto_task.generation");
PTO_STATIC_ASSERT(offsetof(pto_task, first_chunk) == 36, "offset of pto_task.first_chunk");
PTO_STATIC_ASSERT(offsetof(pto_task, last_chunk) == 40, "offset of pto_task.last_chunk");
PTO_STATIC_ASSERT(offsetof(pto_task, consumers) == 44, "offset of pto_task.consumers");

/* Further consumers of a task. `next` and the consumers are valid as far as `Task::fanout` counts. */
typedef struct pto_edge_chunk {
    /* atomic: The next chunk. */
    PTO_ALIGN(64) uint32_t next;
    /* atomic: Consumers, as slots. */
    uint32_t consumers[15];
} pto_edge_chunk;
PTO_STATIC_ASSERT(sizeof(pto_edge_chunk) == 64, "size of pto_edge_chunk");
PTO_STATIC_ASSERT(offsetof(pto_edge_chunk, next) == 0, "offset of pto_edge_chunk.next");
PTO_STATIC_ASSERT(offsetof(pto_edge_chunk, consumers) == 4, "offset of pto_edge_chunk.consumers");

/* Head and tail of one queue. Positions only grow; they go on from run to run. */
typedef struct pto_queue_ends {
    /* atomic: Next position to pop. */
    PTO_ALIGN(64) uint64_t head;
    /* atomic: Keeps the ends in lines of their own. */
    uint64_t head_line[7];
    /* atomic: Next position to push. */
    uint64_t tail;
    /* atomic: Keeps the ends in lines of their own. */
    uint64_t tail_line[7];
} pto_queue_ends;
PTO_STATIC_ASSERT(sizeof(pto_queue_ends) == 128, "size of pto_queue_ends");
PTO_STATIC_ASSERT(offsetof(pto_queue_ends, head) == 0, "offset of pto_queue_ends.head");
PTO_STATIC_ASSERT(offsetof(pto_queue_ends, head_line) == 8, "offset of pto_queue_ends.head_line");
PTO_STATIC_ASSERT(offsetof(pto_queue_ends, tail) == 64, "offset of pto_queue_ends.tail");
PTO_STATIC_ASSERT(offsetof(pto_queue_ends, tail_line) == 72, "offset of pto_queue_ends.tail_line");

/* The writer's end of one ring. */
typedef struct pto_log_cursor {
    /* atomic: Entries written since the arena was made. */
    PTO_ALIGN(64) uint64_t written;
    /* atomic: Not used; zero. */
    uint64_t reserved[7];
} pto_log_cursor;
PTO_STATIC_ASSERT(sizeof(pto_log_cursor) == 64, "size of pto_log_cursor");
PTO_STATIC_ASSERT(offsetof(pto_log_cursor, written) == 0, "offset of pto_log_cursor.written");
PTO_STATIC_ASSERT(offsetof(pto_log_cursor, reserved) == 8, "offset of pto_log_cursor.reserved");

/* One entry. */
typedef struct pto_log_entry {
    /* atomic: The entry's number plus one, low 32 bits; zero while it is written. */
    PTO_ALIGN(64) uint32_t stamp;
    /* atomic: 1 error .. 5 trace, as in the `log` crate. */
    uint8_t level;
    /* atomic: 1 if the message goes on in the next entry. */
    uint8_t continues;
    /* atomic: Bytes of text here. */
    uint16_t text_bytes;
    /* atomic: The instance's clock. */
    uint64_t time_ns;
    /* atomic: UTF-8, little-endian words. */
    uint64_t text[14];
} pto_log_entry;
PTO_STATIC_ASSERT(sizeof(pto_log_entry) == 128, "size of pto_log_entry");
PTO_STATIC_ASSERT(offsetof(pto_log_entry, stamp) == 0, "offset of pto_log_entry.stamp");
PTO_STATIC_ASSERT(offsetof(pto_log_entry, level) == 4, "offset of pto_log_entry.level");
PTO_STATIC_ASSERT(offsetof(pto_log_entry, continues) == 5, "offset of pto_log_entry.continues");
PTO_STATIC_ASSERT(offsetof(pto_log_entry, text_bytes) == 6, "offset of pto_log_entry.text_bytes");
PTO_STATIC_ASSERT(offsetof(pto_log_entry, time_ns) == 8, "offset of pto_log_entry.time_ns");
PTO_STATIC_ASSERT(offsetof(pto_log_entry, text) == 16, "offset of pto_log_entry.text");

/* What the trace region consists of; written by the host. */
typedef struct pto_trace_header {
    /* Rings of AICPU instances. */
    PTO_ALIGN(4) uint32_t instances;
    /* Events that the ring of an instance holds: a power of two. */
    uint32_t instance_events;
    /* Rings of cores. */
    uint32_t cores;
    /* Events that the ring of a core holds: a power of two. */
    uint32_t core_events;
    /* Not used; zero. */
    uint32_t reserved[12];
} pto_trace_header;
PTO_STATIC_ASSERT(sizeof(pto_trace_header) == 64, "size of pto_trace_header");
PTO_STATIC_ASSERT(offsetof(pto_trace_header, instances) == 0, "offset of pto_trace_header.instances");
PTO_STATIC_ASSERT(offsetof(pto_trace_header, instance_events) == 4, "offset of pto_trace_header.instance_events");
PTO_STATIC_ASSERT(offsetof(pto_trace_header, cores) == 8, "offset of pto_trace_header.cores");
PTO_STATIC_ASSERT(offsetof(pto_trace_header, core_events) == 12, "offset of pto_trace_header.core_events");
PTO_STATIC_ASSERT(offsetof(pto_trace_header, reserved) == 16, "offset of pto_trace_header.reserved");

/* The writer's end of one ring. */
typedef struct pto_trace_cursor {
    /* atomic: Events written since the run began, overwritten ones included. */
    PTO_ALIGN(64) uint64_t written;
    /* atomic: Events that a full ring did not take. */
    uint64_t refused;
    /* atomic: Not used; zero. */
    uint64_t reserved[6];
} pto_trace_cursor;
PTO_STATIC_ASSERT(sizeof(pto_trace_cursor) == 64, "size of pto_trace_cursor");
PTO_STATIC_ASSERT(offsetof(pto_trace_cursor, written) == 0, "offset of pto_trace_cursor.written");
PTO_STATIC_ASSERT(offsetof(pto_trace_cursor, refused) == 8, "offset of pto_trace_cursor.refused");
PTO_STATIC_ASSERT(offsetof(pto_trace_cursor, reserved) == 16, "offset of pto_trace_cursor.reserved");

/* The reader's end of one ring, in a line of its own; of rings whose writers wait. */
typedef struct pto_trace_reader {
    /* atomic: Events that the host has read. */
    PTO_ALIGN(64) uint64_t read;
    /* atomic: Not used; zero. */
    uint64_t reserved[7];
} pto_trace_reader;
PTO_STATIC_ASSERT(sizeof(pto_trace_reader) == 64, "size of pto_trace_reader");
PTO_STATIC_ASSERT(offsetof(pto_trace_reader, read) == 0, "offset of pto_trace_reader.read");
PTO_STATIC_ASSERT(offsetof(pto_trace_reader, reserved) == 8, "offset of pto_trace_reader.reserved");

/* One event. */
typedef struct pto_trace_event {
    /* atomic: The clock of the agent that wrote it. */
    PTO_ALIGN(16) uint64_t time_ns;
    /* atomic: Slot of the task, and from bit 25 on the low bits of the slot's generation: a streaming run uses slots again. */
    uint32_t task;
    /* atomic: `TraceKind`, and the extra from bit 7 on. */
    uint32_t what;
} pto_trace_event;
PTO_STATIC_ASSERT(sizeof(pto_trace_event) == 16, "size of pto_trace_event");
PTO_STATIC_ASSERT(offsetof(pto_trace_event, time_ns) == 0, "offset of pto_trace_event.time_ns");
PTO_STATIC_ASSERT(offsetof(pto_trace_event, task) == 8, "offset of pto_trace_event.task");
PTO_STATIC_ASSERT(offsetof(pto_trace_event, what) == 12, "offset of pto_trace_event.what");

/* One ring: how large it is, and how much of it a run used. */
typedef struct pto_ring_line {
    /* atomic: Units that it holds: slots, words, chunks, entries, bytes. */
    PTO_ALIGN(8) uint64_t capacity;
    /* atomic: The most units that were in use at once. */
    uint64_t high_water;
    /* atomic: How often the builder waited for it. */
    uint64_t waits;
    /* atomic: The least capacity with which what was asked for fits: the largest task, the largest scope. */
    uint64_t needed;
} pto_ring_line;
PTO_STATIC_ASSERT(sizeof(pto_ring_line) == 32, "size of pto_ring_line");
PTO_STATIC_ASSERT(offsetof(pto_ring_line, capacity) == 0, "offset of pto_ring_line.capacity");
PTO_STATIC_ASSERT(offsetof(pto_ring_line, high_water) == 8, "offset of pto_ring_line.high_water");
PTO_STATIC_ASSERT(offsetof(pto_ring_line, waits) == 16, "offset of pto_ring_line.waits");
PTO_STATIC_ASSERT(offsetof(pto_ring_line, needed) == 24, "offset of pto_ring_line.needed");

/* What the builder notes of a task slot: where its rings stood when the task was added, as low halves of positions. */
typedef struct pto_slot_note {
    /* atomic: Argument words given out before. */
    PTO_ALIGN(16) uint32_t first_word;
    /* atomic: Chunks given out before. */
    uint32_t first_chunk;
    /* atomic: Entries of the tensor map given out before. */
    uint32_t first_entry;
    /* atomic: Not used; zero. */
    uint32_t reserved;
} pto_slot_note;
PTO_STATIC_ASSERT(sizeof(pto_slot_note) == 16, "size of pto_slot_note");
PTO_STATIC_ASSERT(offsetof(pto_slot_note, first_word) == 0, "offset of pto_slot_note.first_word");
PTO_STATIC_ASSERT(offsetof(pto_slot_note, first_chunk) == 4, "offset of pto_slot_note.first_chunk");
PTO_STATIC_ASSERT(offsetof(pto_slot_note, first_entry) == 8, "offset of pto_slot_note.first_entry");
PTO_STATIC_ASSERT(offsetof(pto_slot_note, reserved) == 12, "offset of pto_slot_note.reserved");

/* What a task is beyond one kernel on one core. One for each slot of the window. */
typedef struct pto_block_line {
    /* atomic: GM addresses of the kernels: of the cube core, of the first and of the second vector core; zero: none. */
    PTO_ALIGN(64) uint64_t kernels[3];
    /* atomic: Their func ids. */
    uint32_t func_ids[3];
    /* atomic: Which lanes have a kernel (bits 2..0), `SYNC_START`, `HAS_PREDICATE`. */
    uint32_t flags;
    /* atomic: Blocks. */
    uint32_t blocks;
    /* atomic: The first block that no scheduler has taken. */
    uint32_t next_block;
    /* atomic: Parts that have not finished. */
    uint32_t parts_left;
    /* atomic: The next task of the list. */
    uint32_t next;
    /* atomic: The list that it waits on, or `NO_LIST`. */
    uint32_t list;
    /* atomic: The predicate: a `Comparison`, and an `ElementType` from bit 8 on. */
    uint32_t test;
    /* atomic: The predicate: GM address of the element. */
    uint64_t address;
    /* atomic: The predicate: what the element is compared with. */
    uint64_t value;
    /* atomic: While it waits: how many tasks had been posted before it. */
    uint64_t posted;
    /* atomic: While it waits: how many plain tasks, by kind, had been pushed to the ready queues before it was posted. */
    uint64_t plain_before[2];
    /* atomic: Not used; zero. */
    uint64_t reserved[3];
} pto_block_line;
PTO_STATIC_ASSERT(sizeof(pto_block_line) == 128, "size of pto_block_line");
PTO_STATIC_ASSERT(offsetof(pto_block_line, kernels) == 0, "offset of pto_block_line.kernels");
PTO_STATIC_ASSERT(offsetof(pto_block_line, func_ids) == 24, "offset of pto_block_line.func_ids");
PTO_STATIC_ASSERT(offsetof(pto_block_line, flags) == 36, "offset of pto_block_line.flags");
PTO_STATIC_ASSERT(offsetof(pto_block_line, blocks) == 40, "offset of pto_block_line.blocks");
PTO_STATIC_ASSERT(offsetof(pto_block_line, next_block) == 44, "offset of pto_block_line.next_block");
PTO_STATIC_ASSERT(offsetof(pto_block_line, parts_left) == 48, "offset of pto_block_line.parts_left");
PTO_STATIC_ASSERT(offsetof(pto_block_line, next) == 52, "offset of pto_block_line.next");
PTO_STATIC_ASSERT(offsetof(pto_block_line, list) == 56, "offset of pto_block_line.list");
PTO_STATIC_ASSERT(offsetof(pto_block_line, test) == 60, "offset of pto_block_line.test");
PTO_STATIC_ASSERT(offsetof(pto_block_line, address) == 64, "offset of pto_block_line.address");
PTO_STATIC_ASSERT(offsetof(pto_block_line, value) == 72, "offset of pto_block_line.value");
PTO_STATIC_ASSERT(offsetof(pto_block_line, posted) == 80, "offset of pto_block_line.posted");
PTO_STATIC_ASSERT(offsetof(pto_block_line, plain_before) == 88, "offset of pto_block_line.plain_before");
PTO_STATIC_ASSERT(offsetof(pto_block_line, reserved) == 104, "offset of pto_block_line.reserved");

/* The ends of a list of tasks, as slots. */
typedef struct pto_list_ends {
    /* atomic: The oldest, or `NO_TASK`. */
    PTO_ALIGN(4) uint32_t head;
    /* atomic: The youngest, or `NO_TASK`. */
    uint32_t tail;
} pto_list_ends;
PTO_STATIC_ASSERT(sizeof(pto_list_ends) == 8, "size of pto_list_ends");
PTO_STATIC_ASSERT(offsetof(pto_list_ends, head) == 0, "offset of pto_list_ends.head");
PTO_STATIC_ASSERT(offsetof(pto_list_ends, tail) == 4, "offset of pto_list_ends.tail");

/* Where tasks with a block shape wait for cores. */
typedef struct pto_block_board {
    /* atomic: Which lists have a task, by bits; of a list of `sync` tasks also while one of its level gathers cores; the next bit: that one has some. */
    PTO_ALIGN(64) uint32_t waiting;
    /* atomic: Guards everything else. */
    uint8_t lock;
    /* atomic: Not used; zero. */
    uint8_t reserved[3];
    /* atomic: The task that gathers cores, or `NO_TASK`. */
    uint32_t gathering;
    /* atomic: Tasks that wait. */
    uint32_t count;
    /* atomic: How many tasks have been posted in this run. */
    uint64_t posted;
    /* atomic: Keeps the lists in lines of their own. */
    uint64_t rest_of_line[5];
    /* The lists: by priority, in each `cube`, `vector`, `cluster`, `sync`; and `ARRIVALS`, `TRANSFERS`, `ARRIVED`. */
    pto_list_ends lists[19];
    /* atomic: Not used; zero. */
    uint64_t reserved_words[5];
} pto_block_board;
PTO_STATIC_ASSERT(sizeof(pto_block_board) == 256, "size of pto_block_board");
PTO_STATIC_ASSERT(offsetof(pto_block_board, waiting) == 0, "offset of pto_block_board.waiting");
PTO_STATIC_ASSERT(offsetof(pto_block_board, lock) == 4, "offset of pto_block_board.lock");
PTO_STATIC_ASSERT(offsetof(pto_block_board, reserved) == 5, "offset of pto_block_board.reserved");
PTO_STATIC_ASSERT(offsetof(pto_block_board, gathering) == 8, "offset of pto_block_board.gathering");
PTO_STATIC_ASSERT(offsetof(pto_block_board, count) == 12, "offset of pto_block_board.count");
PTO_STATIC_ASSERT(offsetof(pto_block_board, posted) == 16, "offset of pto_block_board.posted");
PTO_STATIC_ASSERT(offsetof(pto_block_board, rest_of_line) == 24, "offset of pto_block_board.rest_of_line");
PTO_STATIC_ASSERT(offsetof(pto_block_board, lists) == 64, "offset of pto_block_board.lists");
PTO_STATIC_ASSERT(offsetof(pto_block_board, reserved_words) == 216, "offset of pto_block_board.reserved_words");

/* The start of the region `stream`. */
typedef struct pto_stream_header {
    /* atomic: Task slots; a power of two. */
    PTO_ALIGN(64) uint32_t window;
    /* atomic: Entries of the tensor map; a power of two. There is a row of a cell for each, and of a tensor for every four. */
    uint32_t map_entries;
    /* atomic: Depths of scopes that have a heap. */
    uint32_t heap_rings;
    /* atomic: The number of the run's first task; 0 but in tests. */
    uint32_t first_task;
    /* atomic: Bytes of each heap ring; a multiple of 64. */
    uint64_t heap_bytes;
    /* atomic: Argument words, with one word of block context a task. */
    uint64_t arg_words;
    /* atomic: Chunks of edges. */
    uint64_t edge_chunks;
    /* atomic: Scopes that were opened. */
    uint64_t scopes;
    /* atomic: Tensors that were allocated. */
    uint64_t tensors;
    /* atomic: Not used; zero. */
    uint64_t reserved;
    /* The rings, by `RingKind`, then the heaps by depth. */
    pto_ring_line rings[12];
    /* Where tasks with a block shape wait for cores. */
    pto_block_board board;
} pto_stream_header;
PTO_STATIC_ASSERT(sizeof(pto_stream_header) == 704, "size of pto_stream_header");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, window) == 0, "offset of pto_stream_header.window");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, map_entries) == 4, "offset of pto_stream_header.map_entries");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, heap_rings) == 8, "offset of pto_stream_header.heap_rings");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, first_task) == 12, "offset of pto_stream_header.first_task");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, heap_bytes) == 16, "offset of pto_stream_header.heap_bytes");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, arg_words) == 24, "offset of pto_stream_header.arg_words");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, edge_chunks) == 32, "offset of pto_stream_header.edge_chunks");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, scopes) == 40, "offset of pto_stream_header.scopes");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, tensors) == 48, "offset of pto_stream_header.tensors");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, reserved) == 56, "offset of pto_stream_header.reserved");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, rings) == 64, "offset of pto_stream_header.rings");
PTO_STATIC_ASSERT(offsetof(pto_stream_header, board) == 448, "offset of pto_stream_header.board");

/* The accesses to one tensor, or to one cell of its grid: those to one region are here, all others in chains. Tasks are low halves of their numbers. */
typedef struct pto_map_row {
    /* atomic: The tensor that the region is part of. */
    PTO_ALIGN(64) uint64_t base;
    /* atomic: First byte of the region, from the tensor's first one. */
    uint64_t low;
    /* atomic: One byte past the last one. */
    uint64_t high;
    /* atomic: Contiguous bytes, and in the high half the bytes from one run to the next; zero: one run. */
    uint64_t rows;
    /* atomic: The last task that wrote the region. */
    uint32_t writer;
    /* atomic: Tasks that have read it since. */
    uint32_t readers[3];
    /* atomic: The newest entry of another access that writes, as its position. */
    uint32_t write_chain;
    /* atomic: The newest entry of another access that only reads. */
    uint32_t read_chain;
    /* atomic: Of a tensor: its first cell. Of a cell: the next one. */
    uint32_t next;
    /* atomic: Of a tensor: 1: it has a grid. Of a cell: the one before. */
    uint32_t link;
} pto_map_row;
PTO_STATIC_ASSERT(sizeof(pto_map_row) == 64, "size of pto_map_row");
PTO_STATIC_ASSERT(offsetof(pto_map_row, base) == 0, "offset of pto_map_row.base");
PTO_STATIC_ASSERT(offsetof(pto_map_row, low) == 8, "offset of pto_map_row.low");
PTO_STATIC_ASSERT(offsetof(pto_map_row, high) == 16, "offset of pto_map_row.high");
PTO_STATIC_ASSERT(offsetof(pto_map_row, rows) == 24, "offset of pto_map_row.rows");
PTO_STATIC_ASSERT(offsetof(pto_map_row, writer) == 32, "offset of pto_map_row.writer");
PTO_STATIC_ASSERT(offsetof(pto_map_row, readers) == 36, "offset of pto_map_row.readers");
PTO_STATIC_ASSERT(offsetof(pto_map_row, write_chain) == 48, "offset of pto_map_row.write_chain");
PTO_STATIC_ASSERT(offsetof(pto_map_row, read_chain) == 52, "offset of pto_map_row.read_chain");
PTO_STATIC_ASSERT(offsetof(pto_map_row, next) == 56, "offset of pto_map_row.next");
PTO_STATIC_ASSERT(offsetof(pto_map_row, link) == 60, "offset of pto_map_row.link");

/* The grid that the accesses to some tensors are sorted by. */
typedef struct pto_map_grid {
    /* atomic: Bytes from one row of the tensors to the next. */
    PTO_ALIGN(64) uint64_t pitch;
    /* atomic: Bytes of a row in a cell. */
    uint64_t width;
    /* atomic: Rows of a cell. */
    uint64_t rows;
    /* atomic: 2^64 divided by `pitch`, rounded up; zero: division is not done by it. */
    uint64_t pitch_magic;
    /* atomic: The same of `width`. */
    uint64_t width_magic;
    /* atomic: The same of `rows`. */
    uint64_t rows_magic;
    /* atomic: Of the first grid: 1: the cells have been emptied. */
    uint64_t has_cells;
    /* atomic: Not used; zero. */
    uint64_t reserved;
} pto_map_grid;
PTO_STATIC_ASSERT(sizeof(pto_map_grid) == 64, "size of pto_map_grid");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, pitch) == 0, "offset of pto_map_grid.pitch");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, width) == 8, "offset of pto_map_grid.width");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, rows) == 16, "offset of pto_map_grid.rows");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, pitch_magic) == 24, "offset of pto_map_grid.pitch_magic");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, width_magic) == 32, "offset of pto_map_grid.width_magic");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, rows_magic) == 40, "offset of pto_map_grid.rows_magic");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, has_cells) == 48, "offset of pto_map_grid.has_cells");
PTO_STATIC_ASSERT(offsetof(pto_map_grid, reserved) == 56, "offset of pto_map_grid.reserved");

/* An access that is in no row. One with more than one stride is followed by an entry that holds the others. */
typedef struct pto_map_entry {
    /* atomic: The tensor's address. */
    PTO_ALIGN(64) uint64_t base;
    /* atomic: First byte of the region, from the tensor's first one. */
    uint64_t low;
    /* atomic: One byte past the last one. */
    uint64_t high;
    /* atomic: Contiguous bytes. */
    uint64_t run;
    /* atomic: Bytes from one run to the next, in the innermost dimension. */
    uint64_t stride;
    /* atomic: How many runs that dimension has. */
    uint32_t count;
    /* atomic: Dimensions, this one included; zero: the region is one run. */
    uint32_t rank;
    /* atomic: The task, as the low half of its number. */
    uint32_t task;
    /* atomic: The next older entry, as its position. */
    uint32_t next;
    /* atomic: Not used; zero. */
    uint64_t reserved;
} pto_map_entry;
PTO_STATIC_ASSERT(sizeof(pto_map_entry) == 64, "size of pto_map_entry");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, base) == 0, "offset of pto_map_entry.base");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, low) == 8, "offset of pto_map_entry.low");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, high) == 16, "offset of pto_map_entry.high");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, run) == 24, "offset of pto_map_entry.run");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, stride) == 32, "offset of pto_map_entry.stride");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, count) == 40, "offset of pto_map_entry.count");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, rank) == 44, "offset of pto_map_entry.rank");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, task) == 48, "offset of pto_map_entry.task");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, next) == 52, "offset of pto_map_entry.next");
PTO_STATIC_ASSERT(offsetof(pto_map_entry, reserved) == 56, "offset of pto_map_entry.reserved");

/* A strided part of a tensor, as a builder in C states it. */
typedef struct pto_stream_tensor {
    /* First byte of the tensor: what it is known by. */
    PTO_ALIGN(8) pto_gm_addr base;
    /* Size of the tensor in bytes. */
    uint64_t bytes;
    /* Elements from the tensor's first one to the view's first one. */
    uint64_t offset;
    /* Distances in elements, one for each extent. */
    uint64_t strides[5];
    /* Extents. */
    uint32_t shape[5];
    /* How many dimensions it has. */
    uint32_t rank;
    /* An `ElementType`. */
    uint32_t element;
    /* Depth of the scope whose heap it is on, counted from 1; 0: it is not on the heap. */
    uint32_t heap_depth;
    /* Serial number of that scope. */
    uint64_t heap_serial;
} pto_stream_tensor;
PTO_STATIC_ASSERT(sizeof(pto_stream_tensor) == 104, "size of pto_stream_tensor");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, base) == 0, "offset of pto_stream_tensor.base");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, bytes) == 8, "offset of pto_stream_tensor.bytes");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, offset) == 16, "offset of pto_stream_tensor.offset");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, strides) == 24, "offset of pto_stream_tensor.strides");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, shape) == 64, "offset of pto_stream_tensor.shape");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, rank) == 84, "offset of pto_stream_tensor.rank");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, element) == 88, "offset of pto_stream_tensor.element");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, heap_depth) == 92, "offset of pto_stream_tensor.heap_depth");
PTO_STATIC_ASSERT(offsetof(pto_stream_tensor, heap_serial) == 96, "offset of pto_stream_tensor.heap_serial");

/* An argument of a task. */
typedef struct pto_stream_arg {
    /* An `ArgKind`. */
    PTO_ALIGN(8) uint32_t kind;
    /* Not used; zero. */
    uint32_t reserved;
    /* The word of a scalar. */
    uint64_t scalar;
    /* The tensor of what is no scalar. */
    pto_stream_tensor tensor;
} pto_stream_arg;
PTO_STATIC_ASSERT(sizeof(pto_stream_arg) == 120, "size of pto_stream_arg");
PTO_STATIC_ASSERT(offsetof(pto_stream_arg, kind) == 0, "offset of pto_stream_arg.kind");
PTO_STATIC_ASSERT(offsetof(pto_stream_arg, reserved) == 4, "offset of pto_stream_arg.reserved");
PTO_STATIC_ASSERT(offsetof(pto_stream_arg, scalar) == 8, "offset of pto_stream_arg.scalar");
PTO_STATIC_ASSERT(offsetof(pto_stream_arg, tensor) == 16, "offset of pto_stream_arg.tensor");

/* A task with tensors. Later releases append fields: fields that a firmware does not know must be zero. */
typedef struct pto_stream_task {
    /* `sizeof(pto_stream_task)` where the builder was compiled. */
    PTO_ALIGN(8) uint32_t struct_size;
    /* Which kernel. */
    uint32_t func_id;
    /* A `CoreKind`. */
    uint32_t core_type;
    /* Not used; zero. */
    uint32_t reserved;
    /* How many blocks; 0: one. */
    uint32_t blocks;
    /* A `StartMode`. */
    uint32_t start;
    /* A `Priority` plus 1; 0: normal. */
    uint32_t priority;
    /* How many kernels run on vector cores in addition to the task's own one: up to two. */
    uint32_t vector_count;
    /* Their func ids. */
    uint32_t vectors[2];
    /* 1: the task has a predicate; 0: it runs in any case. */
    uint32_t has_predicate;
    /* A `Comparison`: of the element with the value. */
    uint32_t comparison;
    /* Where the element is in `element_of`. */
    uint32_t index[5];
    /* How many numbers the index has. */
    uint32_t index_rank;
    /* With what the element is compared, in the low bits. */
    uint64_t value;
    /* The tensor that the element is of. */
    pto_stream_tensor element_of;
} pto_stream_task;
PTO_STATIC_ASSERT(sizeof(pto_stream_task) == 184, "size of pto_stream_task");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, struct_size) == 0, "offset of pto_stream_task.struct_size");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, func_id) == 4, "offset of pto_stream_task.func_id");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, core_type) == 8, "offset of pto_stream_task.core_type");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, reserved) == 12, "offset of pto_stream_task.reserved");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, blocks) == 16, "offset of pto_stream_task.blocks");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, start) == 20, "offset of pto_stream_task.start");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, priority) == 24, "offset of pto_stream_task.priority");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, vector_count) == 28, "offset of pto_stream_task.vector_count");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, vectors) == 32, "offset of pto_stream_task.vectors");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, has_predicate) == 40, "offset of pto_stream_task.has_predicate");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, comparison) == 44, "offset of pto_stream_task.comparison");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, index) == 48, "offset of pto_stream_task.index");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, index_rank) == 68, "offset of pto_stream_task.index_rank");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, value) == 72, "offset of pto_stream_task.value");
PTO_STATIC_ASSERT(offsetof(pto_stream_task, element_of) == 80, "offset of pto_stream_task.element_of");

/* A scope that was opened. */
typedef struct pto_stream_scope {
    /* How many scopes are around it. */
    PTO_ALIGN(8) uint32_t depth;
    /* Not used; zero. */
    uint32_t reserved;
    /* Its number in the run. */
    uint64_t serial;
} pto_stream_scope;
PTO_STATIC_ASSERT(sizeof(pto_stream_scope) == 16, "size of pto_stream_scope");
PTO_STATIC_ASSERT(offsetof(pto_stream_scope, depth) == 0, "offset of pto_stream_scope.depth");
PTO_STATIC_ASSERT(offsetof(pto_stream_scope, reserved) == 4, "offset of pto_stream_scope.reserved");
PTO_STATIC_ASSERT(offsetof(pto_stream_scope, serial) == 8, "offset of pto_stream_scope.serial");

/* A part of a program that was recorded. */
typedef struct pto_stream_recording {
    /* The run that it was made in. */
    PTO_ALIGN(4) uint32_t run;
    /* Where the builder keeps it. */
    uint32_t at;
    /* How many tasks it has. */
    uint32_t tasks;
    /* Not used; zero. */
    uint32_t reserved;
} pto_stream_recording;
PTO_STATIC_ASSERT(sizeof(pto_stream_recording) == 16, "size of pto_stream_recording");
PTO_STATIC_ASSERT(offsetof(pto_stream_recording, run) == 0, "offset of pto_stream_recording.run");
PTO_STATIC_ASSERT(offsetof(pto_stream_recording, at) == 4, "offset of pto_stream_recording.at");
PTO_STATIC_ASSERT(offsetof(pto_stream_recording, tasks) == 8, "offset of pto_stream_recording.tasks");
PTO_STATIC_ASSERT(offsetof(pto_stream_recording, reserved) == 12, "offset of pto_stream_recording.reserved");

/* The header of a graph image. */
typedef struct pto_graph_header {
    /* `GRAPH_MAGIC`. */
    PTO_ALIGN(8) uint64_t magic;
    /* `ABI_MAJOR`. */
    uint16_t abi_major;
    /* `ABI_MINOR`. */
    uint16_t abi_minor;
    /* Size of this header. */
    uint32_t header_bytes;
    /* `layout::LAYOUT_HASH`. */
    uint64_t layout_hash;
    /* Size of the image. */
    uint64_t total_bytes;
    /* `Checksum` of everything after the header. */
    uint64_t checksum;
    /* `GraphFlags`. */
    uint32_t flags;
    /* How many tasks. */
    uint32_t task_count;
    /* How many edges. */
    uint64_t edge_count;
    /* How many argument words. */
    uint64_t arg_words;
    /* Where the tasks are, from the start of the image. */
    uint64_t tasks_offset;
    /* Where the producers are. */
    uint64_t edges_offset;
    /* Where the argument words are. */
    uint64_t args_offset;
    /* Not used; zero. */
    uint64_t reserved[5];
} pto_graph_header;
PTO_STATIC_ASSERT(sizeof(pto_graph_header) == 128, "size of pto_graph_header");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, magic) == 0, "offset of pto_graph_header.magic");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, abi_major) == 8, "offset of pto_graph_header.abi_major");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, abi_minor) == 10, "offset of pto_graph_header.abi_minor");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, header_bytes) == 12, "offset of pto_graph_header.header_bytes");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, layout_hash) == 16, "offset of pto_graph_header.layout_hash");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, total_bytes) == 24, "offset of pto_graph_header.total_bytes");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, checksum) == 32, "offset of pto_graph_header.checksum");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, flags) == 40, "offset of pto_graph_header.flags");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, task_count) == 44, "offset of pto_graph_header.task_count");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, edge_count) == 48, "offset of pto_graph_header.edge_count");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, arg_words) == 56, "offset of pto_graph_header.arg_words");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, tasks_offset) == 64, "offset of pto_graph_header.tasks_offset");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, edges_offset) == 72, "offset of pto_graph_header.edges_offset");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, args_offset) == 80, "offset of pto_graph_header.args_offset");
PTO_STATIC_ASSERT(offsetof(pto_graph_header, reserved) == 88, "offset of pto_graph_header.reserved");

/* One task of a graph image. */
typedef struct pto_image_task {
    /* GM address of the code; zero: `kernel_addrs[func_id]`. */
    PTO_ALIGN(8) uint64_t kernel;
    /* First argument word. */
    uint32_t first_arg;
    /* First edge. */
    uint32_t first_edge;
    /* Producers. */
    uint32_t edge_count;
    /* Which kernel. */
    uint16_t func_id;
    /* How many arguments. */
    uint8_t arg_count;
    /* A `CoreKind`. */
    uint8_t kind;
} pto_image_task;
PTO_STATIC_ASSERT(sizeof(pto_image_task) == 24, "size of pto_image_task");
PTO_STATIC_ASSERT(offsetof(pto_image_task, kernel) == 0, "offset of pto_image_task.kernel");
PTO_STATIC_ASSERT(offsetof(pto_image_task, first_arg) == 8, "offset of pto_image_task.first_arg");
PTO_STATIC_ASSERT(offsetof(pto_image_task, first_edge) == 12, "offset of pto_image_task.first_edge");
PTO_STATIC_ASSERT(offsetof(pto_image_task, edge_count) == 16, "offset of pto_image_task.edge_count");
PTO_STATIC_ASSERT(offsetof(pto_image_task, func_id) == 20, "offset of pto_image_task.func_id");
PTO_STATIC_ASSERT(offsetof(pto_image_task, arg_count) == 22, "offset of pto_image_task.arg_count");
PTO_STATIC_ASSERT(offsetof(pto_image_task, kind) == 23, "offset of pto_image_task.kind");

/* What a firmware image says of itself. The names of its builders follow, each ended by a zero byte. */
typedef struct pto_fw_identity {
    /* `FW_MAGIC`. */
    PTO_ALIGN(8) uint64_t magic;
    /* `ABI_MAJOR`. */
    uint16_t abi_major;
    /* `ABI_MINOR`. */
    uint16_t abi_minor;
    /* Size of this struct. */
    uint32_t identity_bytes;
    /* `layout::LAYOUT_HASH`. */
    uint64_t layout_hash;
    /* The device that the image is for, padded with zeros. */
    uint8_t kind[16];
    /* How many builders are linked in. */
    uint32_t builder_count;
    /* Bytes of their names. */
    uint32_t names_bytes;
    /* Checksum of the file, as `pto fw build` seals it: the first eight bytes of the SHA-256 of the file with zero here. Zero: the file is not sealed. */
    uint64_t checksum;
    /* What else the image can do: `FW_TRACES`. Other bits are zero. */
    uint64_t features;
} pto_fw_identity;
PTO_STATIC_ASSERT(sizeof(pto_fw_identity) == 64, "size of pto_fw_identity");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, magic) == 0, "offset of pto_fw_identity.magic");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, abi_major) == 8, "offset of pto_fw_identity.abi_major");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, abi_minor) == 10, "offset of pto_fw_identity.abi_minor");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, identity_bytes) == 12, "offset of pto_fw_identity.identity_bytes");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, layout_hash) == 16, "offset of pto_fw_identity.layout_hash");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, kind) == 24, "offset of pto_fw_identity.kind");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, builder_count) == 40, "offset of pto_fw_identity.builder_count");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, names_bytes) == 44, "offset of pto_fw_identity.names_bytes");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, checksum) == 48, "offset of pto_fw_identity.checksum");
PTO_STATIC_ASSERT(offsetof(pto_fw_identity, features) == 56, "offset of pto_fw_identity.features");

/* The start of a blob of kernels: position-independent code for GM, to be copied to any page. Its table of `KernelBlobEntry` follows. */
typedef struct pto_kernel_blob_header {
    /* `KERNEL_BLOB_MAGIC`. */
    PTO_ALIGN(8) uint64_t magic;
    /* `ABI_MAJOR`. */
    uint16_t abi_major;
    /* `ABI_MINOR`. */
    uint16_t abi_minor;
    /* How many kernels. */
    uint32_t kernel_count;
    /* Size of the blob. */
    uint64_t total_bytes;
    /* As `FwIdentity::checksum`, of the blob's file. */
    uint64_t checksum;
    /* Not used; zero. */
    uint64_t reserved[4];
} pto_kernel_blob_header;
PTO_STATIC_ASSERT(sizeof(pto_kernel_blob_header) == 64, "size of pto_kernel_blob_header");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_header, magic) == 0, "offset of pto_kernel_blob_header.magic");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_header, abi_major) == 8, "offset of pto_kernel_blob_header.abi_major");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_header, abi_minor) == 10, "offset of pto_kernel_blob_header.abi_minor");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_header, kernel_count) == 12, "offset of pto_kernel_blob_header.kernel_count");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_header, total_bytes) == 16, "offset of pto_kernel_blob_header.total_bytes");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_header, checksum) == 24, "offset of pto_kernel_blob_header.checksum");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_header, reserved) == 32, "offset of pto_kernel_blob_header.reserved");

/* One kernel of a blob. */
typedef struct pto_kernel_blob_entry {
    /* Its code, from the start of this entry (a distance, so that the blob needs no relocation). */
    PTO_ALIGN(8) uint64_t distance;
    /* Its func id. */
    uint32_t func_id;
    /* The `CoreKind` that it is for. */
    uint32_t kind;
    /* Its name, padded with zeros. */
    uint8_t name[48];
} pto_kernel_blob_entry;
PTO_STATIC_ASSERT(sizeof(pto_kernel_blob_entry) == 64, "size of pto_kernel_blob_entry");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_entry, distance) == 0, "offset of pto_kernel_blob_entry.distance");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_entry, func_id) == 8, "offset of pto_kernel_blob_entry.func_id");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_entry, kind) == 12, "offset of pto_kernel_blob_entry.kind");
PTO_STATIC_ASSERT(offsetof(pto_kernel_blob_entry, name) == 16, "offset of pto_kernel_blob_entry.name");

/* What the host says before it starts the machine; never written again. */
typedef struct pto_boot_header {
    /* atomic: `BOOT_MAGIC`. */
    PTO_ALIGN(64) uint64_t magic;
    /* atomic: `ABI_MAJOR << 16 | ABI_MINOR`. */
    uint32_t abi;
    /* atomic: How many vCPUs the machine has. */
    uint32_t vcpus;
    /* atomic: `layout::LAYOUT_HASH`. */
    uint64_t layout_hash;
    /* atomic: Size of RAM. */
    uint64_t ram_bytes;
    /* atomic: Not used; zero. */
    uint64_t reserved[4];
} pto_boot_header;
PTO_STATIC_ASSERT(sizeof(pto_boot_header) == 64, "size of pto_boot_header");
PTO_STATIC_ASSERT(offsetof(pto_boot_header, magic) == 0, "offset of pto_boot_header.magic");
PTO_STATIC_ASSERT(offsetof(pto_boot_header, abi) == 8, "offset of pto_boot_header.abi");
PTO_STATIC_ASSERT(offsetof(pto_boot_header, vcpus) == 12, "offset of pto_boot_header.vcpus");
PTO_STATIC_ASSERT(offsetof(pto_boot_header, layout_hash) == 16, "offset of pto_boot_header.layout_hash");
PTO_STATIC_ASSERT(offsetof(pto_boot_header, ram_bytes) == 24, "offset of pto_boot_header.ram_bytes");
PTO_STATIC_ASSERT(offsetof(pto_boot_header, reserved) == 32, "offset of pto_boot_header.reserved");

/* What the image as a whole says; written by vCPU 0. */
typedef struct pto_firmware_line {
    /* atomic: `FW_OFF` .. `FW_REFUSED`. */
    PTO_ALIGN(64) uint32_t state;
    /* atomic: Ticks of the clock in a second. */
    uint32_t clock_hz;
    /* atomic: The clock at the first instruction. */
    uint64_t entry_ticks;
    /* atomic: The clock when all vCPUs had been started. */
    uint64_t started_ticks;
    /* atomic: In `FW_REFUSED`: offset of the field of `BootHeader`, and its value. */
    uint64_t refused[2];
    /* atomic: Not used; zero. */
    uint64_t reserved[3];
} pto_firmware_line;
PTO_STATIC_ASSERT(sizeof(pto_firmware_line) == 64, "size of pto_firmware_line");
PTO_STATIC_ASSERT(offsetof(pto_firmware_line, state) == 0, "offset of pto_firmware_line.state");
PTO_STATIC_ASSERT(offsetof(pto_firmware_line, clock_hz) == 4, "offset of pto_firmware_line.clock_hz");
PTO_STATIC_ASSERT(offsetof(pto_firmware_line, entry_ticks) == 8, "offset of pto_firmware_line.entry_ticks");
PTO_STATIC_ASSERT(offsetof(pto_firmware_line, started_ticks) == 16, "offset of pto_firmware_line.started_ticks");
PTO_STATIC_ASSERT(offsetof(pto_firmware_line, refused) == 24, "offset of pto_firmware_line.refused");
PTO_STATIC_ASSERT(offsetof(pto_firmware_line, reserved) == 40, "offset of pto_firmware_line.reserved");

/* The host's order to run an arena. */
typedef struct pto_launch_line {
    /* atomic: Counts the orders; zero: none, or one is being written. */
    PTO_ALIGN(64) uint32_t sequence;
    /* atomic: Not used; zero. */
    uint32_t reserved_word;
    /* atomic: Address of the arena; zero: let go of the one before. */
    uint64_t arena_address;
    /* atomic: Size of the arena. */
    uint64_t arena_bytes;
    /* atomic: First address of GM. */
    uint64_t gm_address;
    /* atomic: Size of GM. */
    uint64_t gm_bytes;
    /* atomic: Not used; zero. */
    uint64_t reserved[3];
} pto_launch_line;
PTO_STATIC_ASSERT(sizeof(pto_launch_line) == 64, "size of pto_launch_line");
PTO_STATIC_ASSERT(offsetof(pto_launch_line, sequence) == 0, "offset of pto_launch_line.sequence");
PTO_STATIC_ASSERT(offsetof(pto_launch_line, reserved_word) == 4, "offset of pto_launch_line.reserved_word");
PTO_STATIC_ASSERT(offsetof(pto_launch_line, arena_address) == 8, "offset of pto_launch_line.arena_address");
PTO_STATIC_ASSERT(offsetof(pto_launch_line, arena_bytes) == 16, "offset of pto_launch_line.arena_bytes");
PTO_STATIC_ASSERT(offsetof(pto_launch_line, gm_address) == 24, "offset of pto_launch_line.gm_address");
PTO_STATIC_ASSERT(offsetof(pto_launch_line, gm_bytes) == 32, "offset of pto_launch_line.gm_bytes");
PTO_STATIC_ASSERT(offsetof(pto_launch_line, reserved) == 40, "offset of pto_launch_line.reserved");

/* What one vCPU says of itself. */
typedef struct pto_vcpu_line {
    /* atomic: `VCPU_OFF` .. `VCPU_DEAD`. */
    PTO_ALIGN(64) uint32_t state;
    /* atomic: Number of the instance or worker. */
    uint32_t role;
    /* atomic: The last order that it has taken up: it touches no earlier arena any more. */
    uint32_t seen;
    /* atomic: The last order that it has done its part of. */
    uint32_t done;
    /* atomic: The clock when it became ready. */
    uint64_t ready_ticks;
    /* atomic: The clock when it took up the last order. */
    uint64_t seen_ticks;
    /* atomic: Times that it slept. */
    uint64_t naps;
    /* atomic: On a machine of one vCPU, in the line of each instance's number: the ticks that the instance took in the last order. Where a tick is an instruction, they are counted exactly. */
    uint64_t step_ticks;
    /* atomic: Not used; zero. */
    uint64_t reserved[2];
} pto_vcpu_line;
PTO_STATIC_ASSERT(sizeof(pto_vcpu_line) == 64, "size of pto_vcpu_line");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, state) == 0, "offset of pto_vcpu_line.state");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, role) == 4, "offset of pto_vcpu_line.role");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, seen) == 8, "offset of pto_vcpu_line.seen");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, done) == 12, "offset of pto_vcpu_line.done");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, ready_ticks) == 16, "offset of pto_vcpu_line.ready_ticks");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, seen_ticks) == 24, "offset of pto_vcpu_line.seen_ticks");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, naps) == 32, "offset of pto_vcpu_line.naps");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, step_ticks) == 40, "offset of pto_vcpu_line.step_ticks");
PTO_STATIC_ASSERT(offsetof(pto_vcpu_line, reserved) == 48, "offset of pto_vcpu_line.reserved");

/* The last exception of one vCPU. */
typedef struct pto_exception_frame {
    /* atomic: Counts the vCPU's exceptions; written last. */
    PTO_ALIGN(64) uint32_t stamp;
    /* atomic: `VCPU_INSTANCE`, `VCPU_WORKER`, or `VCPU_READY`: what it was at the time. */
    uint32_t state;
    /* atomic: Vector: 0 synchronous, 1 IRQ, 2 FIQ, 3 `SError`; plus 4 in a handler; 16: a panic. */
    uint32_t vector;
    /* atomic: Number of the instance or worker. */
    uint32_t role;
    /* atomic: Why: `ESR_EL1`. */
    uint64_t syndrome;
    /* atomic: Where: `ELR_EL1`. */
    uint64_t pc;
    /* atomic: Of which address: `FAR_EL1`. */
    uint64_t fault_address;
    /* atomic: `SPSR_EL1`. */
    uint64_t status;
    /* atomic: The stack pointer. */
    uint64_t sp;
    /* atomic: The vCPU's clock, in nanoseconds. */
    uint64_t time_ns;
    /* atomic: `x0` .. `x30`. */
    uint64_t x[31];
    /* atomic: Not used; zero. */
    uint64_t reserved;
} pto_exception_frame;
PTO_STATIC_ASSERT(sizeof(pto_exception_frame) == 320, "size of pto_exception_frame");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, stamp) == 0, "offset of pto_exception_frame.stamp");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, state) == 4, "offset of pto_exception_frame.state");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, vector) == 8, "offset of pto_exception_frame.vector");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, role) == 12, "offset of pto_exception_frame.role");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, syndrome) == 16, "offset of pto_exception_frame.syndrome");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, pc) == 24, "offset of pto_exception_frame.pc");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, fault_address) == 32, "offset of pto_exception_frame.fault_address");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, status) == 40, "offset of pto_exception_frame.status");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, sp) == 48, "offset of pto_exception_frame.sp");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, time_ns) == 56, "offset of pto_exception_frame.time_ns");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, x) == 64, "offset of pto_exception_frame.x");
PTO_STATIC_ASSERT(offsetof(pto_exception_frame, reserved) == 312, "offset of pto_exception_frame.reserved");

/* The pages through which host and image meet, at `qemu::BOOT_BLOCK_ADDRESS`. */
typedef struct pto_boot_block {
    /* Written by the host, before the start. */
    PTO_ALIGN(64) pto_boot_header header;
    /* Written by vCPU 0. */
    pto_firmware_line firmware;
    /* Written by the host. */
    pto_launch_line launch;
    /* atomic: Not used; zero. */
    uint64_t reserved[8];
    /* Each written by its vCPU. */
    pto_vcpu_line vcpus[64];
    /* Each written by its vCPU. */
    pto_exception_frame exceptions[64];
} pto_boot_block;
PTO_STATIC_ASSERT(sizeof(pto_boot_block) == 24832, "size of pto_boot_block");
PTO_STATIC_ASSERT(offsetof(pto_boot_block, header) == 0, "offset of pto_boot_block.header");
PTO_STATIC_ASSERT(offsetof(pto_boot_block, firmware) == 64, "offset of pto_boot_block.firmware");
PTO_STATIC_ASSERT(offsetof(pto_boot_block, launch) == 128, "offset of pto_boot_block.launch");
PTO_STATIC_ASSERT(offsetof(pto_boot_block, reserved) == 192, "offset of pto_boot_block.reserved");
PTO_STATIC_ASSERT(offsetof(pto_boot_block, vcpus) == 256, "offset of pto_boot_block.vcpus");
PTO_STATIC_ASSERT(offsetof(pto_boot_block, exceptions) == 4352, "offset of pto_boot_block.exceptions");

/* Where one worker's control registers are: window + cluster * 8 MiB + sub * 1 MiB. */
typedef struct pto_core_position {
    /* The physical cluster. */
    PTO_ALIGN(2) uint16_t cluster;
    /* 0 the AIC, 1 and 2 the AIVs. */
    uint16_t sub;
} pto_core_position;
PTO_STATIC_ASSERT(sizeof(pto_core_position) == 4, "size of pto_core_position");
PTO_STATIC_ASSERT(offsetof(pto_core_position, cluster) == 0, "offset of pto_core_position.cluster");
PTO_STATIC_ASSERT(offsetof(pto_core_position, sub) == 2, "offset of pto_core_position.sub");

/* What the host decides of one launch. */
typedef struct pto_launch_plan {
    /* `LAUNCH_MAGIC`. */
    PTO_ALIGN(8) uint64_t magic;
    /* `ABI_MAJOR`. */
    uint16_t abi_major;
    /* `ABI_MINOR`. */
    uint16_t abi_minor;
    /* Size of `LaunchWords`. */
    uint32_t words_bytes;
    /* `layout::LAYOUT_HASH`. */
    uint64_t layout_hash;
    /* Address of the arena in GM. */
    pto_gm_addr arena_address;
    /* Size of the arena. */
    uint64_t arena_bytes;
    /* First address of GM. */
    pto_gm_addr gm_address;
    /* Size of GM. */
    uint64_t gm_bytes;
    /* Where AICPU sees the window of control registers (the driver's REG_AIC_CTRL). */
    uint64_t registers_address;
    /* Size of that window. */
    uint64_t registers_bytes;
    /* An `Architecture`. */
    uint32_t architecture;
    /* Valid entries of `LaunchWords::cores`: the workers, all AIC, then all AIV. */
    uint32_t core_count;
    /* 1: the host has written the whole arena since the last launch; 0: the run's words only. */
    uint32_t fresh_arena;
    /* Not used; zero. */
    uint32_t reserved_word;
    /* Not used; zero. */
    uint64_t reserved[5];
} pto_launch_plan;
PTO_STATIC_ASSERT(sizeof(pto_launch_plan) == 128, "size of pto_launch_plan");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, magic) == 0, "offset of pto_launch_plan.magic");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, abi_major) == 8, "offset of pto_launch_plan.abi_major");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, abi_minor) == 10, "offset of pto_launch_plan.abi_minor");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, words_bytes) == 12, "offset of pto_launch_plan.words_bytes");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, layout_hash) == 16, "offset of pto_launch_plan.layout_hash");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, arena_address) == 24, "offset of pto_launch_plan.arena_address");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, arena_bytes) == 32, "offset of pto_launch_plan.arena_bytes");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, gm_address) == 40, "offset of pto_launch_plan.gm_address");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, gm_bytes) == 48, "offset of pto_launch_plan.gm_bytes");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, registers_address) == 56, "offset of pto_launch_plan.registers_address");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, registers_bytes) == 64, "offset of pto_launch_plan.registers_bytes");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, architecture) == 72, "offset of pto_launch_plan.architecture");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, core_count) == 76, "offset of pto_launch_plan.core_count");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, fresh_arena) == 80, "offset of pto_launch_plan.fresh_arena");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, reserved_word) == 84, "offset of pto_launch_plan.reserved_word");
PTO_STATIC_ASSERT(offsetof(pto_launch_plan, reserved) == 88, "offset of pto_launch_plan.reserved");

/* Which instance is which; zero when the host launches. */
typedef struct pto_launch_tickets {
    /* atomic: Instances that have entered. */
    PTO_ALIGN(64) uint32_t taken;
    /* atomic: Instances that have left. */
    uint32_t given_back;
    /* atomic: The first fault that no arena could hold: what is wrong with the launch words themselves; zero: none. */
    uint32_t refused;
    /* atomic: Not used; zero. */
    uint32_t reserved_word;
    /* atomic: Not used; zero. */
    uint64_t reserved[6];
} pto_launch_tickets;
PTO_STATIC_ASSERT(sizeof(pto_launch_tickets) == 64, "size of pto_launch_tickets");
PTO_STATIC_ASSERT(offsetof(pto_launch_tickets, taken) == 0, "offset of pto_launch_tickets.taken");
PTO_STATIC_ASSERT(offsetof(pto_launch_tickets, given_back) == 4, "offset of pto_launch_tickets.given_back");
PTO_STATIC_ASSERT(offsetof(pto_launch_tickets, refused) == 8, "offset of pto_launch_tickets.refused");
PTO_STATIC_ASSERT(offsetof(pto_launch_tickets, reserved_word) == 12, "offset of pto_launch_tickets.reserved_word");
PTO_STATIC_ASSERT(offsetof(pto_launch_tickets, reserved) == 16, "offset of pto_launch_tickets.reserved");

/* One launch, in GM; aligned to 64 bytes. */
typedef struct pto_launch_words {
    /* What the host decides. */
    PTO_ALIGN(64) pto_launch_plan plan;
    /* Where each worker's registers are, by worker number. */
    pto_core_position cores[128];
    /* Which instance is which. */
    pto_launch_tickets tickets;
} pto_launch_words;
PTO_STATIC_ASSERT(sizeof(pto_launch_words) == 704, "size of pto_launch_words");
PTO_STATIC_ASSERT(offsetof(pto_launch_words, plan) == 0, "offset of pto_launch_words.plan");
PTO_STATIC_ASSERT(offsetof(pto_launch_words, cores) == 128, "offset of pto_launch_words.cores");
PTO_STATIC_ASSERT(offsetof(pto_launch_words, tickets) == 640, "offset of pto_launch_words.tickets");

/* The producer's line of a ring. */
typedef struct pto_ring_producer {
    /* atomic: Entries submitted since the stream was made. */
    PTO_ALIGN(64) uint64_t submitted;
    /* atomic: Commands submitted since the stream was made. */
    uint64_t commands;
    /* atomic: Not used; zero. */
    uint64_t reserved[6];
} pto_ring_producer;
PTO_STATIC_ASSERT(sizeof(pto_ring_producer) == 64, "size of pto_ring_producer");
PTO_STATIC_ASSERT(offsetof(pto_ring_producer, submitted) == 0, "offset of pto_ring_producer.submitted");
PTO_STATIC_ASSERT(offsetof(pto_ring_producer, commands) == 8, "offset of pto_ring_producer.commands");
PTO_STATIC_ASSERT(offsetof(pto_ring_producer, reserved) == 16, "offset of pto_ring_producer.reserved");

/* The consumer's line of a ring, which also says how far the stream is. */
typedef struct pto_ring_consumer {
    /* atomic: Entries taken since the stream was made. */
    PTO_ALIGN(64) uint64_t taken;
    /* atomic: Commands that are over, with or without success: all up to this number. */
    uint64_t completed;
    /* atomic: Commands that failed. */
    uint64_t failed;
    /* atomic: The number of the first command that failed since the last reset; zero: none. */
    uint64_t first_failed;
    /* atomic: The fault of that command, where it is one of the table of faults. */
    uint32_t fault;
    /* atomic: 1: the stream has stopped after a failure. */
    uint32_t stopped;
    /* atomic: Not used; zero. */
    uint64_t reserved[3];
} pto_ring_consumer;
PTO_STATIC_ASSERT(sizeof(pto_ring_consumer) == 64, "size of pto_ring_consumer");
PTO_STATIC_ASSERT(offsetof(pto_ring_consumer, taken) == 0, "offset of pto_ring_consumer.taken");
PTO_STATIC_ASSERT(offsetof(pto_ring_consumer, completed) == 8, "offset of pto_ring_consumer.completed");
PTO_STATIC_ASSERT(offsetof(pto_ring_consumer, failed) == 16, "offset of pto_ring_consumer.failed");
PTO_STATIC_ASSERT(offsetof(pto_ring_consumer, first_failed) == 24, "offset of pto_ring_consumer.first_failed");
PTO_STATIC_ASSERT(offsetof(pto_ring_consumer, fault) == 32, "offset of pto_ring_consumer.fault");
PTO_STATIC_ASSERT(offsetof(pto_ring_consumer, stopped) == 36, "offset of pto_ring_consumer.stopped");
PTO_STATIC_ASSERT(offsetof(pto_ring_consumer, reserved) == 40, "offset of pto_ring_consumer.reserved");

/* An entry. The first one of a command: head, number, six words. Each further one: eight words. */
typedef struct pto_command_entry {
    /* atomic: The words. */
    PTO_ALIGN(64) uint64_t words[8];
} pto_command_entry;
PTO_STATIC_ASSERT(sizeof(pto_command_entry) == 64, "size of pto_command_entry");
PTO_STATIC_ASSERT(offsetof(pto_command_entry, words) == 0, "offset of pto_command_entry.words");

/* An event. */
typedef struct pto_event_line {
    /* atomic: The last record that is complete; zero: none. */
    PTO_ALIGN(64) uint64_t completed;
    /* atomic: When, on the clock of the session. */
    uint64_t time_ns;
    /* atomic: Not used; zero. */
    uint64_t reserved[6];
} pto_event_line;
PTO_STATIC_ASSERT(sizeof(pto_event_line) == 64, "size of pto_event_line");
PTO_STATIC_ASSERT(offsetof(pto_event_line, completed) == 0, "offset of pto_event_line.completed");
PTO_STATIC_ASSERT(offsetof(pto_event_line, time_ns) == 8, "offset of pto_event_line.time_ns");
PTO_STATIC_ASSERT(offsetof(pto_event_line, reserved) == 16, "offset of pto_event_line.reserved");

/* What the host asks of the firmware. All but `leave` are written before a launch. */
typedef struct pto_session_orders {
    /* atomic: 1: finish what has begun, and return. */
    PTO_ALIGN(64) uint64_t leave;
    /* atomic: The time on the clock of the session at the launch. */
    uint64_t base_ns;
    /* atomic: How long the firmware stays when there is nothing to do. */
    uint64_t linger_ns;
    /* atomic: After this time nothing new is begun; zero: no limit. */
    uint64_t limit_ns;
    /* atomic: Decides which stream is served next; zero: they take turns. */
    uint64_t seed;
    /* atomic: The most commands that are begun; zero: no limit. */
    uint64_t most;
    /* atomic: How many launch notes there are. */
    uint64_t notes;
    /* atomic: The most launches that are on their way at once. */
    uint64_t in_flight;
} pto_session_orders;
PTO_STATIC_ASSERT(sizeof(pto_session_orders) == 64, "size of pto_session_orders");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, leave) == 0, "offset of pto_session_orders.leave");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, base_ns) == 8, "offset of pto_session_orders.base_ns");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, linger_ns) == 16, "offset of pto_session_orders.linger_ns");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, limit_ns) == 24, "offset of pto_session_orders.limit_ns");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, seed) == 32, "offset of pto_session_orders.seed");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, most) == 40, "offset of pto_session_orders.most");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, notes) == 48, "offset of pto_session_orders.notes");
PTO_STATIC_ASSERT(offsetof(pto_session_orders, in_flight) == 56, "offset of pto_session_orders.in_flight");

/* What the firmware reports. Its own line. */
typedef struct pto_session_news {
    /* atomic: Streams that were handed over to the host. */
    PTO_ALIGN(64) uint64_t handed;
    /* atomic: Launches begun since the session was opened. */
    uint64_t launches;
    /* atomic: Times that the firmware has come up. */
    uint64_t runs;
    /* atomic: Not used; zero. */
    uint64_t reserved[5];
} pto_session_news;
PTO_STATIC_ASSERT(sizeof(pto_session_news) == 64, "size of pto_session_news");
PTO_STATIC_ASSERT(offsetof(pto_session_news, handed) == 0, "offset of pto_session_news.handed");
PTO_STATIC_ASSERT(offsetof(pto_session_news, launches) == 8, "offset of pto_session_news.launches");
PTO_STATIC_ASSERT(offsetof(pto_session_news, runs) == 16, "offset of pto_session_news.runs");
PTO_STATIC_ASSERT(offsetof(pto_session_news, reserved) == 24, "offset of pto_session_news.reserved");

/* A stream, as the host describes it to the firmware. The host's line. */
typedef struct pto_stream_line {
    /* atomic: Where the producer's line of its ring is; zero: there is no such stream. */
    PTO_ALIGN(64) uint64_t producer;
    /* atomic: Where the consumer's line is. */
    uint64_t consumer;
    /* atomic: Where the entries are. */
    uint64_t entries;
    /* atomic: How many entries. */
    uint64_t entry_count;
    /* atomic: 0 is served first, 7 last. */
    uint64_t priority;
    /* atomic: Commands up to this number are the host's, which skips them. */
    uint64_t skip_to;
    /* atomic: As `LaneLine::handed`: the firmware has the stream again. */
    uint64_t returned;
    /* atomic: How long a kernel of the stream may take, in microseconds; zero: as long as any kernel of the run. */
    uint64_t kernel_budget_us;
} pto_stream_line;
PTO_STATIC_ASSERT(sizeof(pto_stream_line) == 64, "size of pto_stream_line");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, producer) == 0, "offset of pto_stream_line.producer");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, consumer) == 8, "offset of pto_stream_line.consumer");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, entries) == 16, "offset of pto_stream_line.entries");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, entry_count) == 24, "offset of pto_stream_line.entry_count");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, priority) == 32, "offset of pto_stream_line.priority");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, skip_to) == 40, "offset of pto_stream_line.skip_to");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, returned) == 48, "offset of pto_stream_line.returned");
PTO_STATIC_ASSERT(offsetof(pto_stream_line, kernel_budget_us) == 56, "offset of pto_stream_line.kernel_budget_us");

/* How far the firmware is with a stream. The firmware's line while one is up. */
typedef struct pto_lane_line {
    /* atomic: Changes when the stream is handed over to the host. */
    PTO_ALIGN(64) uint64_t handed;
    /* atomic: The position of the next command to begin. */
    uint64_t at;
    /* atomic: The run that the words below are of. */
    uint32_t run;
    /* atomic: Tasks on their way. */
    uint32_t in_flight;
    /* atomic: The slot of the oldest one. */
    uint32_t first;
    /* atomic: The slot of the newest one. */
    uint32_t last;
    /* atomic: Of a launch with several blocks: blocks begun; zero: none is under way. */
    uint32_t blocks_begun;
    /* atomic: Of the same launch: blocks that are over. */
    uint32_t blocks_over;
    /* atomic: 1: the head is a launch that the firmware has refused with the fault of the run. */
    uint32_t refused;
    /* atomic: Not used; zero. */
    uint32_t reserved[5];
} pto_lane_line;
PTO_STATIC_ASSERT(sizeof(pto_lane_line) == 64, "size of pto_lane_line");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, handed) == 0, "offset of pto_lane_line.handed");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, at) == 8, "offset of pto_lane_line.at");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, run) == 16, "offset of pto_lane_line.run");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, in_flight) == 20, "offset of pto_lane_line.in_flight");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, first) == 24, "offset of pto_lane_line.first");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, last) == 28, "offset of pto_lane_line.last");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, blocks_begun) == 32, "offset of pto_lane_line.blocks_begun");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, blocks_over) == 36, "offset of pto_lane_line.blocks_over");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, refused) == 40, "offset of pto_lane_line.refused");
PTO_STATIC_ASSERT(offsetof(pto_lane_line, reserved) == 44, "offset of pto_lane_line.reserved");

/* What the firmware notes of the launch whose task is in the slot of the same number. */
typedef struct pto_launch_note {
    /* atomic: The number of the command. */
    PTO_ALIGN(32) uint64_t number;
    /* atomic: The position after it. */
    uint64_t end;
    /* atomic: The slot of the next task of the stream. */
    uint32_t next;
    /* atomic: Its blocks. */
    uint32_t blocks;
    /* atomic: 1: the last one of them. */
    uint32_t is_last;
    /* atomic: Not used; zero. */
    uint32_t reserved;
} pto_launch_note;
PTO_STATIC_ASSERT(sizeof(pto_launch_note) == 32, "size of pto_launch_note");
PTO_STATIC_ASSERT(offsetof(pto_launch_note, number) == 0, "offset of pto_launch_note.number");
PTO_STATIC_ASSERT(offsetof(pto_launch_note, end) == 8, "offset of pto_launch_note.end");
PTO_STATIC_ASSERT(offsetof(pto_launch_note, next) == 16, "offset of pto_launch_note.next");
PTO_STATIC_ASSERT(offsetof(pto_launch_note, blocks) == 20, "offset of pto_launch_note.blocks");
PTO_STATIC_ASSERT(offsetof(pto_launch_note, is_last) == 24, "offset of pto_launch_note.is_last");
PTO_STATIC_ASSERT(offsetof(pto_launch_note, reserved) == 28, "offset of pto_launch_note.reserved");

#endif /* PTO_ABI_H */

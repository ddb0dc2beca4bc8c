/* A graph builder in C, linked into a firmware image. (One in C++, for class Runtime: bindings/include/runtime.h.)
 *
 * Write `int build_graph_aicpu(Runtime *runtime)`, or a function of another name: AICPU instance 0 calls it when the launch
 * names its builder. It reads its words in runtime->orch.orch_args (runtime->orch.orch_argc of them), adds tasks and
 * edges, publishes every task, and returns 0; another value is reported as BUILD_FAILED.
 *
 * Edges *to* a task are added before it is published; edges *from* it at any time. The first call that fails is
 * the fault of the run, whatever the builder returns; calls after it do nothing and fail.
 */
#ifndef PTO_FIRMWARE_H
#define PTO_FIRMWARE_H

#include "pto_abi.h"
#include "pto_stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef pto_runtime Runtime;

/* The builder. */
int build_graph_aicpu(Runtime *runtime);

/* Adds a task, unpublished: `args` are `num_args` GM addresses and scalars, `core_type` is 0 (AIC) or 1 (AIV),
 * `function_bin_addr` the GM address of the code, 0: as registered for `func_id`. The id, or -1. */
int aicpu_runtime_add_task(Runtime *runtime, const uint64_t *args, int num_args, int func_id, int core_type,
                           uint64_t function_bin_addr);

/* Makes task `to` wait for task `from`, unless that has completed already. 0, or -1. */
int aicpu_runtime_add_successor_conditional(Runtime *runtime, int from, int to);

/* Makes a task visible to the schedulers. 0, or -1. */
int aicpu_runtime_publish_task(Runtime *runtime, int task_id);

/* Adds the tasks of a range and publishes them, in every run: as submit_task_range in the table of pto_stream.h. The number of the first one, or -1. */
int64_t pto_submit_range(Runtime *runtime, const pto_task_range *range);

/* Reads `bytes` bytes of the device's memory at `address` into `to`: a table that the host has written. A builder that follows the
 * address as a pointer reads what the caches of this processor happen to hold. 0, or -1. */
int pto_read(Runtime *runtime, uint64_t address, void *to, uint64_t bytes);

/* Tasks with tensors, in a run of tensormap_and_ringbuffer: as in the table of pto_stream.h. */
int64_t pto_stream_submit(Runtime *runtime, const pto_stream_task *task, const pto_stream_arg *args, uint32_t arg_count,
                          const int64_t *after, uint32_t after_count);
int64_t pto_stream_submit_range(Runtime *runtime, const pto_stream_task *task, const pto_stream_arg *args, uint32_t arg_count,
                                const int64_t *after, uint32_t after_count, uint32_t tasks, const pto_stream_variation *variations,
                                uint32_t variation_count);
int64_t pto_stream_add(Runtime *runtime, const pto_stream_task *task, const pto_stream_arg *args, uint32_t arg_count,
                       const int64_t *after, uint32_t after_count);
int pto_stream_open_scope(Runtime *runtime, uint32_t mode, pto_stream_scope *scope);
int pto_stream_close_scope(Runtime *runtime, const pto_stream_scope *scope);
int pto_stream_alloc(Runtime *runtime, uint32_t element, const uint32_t *shape, uint32_t rank, pto_stream_tensor *tensor);
int pto_stream_get(Runtime *runtime, const pto_stream_tensor *tensor, const uint32_t *index, uint32_t rank, uint64_t *word);
int pto_stream_set(Runtime *runtime, const pto_stream_tensor *tensor, const uint32_t *index, uint32_t rank, uint64_t word);
int pto_stream_begin_recording(Runtime *runtime, const pto_stream_tensor *shapes, uint32_t count, pto_stream_tensor *bound);
int pto_stream_end_recording(Runtime *runtime, pto_stream_recording *recording);
int pto_stream_replay(Runtime *runtime, const pto_stream_recording *recording, const pto_stream_tensor *tensors, uint32_t tensor_count,
                      const uint64_t *scalars, uint32_t scalar_count);

#ifdef __cplusplus
}
#endif

#endif /* PTO_FIRMWARE_H */

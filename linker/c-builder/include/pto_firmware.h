/* A graph builder in C, linked into a firmware image.
 *
 * Write `int build_graph_aicpu(Runtime *runtime)`: AICPU instance 0 calls it when the launch names the builder
 * "build_graph_aicpu". It reads its words in runtime->orch.orch_args (runtime->orch.orch_argc of them), adds
 * tasks and edges, publishes every task, and returns 0; another value is reported as BUILD_FAILED.
 *
 * Edges *to* a task are added before it is published; edges *from* it at any time. The first call that fails is
 * the fault of the run, whatever the builder returns; calls after it do nothing and fail.
 */
#ifndef PTO_FIRMWARE_H
#define PTO_FIRMWARE_H

#include "pto_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef pto_runtime Runtime;

/* The builder. Without one, a launch that names it ends with BUILD_NO_BUILDER. */
int build_graph_aicpu(Runtime *runtime);

/* Adds a task, unpublished: `args` are `num_args` GM addresses and scalars, `core_type` is 0 (AIC) or 1 (AIV),
 * `function_bin_addr` the GM address of the code, 0: as registered for `func_id`. The id, or -1. */
int aicpu_runtime_add_task(Runtime *runtime, const uint64_t *args, int num_args, int func_id, int core_type,
                           uint64_t function_bin_addr);

/* Makes task `to` wait for task `from`, unless that has completed already. 0, or -1. */
int aicpu_runtime_add_successor_conditional(Runtime *runtime, int from, int to);

/* Makes a task visible to the schedulers. 0, or -1. */
int aicpu_runtime_publish_task(Runtime *runtime, int task_id);

#ifdef __cplusplus
}
#endif

#endif /* PTO_FIRMWARE_H */

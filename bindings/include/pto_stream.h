/* Streaming builder programs (tensormap_and_ringbuffer) in C: tasks are submitted with their tensors, and which task waits
 * for which follows from what they read and write. In C++: pto_stream.hpp.
 *
 * The structures are those of pto_abi.h. `runtime` is what the builder was called with. A call that fails is the fault of
 * the run, whatever the builder returns, and calls after it do nothing and fail. Tasks are known by their numbers in the
 * build, counted from 0, as in aicpu_build_api. In a run that does not stream every call but `read` and `submit_task_range` fails
 * (BUILD_NOT_STREAMING).
 *
 * Builders in C of a firmware image call the functions pto_stream_* of pto_firmware.h; plugins for class Runtime, in an image
 * or loaded by a host, those of the table runtime->pto_stream.
 */
#ifndef PTO_STREAM_H
#define PTO_STREAM_H

#include "pto_abi.h"
#include "pto_range.h"

#define PTO_STREAM_API_VERSION 1

/* In pto_stream_task.priority: a PTO_PRIORITY_*. Zero is PTO_PRIORITY_NORMAL, as other fields of a task that are zero ask for
 * nothing: one block, blocks that start as cores become free, no kernels beside the task's own one, no predicate. */
#define PTO_STREAM_PRIORITY(priority) ((uint32_t)(priority) + 1u)

/* Tasks of a range, at most. */
#define PTO_STREAM_RANGE_TASKS PTO_RANGE_TASKS

#ifdef __cplusplus
extern "C" {
#endif

/* A table of functions. Later releases append to it: a function is there if struct_size reaches behind it. */
typedef struct pto_stream_api {
    uint32_t struct_size;
    uint32_t version;
    /* Adds a task and publishes it: its number, or -1. `args` are its arguments in the order of the kernel's words, `after`
     * the numbers of tasks that it waits for beside those that its tensors say. task->struct_size is sizeof *task. */
    int64_t (*submit)(void *runtime, const pto_stream_task *task, const pto_stream_arg *args, uint32_t arg_count,
                      const int64_t *after, uint32_t after_count);
    /* The same, unpublished: edges to it can be added until it is published (aicpu_build_api). */
    int64_t (*add)(void *runtime, const pto_stream_task *task, const pto_stream_arg *args, uint32_t arg_count,
                   const int64_t *after, uint32_t after_count);
    /* Opens a scope; `mode` is PTO_DEPENDENCY_MODE_*. 0, or -1. */
    int (*open_scope)(void *runtime, uint32_t mode, pto_stream_scope *scope);
    /* Closes the innermost scope; its tensors are given up when its tasks have completed. 0, or -1. */
    int (*close_scope)(void *runtime, const pto_stream_scope *scope);
    /* A tensor on the heap of the innermost scope, not initialised; `element` is PTO_ELEMENT_TYPE_*. 0, or -1. */
    int (*alloc)(void *runtime, uint32_t element, const uint32_t *shape, uint32_t rank, pto_stream_tensor *tensor);
    /* Waits until what writes the element has completed, and reads it into the low bits of `word`. 0, or -1. */
    int (*get)(void *runtime, const pto_stream_tensor *tensor, const uint32_t *index, uint32_t rank, uint64_t *word);
    /* Waits until what reads or writes the element has completed, and writes it. 0, or -1. */
    int (*set)(void *runtime, const pto_stream_tensor *tensor, const uint32_t *index, uint32_t rank, uint64_t word);
    /* Begins a recording: from here to end_recording tasks are written down instead of run. `shapes`: what the `count` tensors look
     * like that replays bind; `bound` gets as many tensors, to be used in their place. Scalars that replays bind are arguments
     * PTO_ARG_KIND_BOUND_SCALAR, whose `scalar` is their number. Tasks have numbers of their own in a recording. 0, or -1. */
    int (*begin_recording)(void *runtime, const pto_stream_tensor *shapes, uint32_t count, pto_stream_tensor *bound);
    /* Ends it. The recording is good for this run. 0, or -1. */
    int (*end_recording)(void *runtime, pto_stream_recording *recording);
    /* Adds and publishes the tasks of a recording, on these tensors and scalars; they have the next numbers. 0, or -1. */
    int (*replay)(void *runtime, const pto_stream_recording *recording, const pto_stream_tensor *tensors, uint32_t tensor_count,
                  const uint64_t *scalars, uint32_t scalar_count);
    /* Reads `bytes` bytes of the device's memory at `address` into `to`: what the host has written there, such as a table. It works in
     * every run, also in one that does not stream, and in orchestrations. Nothing is waited for: `get` reads what tasks write.
     * A builder that follows the address as a pointer reads what the caches of the device's processor happen to hold. 0, or -1. */
    int (*read)(void *runtime, uint64_t address, void *to, uint64_t bytes);
    /* Adds `tasks` tasks of one kernel and publishes them, as if each were submitted by itself, in their order: the first one as `submit` has it,
     * the others with arguments that differ as the `variation_count` variations say. The number of the first one, behind which those of the others
     * follow, or -1. A range of 0 tasks, or of more than PTO_STREAM_RANGE_TASKS, is a fault (BUILD_RANGE_LENGTH). */
    int64_t (*submit_range)(void *runtime, const pto_stream_task *task, const pto_stream_arg *args, uint32_t arg_count,
                            const int64_t *after, uint32_t after_count, uint32_t tasks, const pto_stream_variation *variations,
                            uint32_t variation_count);
    /* Adds the tasks of a range without tensors and publishes them, as if each were submitted by itself, in their order. It works in every run. The number
     * of the first task, behind which those of the others follow, or -1. What does not fit the range (lists of another length, more tasks, waits or
     * producers than PTO_RANGE_*) is a fault (BUILD_RANGE_LENGTH, BUILD_CHAIN_VARIES, BUILD_CHAIN_LIMIT). */
    int64_t (*submit_task_range)(void *runtime, const pto_task_range *range);
} pto_stream_api;

PTO_STATIC_ASSERT(sizeof(pto_stream_api) == 112, "size of pto_stream_api");
PTO_STATIC_ASSERT(offsetof(pto_stream_api, submit) == 8, "pto_stream_api.submit");
PTO_STATIC_ASSERT(offsetof(pto_stream_api, open_scope) == 24, "pto_stream_api.open_scope");
PTO_STATIC_ASSERT(offsetof(pto_stream_api, set) == 56, "pto_stream_api.set");
PTO_STATIC_ASSERT(offsetof(pto_stream_api, replay) == 80, "pto_stream_api.replay");
PTO_STATIC_ASSERT(offsetof(pto_stream_api, read) == 88, "pto_stream_api.read");
PTO_STATIC_ASSERT(offsetof(pto_stream_api, submit_range) == 96, "pto_stream_api.submit_range");
PTO_STATIC_ASSERT(offsetof(pto_stream_api, submit_task_range) == 104, "pto_stream_api.submit_task_range");

#ifdef __cplusplus
}
#endif

#endif /* PTO_STREAM_H */

/* Ranges of tasks in C: many tasks of one kernel that are submitted in one call. What differs from one task to the next, and what each of them waits
 * for. Each task is a task like any other afterwards, and its number follows that of the task before it.
 *
 * Ranges of tasks without tensors: pto_stream_api.submit_task_range (pto_stream.h), pto_submit_range (pto_firmware.h), pto_builder_submit_range
 * (pto_runtime.h). Ranges on tensors: submit_range, pto_stream_submit_range, pto_builder_submit_tensor_range.
 */
#ifndef PTO_RANGE_H
#define PTO_RANGE_H

#include "pto_abi.h"

/* Tasks of a range, at most. */
#define PTO_RANGE_TASKS 128
/* Waits of a range, at most. */
#define PTO_RANGE_WAITS 8
/* Producers that all waits of a range name, at most. */
#define PTO_RANGE_PRODUCERS 512

/* Each task waits for all producers. */
#define PTO_RANGE_WAIT_ALL 0u
/* Task n waits for `width` producers, from number `from` + n * `stride` of them on; what lies before the first or behind the last one is left out. With
 * `from` 0, `width` 1 and `stride` 1, task n waits for producer n. */
#define PTO_RANGE_WAIT_WINDOW 1u
/* Task n waits for the producers from ends[n - 1] up to ends[n], the first task for those from the start. */
#define PTO_RANGE_WAIT_LISTED 2u

#ifdef __cplusplus
extern "C" {
#endif

/* How one argument differs between the tasks of a range. With `count` 0 it grows by `step` from each task to the next: a scalar by that number,
 * a tensor or an address by so many bytes. Otherwise it is words[n] in task n, with a word for each task; of a tensor, the words are the
 * addresses where its view begins. */
typedef struct pto_stream_variation {
    uint32_t arg;
    uint32_t count;
    int64_t step;
    const uint64_t *words;
} pto_stream_variation;

/* What each task of a range waits for: some of `count` producers. These are the tasks with the numbers producers[0] and so on; where `producers` is
 * null, the tasks from number `first` on, such as those of another range. */
typedef struct pto_range_wait {
    uint32_t kind; /* PTO_RANGE_WAIT_* */
    uint32_t count;
    const int64_t *producers;
    int64_t first;
    int32_t from;
    uint32_t width;
    uint32_t stride;
    uint32_t reserved; /* 0 */
    const uint32_t *ends; /* an end for each task of the range, in ascending order, the last one `count` */
} pto_range_wait;

/* A range of tasks without tensors. `args` are the words of the first task, at most 31. A task waits for what all waits say. */
typedef struct pto_task_range {
    uint32_t struct_size; /* sizeof(pto_task_range) */
    uint32_t func_id;
    uint32_t core_type; /* 0 (AIC) or 1 (AIV) */
    uint32_t tasks;
    const uint64_t *args;
    const pto_stream_variation *variations;
    const pto_range_wait *waits;
    uint32_t arg_count;
    uint32_t variation_count;
    uint32_t wait_count;
    uint32_t reserved; /* 0 */
} pto_task_range;

PTO_STATIC_ASSERT(sizeof(pto_stream_variation) == 24, "size of pto_stream_variation");
PTO_STATIC_ASSERT(offsetof(pto_stream_variation, words) == 16, "pto_stream_variation.words");
PTO_STATIC_ASSERT(sizeof(pto_range_wait) == 48, "size of pto_range_wait");
PTO_STATIC_ASSERT(offsetof(pto_range_wait, first) == 16, "pto_range_wait.first");
PTO_STATIC_ASSERT(offsetof(pto_range_wait, ends) == 40, "pto_range_wait.ends");
PTO_STATIC_ASSERT(sizeof(pto_task_range) == 56, "size of pto_task_range");
PTO_STATIC_ASSERT(offsetof(pto_task_range, args) == 16, "pto_task_range.args");
PTO_STATIC_ASSERT(offsetof(pto_task_range, arg_count) == 40, "pto_task_range.arg_count");

#ifdef __cplusplus
}
#endif

#endif /* PTO_RANGE_H */

// Which block and which core a kernel runs on. `args` is what the kernel was called with.
#ifndef PTO_FIELD_INTRINSIC_H
#define PTO_FIELD_INTRINSIC_H

#include <stdint.h>

#include "tensor.h"

#define PTO_FIELD_LOCAL_CONTEXT 48
#define PTO_FIELD_GLOBAL_CONTEXT 49

// A condition that a task waits for after its kernel has returned: a counter reaches a value.
struct DeferredCompletionEntry {
    uint64_t addr;
    uint32_t expected_value;
    uint32_t engine;
    uint32_t completion_type;
    uint32_t reserved;
    uint64_t backend_cookie;
};

struct AsyncCtx {
    volatile uint32_t *completion_count;
    volatile int32_t *completion_error_code;
    volatile DeferredCompletionEntry *completion_entries;
    uint32_t completion_capacity;
    PTO2TaskId task_token;
};

struct LocalContext {
    int32_t block_idx;
    int32_t block_num;
    AsyncCtx async_ctx;
};

struct GlobalContext {
    int32_t sub_block_id;
    uint64_t dma_workspace[2];
};

enum DmaWorkspaceKind : int32_t { DMA_WORKSPACE_SDMA = 0, DMA_WORKSPACE_URMA = 1 };

static_assert(sizeof(DeferredCompletionEntry) == 32, "size of DeferredCompletionEntry");
static_assert(sizeof(LocalContext) == 48, "size of LocalContext");
static_assert(sizeof(GlobalContext) == 24, "size of GlobalContext");

inline __aicore__ __gm__ LocalContext *pto_field_local(__gm__ int64_t *args) {
    return reinterpret_cast<__gm__ LocalContext *>(args[PTO_FIELD_LOCAL_CONTEXT]);
}
inline __aicore__ __gm__ GlobalContext *pto_field_global(__gm__ int64_t *args) {
    return reinterpret_cast<__gm__ GlobalContext *>(args[PTO_FIELD_GLOBAL_CONTEXT]);
}
inline __aicore__ int32_t get_block_idx(__gm__ int64_t *args) { return pto_field_local(args)->block_idx; }
inline __aicore__ int32_t get_block_num(__gm__ int64_t *args) { return pto_field_local(args)->block_num; }
// 0, or 1 on the second vector core of a cluster.
inline __aicore__ int32_t get_sub_block_id(__gm__ int64_t *args) { return pto_field_global(args)->sub_block_id; }
// 0: this device has no such engine.
inline __aicore__ uint64_t get_dma_workspace(__gm__ int64_t *args, int32_t kind) {
    return kind < 0 || kind > 1 ? 0 : pto_field_global(args)->dma_workspace[kind];
}

#endif  // PTO_FIELD_INTRINSIC_H

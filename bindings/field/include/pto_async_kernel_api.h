// Tasks that complete after their kernels have returned, when counters have reached their values.
#ifndef PTO_FIELD_ASYNC_KERNEL_API_H
#define PTO_FIELD_ASYNC_KERNEL_API_H

#include <atomic>
#include <type_traits>

#include "intrinsic.h"
#include "pto_field_codes.h"

#define MAX_COMPLETIONS_PER_TASK 64

enum : uint32_t { COMPLETION_ENGINE_LOCAL = 0, COMPLETION_ENGINE_SDMA = 1, COMPLETION_ENGINE_URMA = 2 };
enum : uint32_t { COMPLETION_TYPE_COUNTER = 0, COMPLETION_TYPE_FLAG = 1 };

struct CompletionToken {
    uint64_t addr;
    uint32_t expected_value;
    uint32_t engine;
    uint32_t completion_type;
    uint64_t backend_cookie;
};

inline AsyncCtx get_async_ctx(__gm__ int64_t *args) { return pto_field_local(args)->async_ctx; }

namespace pto2 {
namespace detail {
// The task fails with this code.
inline void defer_error(const AsyncCtx &ctx, int32_t code) { *ctx.completion_error_code = code; }
// The runtime reads what was registered directly: there is nothing to write back.
inline void defer_flush(const AsyncCtx &) { std::atomic_thread_fence(std::memory_order_release); }
}  // namespace detail
}  // namespace pto2

// The task completes when the counter has reached the value. More conditions than there is room for fail the run with 102.
inline void register_completion_condition(const AsyncCtx &ctx, const CompletionToken &token) {
    const uint32_t count = *ctx.completion_count;
    if (count >= ctx.completion_capacity) {
        *ctx.completion_error_code = 102;
        return;
    }
    volatile DeferredCompletionEntry *entry = &ctx.completion_entries[count];
    entry->addr = token.addr;
    entry->expected_value = token.expected_value;
    entry->engine = token.engine;
    entry->completion_type = token.completion_type;
    entry->backend_cookie = token.backend_cookie;
    *ctx.completion_count = count + 1;
}
template <typename Counter>
inline void save_expected_notification_counter(const AsyncCtx &ctx, Counter *counter, uint32_t expected) {
    register_completion_condition(
        ctx, CompletionToken{reinterpret_cast<uint64_t>(counter), expected, COMPLETION_ENGINE_LOCAL,
                             COMPLETION_TYPE_COUNTER, 0});
}

// Raises or writes a counter, also one of another device. Operations are named as PTO-ISA's NotifyOp; 0 adds, others write.
template <typename Counter, typename Operation>
inline void send_notification(Counter *counter, int32_t value, Operation operation) {
    int32_t *address = reinterpret_cast<int32_t *>(const_cast<typename std::remove_cv<Counter>::type *>(counter));
    if (operation == Operation::AtomicAdd) {
        __atomic_fetch_add(address, value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(address, value, __ATOMIC_RELEASE);
    }
}

#endif  // PTO_FIELD_ASYNC_KERNEL_API_H

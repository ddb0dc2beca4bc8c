// The streaming interface of February 2026, as programs of its first weeks include it:
//
//   extern "C" void aicpu_orchestration_entry(void *memory, uint64_t *args, int count) {
//       PTO2OrchestrationBeginInfo info{.sm_ptr = memory, .args = args, .arg_count = count, ..};
//       PTO2_ORCHESTRATION(rt, info) { .. pto2_rt_submit_task(rt, ..); }
//   }
//
// Written from the interface's description; docs/reference/simpler-interface.md says which parts work.
#ifndef PTO_RUNTIME2_H
#define PTO_RUNTIME2_H

#define PTO_FIELD_HEAP_WORDS 1
#include "pto_field_streams.h"

// Sizes are those of the runtime here, and of no effect.
struct PTO2OrchestrationBeginInfo {
    void *sm_ptr;
    uint64_t *args;
    int arg_count;
    int expected_arg_count;
    int32_t task_window_size;
    int32_t dep_list_pool_size;
    int32_t heap_size;
    void *gm_heap_ptr = nullptr;
};

// The runtime that the entry was called with; none where arguments are missing, which fails the run.
class PTO2OrchestrationGuard {
public:
    explicit PTO2OrchestrationGuard(const PTO2OrchestrationBeginInfo &info, const char *file = __builtin_FILE(), int line = __builtin_LINE())
        : rt_(static_cast<PTO2Runtime *>(info.sm_ptr)) {
        // Two words are those of the heap.
        if (rt_ == nullptr || info.args == nullptr || info.arg_count - 2 < info.expected_arg_count) {
            char text[128];
            snprintf(text, sizeof text, "the orchestration expects %d words, and gets %d", info.expected_arg_count, info.arg_count - 2);
            pto_field_refuse(text, file, line);
            rt_ = nullptr;
        }
    }
    bool valid() const { return rt_ != nullptr; }
    PTO2Runtime *runtime() const { return rt_; }

private:
    PTO2Runtime *rt_;
};

#define PTO_FIELD_ORCHESTRATION(rt, guard, info) \
    if (PTO2OrchestrationGuard guard(info); PTO2Runtime *rt = guard.runtime()) PTO2_SCOPE(rt)
#define PTO2_ORCHESTRATION(rt, info) PTO_FIELD_ORCHESTRATION(rt, PTO_FIELD_JOIN(pto_field_guard_, __COUNTER__), info)

#endif  // PTO_RUNTIME2_H

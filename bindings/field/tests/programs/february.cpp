// Programs against the streaming interface of February 2026. With FIRST_WEEKS they include pto_runtime2.h, and enter through its macro.
#ifdef FIRST_WEEKS
#include "pto_runtime2.h"
#include "pto_shared_memory.h"
#else
#include "pto_orchestration_api.h"
#endif

namespace {

enum Kernel { ADD = 0, BUMP = 3, BETWEEN = 22 };
const uint64_t BYTES = 1024 * sizeof(float);

uint64_t bits(float value) {
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    return word;
}

// out = 3 (a + b) + 1, and 5 more in its second half.
void sums(PTO2Runtime *rt, uint64_t *args) {
    Tensor a = make_tensor_external(reinterpret_cast<void *>(args[0]), args[4]);
    Tensor b = make_tensor_external(reinterpret_cast<void *>(args[1]), args[5]);
    Tensor out = make_tensor_external(reinterpret_cast<void *>(args[2]), args[6]);
    Tensor c = make_tensor(BYTES);
    PTOParam sum[] = {make_input_param(a), make_input_param(b), make_output_param(c)};
    pto2_rt_submit_task(rt, ADD, PTO2_WORKER_VECTOR, sum, 3);
    PTO2_SCOPE(rt) {
        const uint64_t shape[2] = {32, 32};
        Tensor d = make_tensor(shape, 2);
        PTOParam between[] = {make_input_param(c), make_scalar_param(bits(2)), make_output_param(d), make_scalar_param(bits(1))};
        pto2_rt_submit_task(rt, BETWEEN, PTO2_WORKER_VECTOR, "between", between, 4);
        PTOParam last[] = {make_input_param(d), make_input_param(c), make_output_param(out)};
        pto2_rt_submit_task(rt, ADD, PTO2_WORKER_VECTOR, last, 3);
    }
    Tensor half = out.view({512}, {512});
    PTOParam more[] = {make_inout_param(half), make_scalar_param(bits(static_cast<float>(args[8])))};
    pto2_rt_submit_task(rt, BUMP, PTO2_WORKER_VECTOR, more, 2);
}

}  // namespace

extern "C" {

#ifdef FIRST_WEEKS
static PTO2OrchestrationBeginInfo info_of(void *memory, uint64_t *args, int count, int expected) {
    return PTO2OrchestrationBeginInfo{memory, args, count, expected, 16384, 65536, 256 * 1024};
}
void first_weeks(void *memory, uint64_t *args, int count) {
    const PTO2OrchestrationBeginInfo info = info_of(memory, args, count, 9);
    PTO2_ORCHESTRATION(rt, info) { sums(rt, args); }
}
void first_weeks_bad_count(void *memory, uint64_t *args, int count) {
    const PTO2OrchestrationBeginInfo info = info_of(memory, args, count, 10);
    PTO2_ORCHESTRATION(rt, info) { sums(rt, args); }
}
#else
PTO2OrchestrationConfig february_config(uint64_t *, int) { return PTO2OrchestrationConfig{9}; }
void february(PTO2Runtime *rt, uint64_t *args, int count) {
    LOG_INFO(rt, "%d words", count);
    sums(rt, args);
}
PTO2OrchestrationConfig february_bad_count_config(uint64_t *, int) { return PTO2OrchestrationConfig{11}; }
void february_bad_count(PTO2Runtime *rt, uint64_t *args, int) { sums(rt, args); }
void february_bad_worker(PTO2Runtime *rt, uint64_t *args, int) {
    Tensor out = make_tensor_external(reinterpret_cast<void *>(args[2]), args[6]);
    PTOParam params[] = {make_inout_param(out)};
    pto2_rt_submit_task(rt, BUMP, PTO2_WORKER_AI_CPU, params, 1);
}
void february_bad_view(PTO2Runtime *rt, uint64_t *args, int) {
    Tensor out = make_tensor_external(reinterpret_cast<void *>(args[2]), args[6]).view({1, 2}, {0, 0});
    PTOParam params[] = {make_inout_param(out), make_scalar_param(0)};
    pto2_rt_submit_task(rt, BUMP, PTO2_WORKER_VECTOR, params, 2);
}
#endif
}

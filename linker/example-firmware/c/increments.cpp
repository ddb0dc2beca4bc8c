// A graph builder in C++ for class Runtime, the same as the builder "increments" in Rust: adds 1.0 to a vector, `times` over.
//
// Words: address of the vector (float), its length, how often. The kernel is `add_scalar` of the library (func id 1).
#include <cstring>

#include "runtime.h"

namespace {

enum { ADD_SCALAR = 1 };

// The same name as in other plugins of an image does not matter.
template <class Number>
uint64_t bits(Number number) {
    uint32_t word;
    static_assert(sizeof word == sizeof number, "a number of 32 bits");
    std::memcpy(&word, &number, sizeof word);
    return word;
}

}  // namespace

extern "C" int build_graph_aicpu(Runtime *runtime) {
    if (runtime->orch_argc != 3 || runtime->get_function_bin_addr(ADD_SCALAR) == 0) {
        return 7;
    }
    const uint64_t vector = runtime->orch_args[0], length = runtime->orch_args[1], times = runtime->orch_args[2];
    int last = -1;
    for (uint64_t i = 0; i < times; i++) {
        uint64_t args[] = {vector, bits(1.0f), vector, length};
        const int task = runtime->aicpu_build_api.add_task(runtime, args, 4, ADD_SCALAR, CoreType::AIV, 0);
        if (last >= 0) {
            runtime->aicpu_build_api.add_successor_conditional(runtime, last, task);
        }
        runtime->aicpu_build_api.publish_task(runtime, task);
        last = task;
    }
    return runtime->get_task_count() == static_cast<int>(times) ? 0 : 8;
}

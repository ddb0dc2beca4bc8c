// The orchestration interface of August 2026: programs that submit tasks with tensors.
//
//   extern "C" void aicpu_orchestration_entry(const ChipTaskArgs &args);
//   extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &args);   // may be left out
//
// Compile with: g++ -shared -fPIC -O3 -std=c++17 -fno-gnu-unique -I FOLDER_OF_THIS_HEADER program.cpp -o program.so
// Nothing is linked. Written from the interface's description; docs/reference/simpler-interface.md says which parts work.
#ifndef PTO_ORCHESTRATION_API_H
#define PTO_ORCHESTRATION_API_H

// Programs of February and March 2026 have another interface under this name.
#if defined(PTO_FIELD_STREAMS)
#include "pto_field_streams.h"
#else

#include <algorithm>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <utility>

#include "pto_field_graph.h"

struct PTO2OrchestrationConfig {
    int expected_arg_count;
};
using OrchestrationConfig = PTO2OrchestrationConfig;

// ---- fatal errors and messages ----

inline bool rt_is_fatal() { return pto_field_ops->is_fatal() != 0; }

__attribute__((format(printf, 2, 3))) inline void rt_report_fatal(int32_t code, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pto_field_ops->fatal(code, text, pto_field_place{nullptr, 0, 0});
}

// ---- tensors ----

// A tensor in memory that the program has. Extents are those of a dense tensor, the last one the innermost.
inline ChipTensor make_tensor_external(void *address, const uint32_t extents[], uint32_t ndims,
                                       DataType type = DataType::FLOAT32, bool manual = false, int32_t version = 0,
                                       AddressSpace space = AddressSpace::HOST) {
    ChipTensor tensor;
    memset(static_cast<void *>(&tensor), 0, sizeof tensor);
    tensor.owner_task_id = PTO2TaskId::invalid();
    tensor.ndims = ndims;
    tensor.dtype = type;
    tensor.manual_dep = manual;
    tensor.version = version;
    tensor.address_space = space;
    if (ndims <= 5) {
        tensor.set_dense(extents);
        tensor.buffer.size = tensor.nbytes();
    }
    tensor.buffer.addr = reinterpret_cast<uintptr_t>(address);
    return tensor;
}

// The tensors that a submission has made, in the order of its OUTPUT arguments. They end with the innermost scope.
class TaskOutputTensors {
public:
    TaskOutputTensors() : outputs_{PTO2TaskId::invalid(), nullptr, 0} {}
    explicit TaskOutputTensors(const pto_field_outputs &outputs) : outputs_(outputs) {}

    size_t size() const { return outputs_.count; }
    bool empty() const { return outputs_.count == 0; }
    // After a fatal error there are no tensors; what this gives then is a tensor without elements.
    const ChipTensor &get_ref(size_t index) const {
        if (index < outputs_.count) {
            return outputs_.tensors[index];
        }
        if (!rt_is_fatal()) {
            rt_report_fatal(PTO2_ERROR_INVALID_ARGS, "get_ref(%zu): the task has %zu outputs", index, size());
        }
        static const ChipTensor none = make_tensor_external(nullptr, nullptr, 0);
        return none;
    }
    PTO2TaskId task_id() const { return outputs_.task; }

private:
    pto_field_outputs outputs_;
};

// ---- tasks ----

struct MixedKernels {
    int32_t aic_kernel_id = -1;
    int32_t aiv0_kernel_id = -1;
    int32_t aiv1_kernel_id = -1;
};

inline TaskOutputTensors pto_field_submit(const pto_field_task &task) { return TaskOutputTensors(pto_field_hand_over(task)); }
template <uint32_t T, uint32_t S>
inline TaskOutputTensors rt_submit_task(const MixedKernels &kernels, const PtoFieldArgs<T, S> &args, PTO_FIELD_HERE) {
    return pto_field_submit(
        args.as_task(kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id, file, line));
}
template <uint32_t T, uint32_t S>
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel_id, const PtoFieldArgs<T, S> &args, PTO_FIELD_HERE) {
    return pto_field_submit(args.as_task(kernel_id, -1, -1, file, line));
}
template <uint32_t T, uint32_t S>
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel_id, const PtoFieldArgs<T, S> &args, PTO_FIELD_HERE) {
    return pto_field_submit(args.as_task(-1, kernel_id, -1, file, line));
}
// A task without a kernel: it completes when what it waits for has completed.
template <uint32_t T, uint32_t S>
inline TaskOutputTensors rt_submit_dummy_task(const PtoFieldArgs<T, S> &args, PTO_FIELD_HERE) {
    return pto_field_submit(args.as_task(-1, -1, -1, file, line));
}

// Tensors without a task: the id that comes with them is that of a task that has completed.
inline TaskOutputTensors pto_field_alloc(const pto_field_argument *infos, uint32_t count, const char *file, int line) {
    pto_field_outputs outputs;
    pto_field_ops->alloc(infos, count, pto_field_place{file, line, 0}, &outputs);
    return TaskOutputTensors(outputs);
}
inline TaskOutputTensors alloc_tensors(const TensorCreateInfo infos[], uint32_t count, PTO_FIELD_HERE) {
    pto_field_argument arguments[32];
    const uint32_t held = count < 32 ? count : 32;
    for (uint32_t at = 0; at < held; at++) {
        arguments[at] = pto_field_argument{&infos[at], static_cast<uint64_t>(TensorArgType::OUTPUT)};
    }
    if (count > 32) {
        pto_field_ops->fatal(PTO2_ERROR_INVALID_ARGS, "alloc_tensors: at most 32 tensors",
                             pto_field_place{file, line, 0});
        return TaskOutputTensors();
    }
    return pto_field_alloc(arguments, held, file, line);
}
inline TaskOutputTensors alloc_tensors(const CoreTaskArgs &args, PTO_FIELD_HERE) {
    const pto_field_task task = args.as_task(-1, -1, -1, file, line);
    if (task.error != nullptr) {
        pto_field_ops->fatal(PTO2_ERROR_INVALID_ARGS, task.error, task.place);
        return TaskOutputTensors();
    }
    return pto_field_alloc(task.tensors, task.tensor_count, file, line);
}
template <typename... Infos>
inline TaskOutputTensors alloc_tensors(const TensorCreateInfo &first, const Infos &...rest) {
    const pto_field_argument arguments[] = {
        pto_field_argument{&first, static_cast<uint64_t>(TensorArgType::OUTPUT)},
        pto_field_argument{static_cast<const TensorCreateInfo *>(&rest), static_cast<uint64_t>(TensorArgType::OUTPUT)}...};
    return pto_field_alloc(arguments, 1 + static_cast<uint32_t>(sizeof...(rest)), nullptr, 0);
}

inline int32_t rt_available_cluster_count() { return pto_field_ops->available(0); }
inline int32_t rt_available_aiv_count() { return pto_field_ops->available(1); }

// ---- scopes ----

enum class PTO2ScopeMode : uint8_t { AUTO = 0, MANUAL = 1 };
using ScopeMode = PTO2ScopeMode;

inline void rt_scope_begin(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, PTO_FIELD_HERE) {
    pto_field_ops->scope_begin(static_cast<int32_t>(mode), pto_field_place{file, line, 0});
}
inline void rt_scope_end() { pto_field_end_scope(); }

class PTO2ScopeGuard {
public:
    explicit PTO2ScopeGuard(PTO2ScopeMode mode = PTO2ScopeMode::AUTO, PTO_FIELD_HERE) {
        rt_scope_begin(mode, file, line);
    }
    // In April 2026 some programs gave their runtime.
    explicit PTO2ScopeGuard(struct PTO2Runtime *, PTO_FIELD_HERE) : PTO2ScopeGuard(PTO2ScopeMode::AUTO, file, line) {}
    ~PTO2ScopeGuard() { rt_scope_end(); }
    PTO2ScopeGuard(const PTO2ScopeGuard &) = delete;
    PTO2ScopeGuard &operator=(const PTO2ScopeGuard &) = delete;
    explicit operator bool() const { return true; }
};

#define PTO_FIELD_JOIN_(a, b) a##b
#define PTO_FIELD_JOIN(a, b) PTO_FIELD_JOIN_(a, b)
// PTO2_SCOPE() { ... } and PTO2_SCOPE(PTO2ScopeMode::MANUAL) { ... }
#define PTO2_SCOPE(...) if (PTO2ScopeGuard PTO_FIELD_JOIN(pto_scope_, __LINE__){__VA_ARGS__}; true)
#define PTO2_SCOPE_GUARD(...) PTO2ScopeGuard PTO_FIELD_JOIN(pto_scope_, __LINE__){__VA_ARGS__}
#define SIMPLER_SCOPE(...) PTO2_SCOPE(__VA_ARGS__)
#define SIMPLER_SCOPE_GUARD(...) PTO2_SCOPE_GUARD(__VA_ARGS__)

// ---- graphs of the host-built runtime ----

struct GraphSubmitResult {
    bool execute_block;
    bool recording;
    PTO2TaskId task_id;
};

constexpr uint64_t pto_field_hash(const char *text) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (; *text != 0; text++) {
        hash = (hash ^ static_cast<uint8_t>(*text)) * 0x100000001b3ull;
    }
    return hash;
}
#define GRAPH_KEY(name) (pto_field_hash(name))

// Runs the body with the boundary's tensors. Each submission builds it anew: nothing of it is frozen. The boundary's type was CoreTaskArgs at first.
template <typename Body, typename Args, typename... Config>
inline GraphSubmitResult pto_field_graph(uint64_t key, Body &&body, const Args &args, Config... config) {
    const pto_field_task boundary = args.as_task(-1, -1, -1, nullptr, 0);
    const uint64_t before = pto_field_ops->graph_begin(key, &boundary);
    if (!rt_is_fatal()) {
        body(args, config...);
    }
    const PTO2TaskId last = pto_field_ops->graph_end(key);
    return GraphSubmitResult{true, before == 0, last};
}
template <typename Args, typename... Config>
inline GraphSubmitResult rt_submit_graph(void (*body)(const Args &, Config...), const typename std::common_type<Args>::type &args,
                                         typename std::common_type<Config>::type... config) {
    return pto_field_graph(reinterpret_cast<uintptr_t>(body), body, args, config...);
}
template <typename Args, typename... Config>
inline GraphSubmitResult rt_submit_graph(uint64_t key, void (*body)(const Args &, Config...), const typename std::common_type<Args>::type &args,
                                         typename std::common_type<Config>::type... config) {
    return pto_field_graph(key, body, args, config...);
}
template <typename Args, typename Body>
inline GraphSubmitResult rt_submit_graph_impl(uint64_t key, const Args &args, Body &&body) {
    return pto_field_graph(key, body, args);
}
inline void rt_graph_commit() {}

// A hint to the processor in loops that wait.
#ifndef SPIN_WAIT_HINT
#if defined(__x86_64__)
#define SPIN_WAIT_HINT() __builtin_ia32_pause()
#else
#define SPIN_WAIT_HINT() __asm__ __volatile__("yield")
#endif
#endif

#include "pto_arg_with_deps.h"

// ---- how the runtime enters the program ----

#ifndef PTO_FIELD_OWN_ENTRY
extern "C" {
__attribute__((weak, visibility("default"), used)) void pto_field_enter(void *entry, const ChipTensor *tensors, uint32_t tensor_count,
                                                                        const uint64_t *scalars, uint32_t scalar_count) {
    pto_field_guarded(tensors, tensor_count, scalars, scalar_count, [&](const ChipTaskArgs &args) {
        pto_field_call_entry(entry, args);
    });
}
}
#endif
extern "C" {
// How many arguments the program expects; 0 or less: any number.
__attribute__((weak, visibility("default"), used)) int32_t pto_field_expected(
    PTO2OrchestrationConfig (*config)(PTO_FIELD_ENTRY_TYPES), const ChipTensor *tensors, uint32_t tensor_count,
    const uint64_t *scalars, uint32_t scalar_count) {
    ChipTaskArgs args;
    pto_field_take(args, tensors, tensor_count, scalars, scalar_count);
    return pto_field_expected_of(args, [&](auto &&...given) { return config(given...).expected_arg_count; });
}
}

#endif  // PTO_FIELD_STREAMS
#endif  // PTO_ORCHESTRATION_API_H

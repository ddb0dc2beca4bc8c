// The streaming interface of February and March 2026: tensors are values, tasks get an array of parameters or one object with all of them.
//
// Not for programs: they include pto_runtime2.h (the first weeks), or pto_orchestration_api.h compiled with -DPTO_FIELD_STREAMS=1.
//
// Kernels get their arguments in the order of the parameters, tensors and scalars mixed. A tensor without memory gets it from the first task
// that writes it.
#ifndef PTO_FIELD_STREAMS_H
#define PTO_FIELD_STREAMS_H

// The name Tensor is this file's, and not that of another month.
#define PTO_FIELD_OWN_TENSOR 1

#include <initializer_list>
#include <stdio.h>
#include <string>
#include <vector>

#include "pto_field_graph.h"

#define RUNTIME_MAX_TENSOR_DIMS 8

inline bool pto_field_is_fatal() { return pto_field_ops->is_fatal() != 0; }
inline void pto_field_refuse(const char *text, const char *file, int line) {
    pto_field_ops->fatal(PTO2_ERROR_INVALID_ARGS, text, pto_field_place{file, line, 0});
}

// ---- tensors: extents have 64 bits here, and at most 5 of them ----

class Tensor : public ChipTensor {
public:
    Tensor() { memset(static_cast<void *>(this), 0, sizeof *this), owner_task_id = PTO2TaskId::invalid(); }
    Tensor(const ChipTensor &other) : ChipTensor(other) {}

    Tensor view(const uint32_t extents[], const uint32_t offsets[], bool manual = false) const { return Tensor(ChipTensor::view(extents, offsets, manual)); }
    Tensor view(const uint64_t extents[], const uint64_t offsets[]) const {
        uint32_t part[5], from[5];
        narrow(extents, part), narrow(offsets, from);
        return Tensor(ChipTensor::view(part, from));
    }
    Tensor view(std::initializer_list<uint64_t> extents, std::initializer_list<uint64_t> offsets) const {
        return extents.size() == ndims && offsets.size() == ndims ? view(extents.begin(), offsets.begin()) : refused();
    }
    Tensor reshape(const uint32_t extents[], uint64_t count) const { return Tensor(ChipTensor::reshape(extents, static_cast<uint32_t>(count))); }
    Tensor reshape(const uint64_t extents[], uint64_t count) const {
        if (count > 5) {
            return refused();
        }
        uint32_t other[5] = {0, 0, 0, 0, 0};
        for (uint64_t dim = 0; dim < count; dim++) {
            other[dim] = static_cast<uint32_t>(extents[dim]);
        }
        return Tensor(ChipTensor::reshape(other, static_cast<uint32_t>(count)));
    }
    Tensor reshape(std::initializer_list<uint64_t> extents) const { return reshape(extents.begin(), extents.size()); }
    Tensor transpose(uint64_t a, uint64_t b) const {
        return Tensor(ChipTensor::transpose(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
    }

private:
    void narrow(const uint64_t from[], uint32_t to[5]) const {
        for (uint32_t dim = 0; dim < 5; dim++) {
            to[dim] = dim < ndims ? static_cast<uint32_t>(from[dim]) : 0;
        }
    }
    // The submission refuses it: no tensor has six dimensions.
    Tensor refused() const {
        Tensor other = *this;
        other.ndims = MAX_TENSOR_DIMS + 1;
        return other;
    }
};

// In the first days of February 2026.
using TensorDescriptor = Tensor;

inline Tensor pto_field_dense(void *address, const uint64_t extents[], uint64_t count, DataType type, int32_t version) {
    Tensor tensor;
    tensor.ndims = count <= 5 ? static_cast<uint32_t>(count) : MAX_TENSOR_DIMS + 1;
    tensor.dtype = type;
    tensor.version = version;
    if (count <= 5) {
        uint32_t narrow[5] = {0, 0, 0, 0, 0};
        for (uint64_t dim = 0; dim < count; dim++) {
            narrow[dim] = static_cast<uint32_t>(extents[dim]);
        }
        tensor.set_dense(narrow);
        tensor.buffer.size = tensor.nbytes();
    }
    tensor.buffer.addr = reinterpret_cast<uintptr_t>(address);
    return tensor;
}
inline Tensor make_tensor_external(void *address, const uint64_t extents[], uint64_t count, DataType type = DataType::FLOAT32,
                                   int32_t version = 0) {
    return pto_field_dense(address, extents, count, type, version);
}
inline Tensor make_tensor(const uint64_t extents[], uint64_t count, DataType type = DataType::FLOAT32, int32_t version = 0) {
    return pto_field_dense(nullptr, extents, count, type, version);
}
// In March extents have 32 bits, and the flag for edges of the program's own comes before the version.
inline Tensor make_tensor_external(void *address, const uint32_t extents[], uint32_t count, DataType type = DataType::FLOAT32, bool manual = false,
                                   int32_t version = 0) {
    uint64_t wide[5] = {0, 0, 0, 0, 0};
    std::copy_n(extents, count < 5 ? count : 5, wide);
    Tensor tensor = pto_field_dense(address, wide, count, type, version);
    tensor.manual_dep = manual;
    return tensor;
}
inline Tensor make_tensor(const uint32_t extents[], uint32_t count, DataType type = DataType::FLOAT32, bool manual = false, int32_t version = 0) {
    return make_tensor_external(nullptr, extents, count, type, manual, version);
}
// By bytes. The data type stood last in the first weeks, and the version later: both orders are taken.
inline Tensor make_tensor_external(void *address, uint64_t bytes, DataType type = DataType::FLOAT32, int32_t version = 0) {
    const uint64_t extents[1] = {bytes / get_element_size(type)};
    return pto_field_dense(address, extents, 1, type, version);
}
inline Tensor make_tensor_external(void *address, uint64_t bytes, int32_t version, DataType type = DataType::FLOAT32) {
    return make_tensor_external(address, bytes, type, version);
}
inline Tensor make_tensor(uint64_t bytes, DataType type = DataType::FLOAT32, int32_t version = 0) {
    return make_tensor_external(nullptr, bytes, type, version);
}
inline Tensor make_tensor(uint64_t bytes, int32_t version, DataType type = DataType::FLOAT32) {
    return make_tensor_external(nullptr, bytes, type, version);
}

// ---- parameters ----

// Parameters of a task: one of an array, or (in March) all of them.
class PTOParam {
public:
    PTOParam() = default;
    PTOParam(TensorArgType type, Tensor *tensor, uint64_t word) : entries_{Entry{type, tensor, word}} {}
    void add_input(Tensor &tensor) { entries_.push_back(Entry{TensorArgType::INPUT, &tensor, 0}); }
    void add_output(Tensor &tensor) { entries_.push_back(Entry{TensorArgType::OUTPUT, &tensor, 0}); }
    void add_inout(Tensor &tensor) { entries_.push_back(Entry{TensorArgType::INOUT, &tensor, 0}); }
    template <typename T>
    void add_scalar(T value) {
        entries_.push_back(Entry{TensorArgType::INPUT, nullptr, to_u64(value)});
    }
    void add_scalars(const uint64_t *values, int count) {
        for (int at = 0; at < count; at++) {
            add_scalar(values[at]);
        }
    }
    void add_scalars_i32(const int32_t *values, int count) {
        for (int at = 0; at < count; at++) {
            add_scalar(values[at]);
        }
    }
    void reset() { entries_.clear(); }

    struct Entry {
        TensorArgType type;
        Tensor *tensor;  // nullptr: a scalar
        uint64_t word;
    };
    const std::vector<Entry> &entries() const { return entries_; }

private:
    std::vector<Entry> entries_;
};
// From 28 March on it has this name, and entries get arguments.
using Arg = PTOParam;
using ChipStorageTaskArgs = ChipTaskArgs;
inline Tensor from_tensor_arg(const PtoFieldTensorArg &arg) { return Tensor(arg.ref()); }
static inline PTOParam make_input_param(Tensor &tensor) { return PTOParam(TensorArgType::INPUT, &tensor, 0); }
static inline PTOParam make_output_param(Tensor &tensor) { return PTOParam(TensorArgType::OUTPUT, &tensor, 0); }
static inline PTOParam make_inout_param(Tensor &tensor) { return PTOParam(TensorArgType::INOUT, &tensor, 0); }
static inline PTOParam make_scalar_param(uint64_t word) { return PTOParam(TensorArgType::INPUT, nullptr, word); }

// ---- tasks and scopes ----

typedef enum {
    PTO2_WORKER_CUBE = 0,
    PTO2_WORKER_VECTOR = 1,
    PTO2_WORKER_AI_CPU = 2,
    PTO2_WORKER_ACCELERATOR = 3,
    PTO2_NUM_WORKER_TYPES = 4,
} PTO2WorkerType;

// Memory that programs of the first days of February 2026 set up themselves. The runtime here has its own: what they write has no effect.
struct PTO2SharedMemoryHeader {
    int32_t current_task, last_task, orchestrator_done;
    uint64_t graph_output_ptr;
    int32_t graph_output_size;
};
struct PTO2SharedMemoryHandle {
    PTO2SharedMemoryHeader *header;
};

// Programs pass it on. The functions that they call are in pto_field_ops.
struct PTO2Runtime {
    PTO2SharedMemoryHandle *sm_handle;
};

struct MixedKernels {
    int32_t aic_kernel_id = -1;
    int32_t aiv0_kernel_id = -1;
    int32_t aiv1_kernel_id = -1;
};

// The id of the task is for pto2_rt_add_dependency.
inline PTO2TaskId pto2_rt_submit_task(PTO2Runtime *, const MixedKernels &kernels, const PTOParam params[], int32_t count,
                                      PTO_FIELD_HERE) {
    if (pto_field_is_fatal()) {
        return PTO2TaskId::invalid();
    }
    std::vector<PTOParam::Entry> entries;
    std::for_each(params, params + count, [&](const PTOParam &param) { entries.insert(entries.end(), param.entries().begin(), param.entries().end()); });
    PtoFieldArgs<32, 16> args;
    std::vector<TensorCreateInfo> infos;
    std::vector<Tensor *> made;
    infos.reserve(entries.size());
    std::vector<uint64_t> words;
    uint32_t mask = 0;
    for (size_t at = 0; at < entries.size() && at < 32; at++) {
        const PTOParam::Entry &entry = entries[at];
        if (entry.tensor == nullptr) {
            mask |= static_cast<uint32_t>(1) << at;
            words.push_back(entry.word);
        } else if (entry.type == TensorArgType::OUTPUT && entry.tensor->buffer.addr == 0) {
            infos.push_back(TensorCreateInfo(entry.tensor->shapes, entry.tensor->ndims, entry.tensor->dtype));
            made.push_back(entry.tensor);
            args.push_tensor(&infos.back(), TensorArgType::OUTPUT);
        } else {
            args.push_tensor(entry.tensor, entry.type == TensorArgType::OUTPUT ? TensorArgType::OUTPUT_EXISTING : entry.type);
        }
    }
    args.add_scalars(words.data(), static_cast<int>(words.size()));
    if (entries.size() > 32) {
        args.set_error("a task has at most 32 parameters");
    }
    pto_field_task task = args.as_task(kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id, file, line);
    task.scalar_words = mask;
    const pto_field_outputs outputs = pto_field_hand_over(task);
    for (size_t at = 0; at < made.size() && at < outputs.count; at++) {
        *made[at] = Tensor(outputs.tensors[at]);
    }
    return outputs.task;
}
inline PTO2TaskId pto2_rt_submit_task(PTO2Runtime *rt, int32_t kernel, PTO2WorkerType worker, const PTOParam params[], int32_t count,
                                      PTO_FIELD_HERE) {
    if (worker != PTO2_WORKER_CUBE && worker != PTO2_WORKER_VECTOR) {
        pto_field_refuse("pto2_rt_submit_task: a task runs on PTO2_WORKER_CUBE or PTO2_WORKER_VECTOR", file, line);
        return PTO2TaskId::invalid();
    }
    const bool is_cube = worker == PTO2_WORKER_CUBE;
    return pto2_rt_submit_task(rt, MixedKernels{is_cube ? kernel : -1, is_cube ? -1 : kernel, -1}, params, count, file, line);
}
// The first weeks gave the kernel's name as well.
inline void pto2_rt_submit_task(PTO2Runtime *rt, int32_t kernel, PTO2WorkerType worker, const char *, const PTOParam params[], int32_t count,
                                PTO_FIELD_HERE) {
    pto2_rt_submit_task(rt, kernel, worker, params, count, file, line);
}
// March: by kinds of cores, and all parameters in one.
inline PTO2TaskId pto2_rt_submit_aic_task(PTO2Runtime *rt, int32_t kernel, const PTOParam params[], int32_t count,
                                          PTO_FIELD_HERE) {
    return pto2_rt_submit_task(rt, MixedKernels{kernel, -1, -1}, params, count, file, line);
}
inline PTO2TaskId pto2_rt_submit_aiv_task(PTO2Runtime *rt, int32_t kernel, const PTOParam params[], int32_t count,
                                          PTO_FIELD_HERE) {
    return pto2_rt_submit_task(rt, MixedKernels{-1, kernel, -1}, params, count, file, line);
}
inline PTO2TaskId pto2_rt_submit_aic_task(PTO2Runtime *rt, int32_t kernel, const PTOParam &params, PTO_FIELD_HERE) {
    return pto2_rt_submit_aic_task(rt, kernel, &params, 1, file, line);
}
inline PTO2TaskId pto2_rt_submit_aiv_task(PTO2Runtime *rt, int32_t kernel, const PTOParam &params, PTO_FIELD_HERE) {
    return pto2_rt_submit_aiv_task(rt, kernel, &params, 1, file, line);
}
inline PTO2TaskId pto2_rt_submit_task(PTO2Runtime *rt, const MixedKernels &kernels, const PTOParam &params, PTO_FIELD_HERE) {
    return pto2_rt_submit_task(rt, kernels, &params, 1, file, line);
}
#if defined(PTO_FIELD_EXPLICIT_EDGES)
inline void pto2_rt_add_dependency(PTO2Runtime *, PTO2TaskId producer, PTO2TaskId consumer) { pto_field_graph().add_edge(producer, consumer); }
#endif
// From 22 March on the runtime is not named.
inline PTO2TaskId pto2_rt_submit_aic_task(int32_t kernel, const PTOParam &params, PTO_FIELD_HERE) {
    return pto2_rt_submit_task(nullptr, MixedKernels{kernel, -1, -1}, &params, 1, file, line);
}
inline PTO2TaskId pto2_rt_submit_aiv_task(int32_t kernel, const PTOParam &params, PTO_FIELD_HERE) {
    return pto2_rt_submit_task(nullptr, MixedKernels{-1, kernel, -1}, &params, 1, file, line);
}
inline PTO2TaskId pto2_rt_submit_task(const MixedKernels &kernels, const PTOParam &params, PTO_FIELD_HERE) {
    return pto2_rt_submit_task(nullptr, kernels, &params, 1, file, line);
}
inline void pto2_rt_init_tensor_pool(PTO2Runtime *) {}
inline bool pto2_rt_is_fatal(PTO2Runtime * = nullptr) { return pto_field_is_fatal(); }
inline void pto2_rt_scope_begin(PTO2Runtime * = nullptr, PTO_FIELD_HERE) {
    pto_field_ops->scope_begin(0, pto_field_place{file, line, 0});
}
inline void pto2_rt_scope_end(PTO2Runtime * = nullptr) { pto_field_end_scope(); }
// The runtime sees the end of the entry.
inline void pto2_rt_orchestration_done(PTO2Runtime * = nullptr) {}

class PTO2ScopeGuard {
public:
    explicit PTO2ScopeGuard(PTO2Runtime *rt = nullptr, PTO_FIELD_HERE) : rt_(rt) {
        pto2_rt_scope_begin(rt, file, line);
    }
    ~PTO2ScopeGuard() { pto2_rt_scope_end(rt_); }
    PTO2ScopeGuard(const PTO2ScopeGuard &) = delete;
    PTO2ScopeGuard &operator=(const PTO2ScopeGuard &) = delete;

private:
    PTO2Runtime *rt_;
};
#define PTO_FIELD_JOIN_(a, b) a##b
#define PTO_FIELD_JOIN(a, b) PTO_FIELD_JOIN_(a, b)
#define PTO2_SCOPE_BEGIN(...) pto2_rt_scope_begin(__VA_ARGS__)
#define PTO2_SCOPE_END(...) pto2_rt_scope_end(__VA_ARGS__)
#define PTO2_SCOPE_GUARD(...) [[maybe_unused]] PTO2ScopeGuard PTO_FIELD_JOIN(pto_field_scope_, __COUNTER__){__VA_ARGS__}
#define PTO2_SCOPE(...) if (PTO2_SCOPE_GUARD(__VA_ARGS__); true)

// ---- how the runtime enters the program ----

// Sizes are those of the runtime here, and of no effect.
struct PTO2OrchestrationConfig {
    int expected_arg_count;
    int32_t task_window_size = 0;
    int32_t dep_list_pool_size = 0;
    int32_t heap_size = 0;
};

extern "C" {
__attribute__((weak, visibility("default"), used)) void pto_field_enter(void *entry, const ChipTensor *tensors, uint32_t tensor_count,
                                                                        const uint64_t *scalars, uint32_t scalar_count) {
    pto_field_guarded(tensors, tensor_count, scalars, scalar_count, [&](const ChipTaskArgs &args) { pto_field_call_entry(entry, args); });
}
__attribute__((weak, visibility("default"), used)) int32_t pto_field_expected(PTO2OrchestrationConfig (*config)(PTO_FIELD_ENTRY_TYPES),
                                                                              const ChipTensor *tensors, uint32_t tensor_count,
                                                                              const uint64_t *scalars, uint32_t scalar_count) {
    ChipTaskArgs args;
    pto_field_take(args, tensors, tensor_count, scalars, scalar_count);
    return pto_field_expected_of(args, [&](auto &&...given) { return config(given...).expected_arg_count; });
}
}

#endif  // PTO_FIELD_STREAMS_H

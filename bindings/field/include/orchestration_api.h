// The host-built runtime's interface until July 2026: a function of the host allocates memory, and adds tasks and edges.
//
//   extern "C" int build(OrchestrationRuntime *runtime, const ChipStorageTaskArgs &args);     // April to July; `orchestration_api.h`
//   extern "C" int build(Runtime *runtime, const ChipStorageTaskArgs &args);                  // March; `runtime.h` and `task_args.h`
//   extern "C" int build(Runtime *runtime, const TaskArg *args, int count);                   // 24 to 28 March, OrchArg at first; `runtime.h`
//   extern "C" int build(Runtime *runtime, uint64_t *args, int count);                        // February and March; `runtime.h`
//
// Memory of the host and of the device is the same memory here: what a program copies to the device and back is copied inside of it.
#ifndef PTO_FIELD_ORCHESTRATION_API_H
#define PTO_FIELD_ORCHESTRATION_API_H

#define PTO_FIELD_OWN_ENTRY 1
#include "pto_orchestration_api.h"

enum class CoreType : int32_t { AIC = 0, AIV = 1 };

// Shapes of a task's tensors, for dumps. Here they have no effect.
struct TensorInfo {
    DataType dtype;
    uint32_t ndims;
    uint32_t shapes[5];
};
inline TensorInfo make_tensor_info(DataType type, uint32_t ndims, const uint32_t *shapes, const uint32_t * = nullptr, const uint32_t * = nullptr) {
    TensorInfo info = {type, ndims, {}};
    std::copy_n(shapes, ndims < 5 ? ndims : 5, info.shapes);
    return info;
}
inline TensorInfo make_tensor_info_from_tensor_arg(const PtoFieldTensorArg &arg) { return make_tensor_info(arg.dtype, arg.ndims, arg.shapes); }

class OrchestrationRuntime {
public:
    // A task of one kernel, which gets these words.
    int add_task(uint64_t *words, int count, int func_id, CoreType core, PTO_FIELD_HERE) {
        PtoFieldArgs<0, 32> args;
        args.add_scalars(words, count);
        pto_field_outputs outputs;
        const bool is_cube = core == CoreType::AIC;
        graph_.submit(args.as_task(is_cube ? func_id : -1, is_cube ? -1 : func_id, -1, file, line), outputs);
        return static_cast<int>(outputs.task.raw);
    }
    int add_task(uint64_t *words, int count, int func_id, int core, PTO_FIELD_HERE) {
        return add_task(words, count, func_id, static_cast<CoreType>(core), file, line);
    }
    void add_successor(int from, int to) { graph_.add_edge(PTO2TaskId{static_cast<uint64_t>(from)}, PTO2TaskId{static_cast<uint64_t>(to)}); }
    void set_timing_slot(int task, int slot) { graph_.set_timing_slot(PTO2TaskId{static_cast<uint64_t>(task)}, slot); }
    int get_task_count() const { return static_cast<int>(graph_.size()); }
    void print_runtime() const {}
    // When the tasks are over, the memory of the host has what that of the device has.
    void record_tensor_pair(void *host, void *device, size_t bytes) {
        pairs_.push_back(Pair{reinterpret_cast<uint64_t>(host), reinterpret_cast<uint64_t>(device), bytes});
    }
    // The tasks get the host's memory of each pair instead of the device's. Then they are submitted.
    void finish() {
        for (const Pair &pair : pairs_) {
            memmove(reinterpret_cast<void *>(pair.host), reinterpret_cast<void *>(pair.device), pair.bytes);
        }
        graph_.for_each_word([this](uint64_t &word) {
            for (const Pair &pair : pairs_) {
                if (word - pair.device < pair.bytes) {
                    word = pair.host + (word - pair.device);
                    return;
                }
            }
        });
        graph_.submit_all();
    }

private:
    struct Pair {
        uint64_t host, device, bytes;
    };
    PtoFieldGraph graph_;
    std::vector<Pair> pairs_;
};

// Memory ends with the run.
inline void *pto_field_device_malloc(size_t bytes) {
    const uint32_t extents[1] = {static_cast<uint32_t>(bytes)};
    TensorCreateInfo info(extents, 1, DataType::UINT8);
    return reinterpret_cast<void *>(alloc_tensors(info).get_ref(0).buffer.addr);
}
inline void pto_field_device_free(void *) {}
inline int pto_field_copy(void *target, const void *source, size_t bytes) { return memmove(target, source, bytes), 0; }

struct Runtime;

// What a program calls that the AICPU ran in February and March. Tasks begin when the program ends: publishing one has no effect.
struct AicpuBuildApi {
    int (*add_task)(Runtime *, uint64_t *words, int count, int func_id, CoreType core, uint64_t address);
    void (*add_successor_conditional)(Runtime *, int from, int to);
    void (*publish_task)(Runtime *, int task);
    void *(*device_malloc)(size_t);
    void (*device_free)(void *);
};

// February and March reach the same functions through members.
struct Runtime : OrchestrationRuntime {
    int orch_argc = 0;
    uint64_t orch_args[128] = {};
    // Not 0: the kernel is there. A task of one that is not there is an error.
    uint64_t kernel_addrs[1024] = {};
    AicpuBuildApi aicpu_build_api;
    struct {
        void *(*device_malloc)(size_t) = pto_field_device_malloc;
        void (*device_free)(void *) = pto_field_device_free;
        int (*copy_to_device)(void *, const void *, size_t) = pto_field_copy;
        int (*copy_from_device)(void *, const void *, size_t) = pto_field_copy;
    } host_api;

    explicit Runtime(const ChipTaskArgs &args);
};

inline int aicpu_runtime_add_task(Runtime *runtime, uint64_t *words, int count, int func_id, CoreType core, uint64_t = 0, PTO_FIELD_HERE) {
    return runtime->add_task(words, count, func_id, core, file, line);
}
inline void aicpu_runtime_add_successor_conditional(Runtime *runtime, int from, int to) { runtime->add_successor(from, to); }
inline void aicpu_runtime_publish_task(Runtime *, int) {}
inline Runtime::Runtime(const ChipTaskArgs &args) {
#if PTO_FIELD_ENTRY == 1
    pto_field_with_arguments(args, [this](uint64_t *words, int count) {
        orch_argc = count;
        std::copy_n(words, std::min(count, 128), orch_args);
        return 0;
    });
#else
    (void)args;
#endif
    std::fill_n(kernel_addrs, 1024, 1);
    aicpu_build_api.add_task = [](Runtime *runtime, uint64_t *words, int count, int func_id, CoreType core, uint64_t) {
        return runtime->add_task(words, count, func_id, core);
    };
    aicpu_build_api.add_successor_conditional = aicpu_runtime_add_successor_conditional;
    aicpu_build_api.publish_task = aicpu_runtime_publish_task;
    aicpu_build_api.device_malloc = pto_field_device_malloc;
    aicpu_build_api.device_free = pto_field_device_free;
}

inline int add_task(OrchestrationRuntime *runtime, uint64_t *words, int count, int func_id, CoreType core, PTO_FIELD_HERE) {
    return runtime->add_task(words, count, func_id, core, file, line);
}
inline int add_task_with_tensor_info(OrchestrationRuntime *runtime, uint64_t *words, int count, int func_id, CoreType core, const TensorInfo *, int,
                                     PTO_FIELD_HERE) {
    return runtime->add_task(words, count, func_id, core, file, line);
}
inline int set_tensor_info_to_task(OrchestrationRuntime *, int, const TensorInfo *, int) { return 0; }
inline void set_task_timing_slot(OrchestrationRuntime *runtime, int task, int slot) { runtime->set_timing_slot(task, slot); }
inline void add_successor(OrchestrationRuntime *runtime, int from, int to) { runtime->add_successor(from, to); }
inline void record_tensor_pair(OrchestrationRuntime *runtime, void *host, void *device, size_t bytes) { runtime->record_tensor_pair(host, device, bytes); }
inline int get_task_count(OrchestrationRuntime *runtime) { return runtime->get_task_count(); }
inline void print_runtime(OrchestrationRuntime *) {}
inline void *device_malloc(OrchestrationRuntime *, size_t bytes) { return pto_field_device_malloc(bytes); }
inline void device_free(OrchestrationRuntime *, void *) {}
inline int copy_to_device(OrchestrationRuntime *, void *target, const void *source, size_t bytes) { return pto_field_copy(target, source, bytes); }

extern "C" {
__attribute__((weak, visibility("default"), used)) void pto_field_enter(void *entry, const ChipTensor *tensors, uint32_t tensor_count,
                                                                        const uint64_t *scalars, uint32_t scalar_count) {
    pto_field_guarded(tensors, tensor_count, scalars, scalar_count, [&](const ChipTaskArgs &args) {
        Runtime runtime(args);
        // An array of arguments comes with its length.
        const int count = args.tensor_count() + args.scalar_count();
        const int failed = pto_field_with_arguments(args, [&](auto &&...given) {
            return reinterpret_cast<int (*)(Runtime *, PTO_FIELD_ENTRY_TYPES, int)>(entry)(&runtime, given..., count);
        });
        if (failed != 0) {
            return rt_report_fatal(PTO2_ERROR_EXPLICIT_ORCH_FATAL, "the orchestration gave %d", failed);
        }
        runtime.finish();
    });
}
}

#endif  // PTO_FIELD_ORCHESTRATION_API_H

// class Runtime, as graph builders in C++ for runtimes of this kind use it.
//
// Three kinds of sources include this header:
// - host orchestrations, extern "C" int f(Runtime *, uint64_t *args, int n): allocate and copy through host_api, record
//   tensor pairs, and build the graph (host_build_graph) or fill in orch_args and embed a plugin (aicpu_build_graph);
// - AICPU builder plugins, extern "C" int build_graph_aicpu(Runtime *): read orch_args, add and publish tasks through
//   aicpu_build_api;
// - kernels, extern "C" void kernel_entry(int64_t *args), need nothing of it.
//
// Only libpto_runtime, the Python package and firmware images make Runtime objects. Sources need no library to link with:
// the methods call through a table in the object. A call that fails is remembered: what it was part of then fails as a
// whole, with its message, whatever the source returns. In a firmware image a plugin has orch_args, kernel_addrs, the
// tasks and the streaming interface; device_malloc gives nullptr there.
#ifndef PTO_CLASS_RUNTIME_H
#define PTO_CLASS_RUNTIME_H

#include <atomic>
#include <cstddef>
#include <cstdint>

#define RUNTIME_MAX_TASKS 131072
#define RUNTIME_MAX_ARGS 128
#define RUNTIME_MAX_ORCH_ARGS 128
#define RUNTIME_MAX_FUNC_ID 1024
#define RUNTIME_MAX_WORKER 128
#define RUNTIME_MAX_AICPU_ORCH_SO_SIZE (4 * 1024 * 1024)

enum class CoreType : int {
    AIC = 0,  // cube core
    AIV = 1,  // vector core
};

class Runtime;

// Memory of the device that the Runtime belongs to. device_malloc gives nullptr, the copies another value than 0, when
// they fail. What was allocated and not freed is freed when the Runtime is finalised.
struct HostApi {
    void *(*device_malloc)(std::size_t size);
    void (*device_free)(void *dev_ptr);
    int (*copy_to_device)(void *dev_ptr, const void *host_ptr, std::size_t size);
    int (*copy_from_device)(void *host_ptr, const void *dev_ptr, std::size_t size);
};

// For builder plugins, while they build. add_task gives the task's id, or -1; function_bin_addr 0: as registered.
struct AicpuBuildApi {
    int (*add_task)(Runtime *runtime, uint64_t *args, int num_args, int func_id, CoreType core_type,
                    uint64_t function_bin_addr);
    void (*add_successor_conditional)(Runtime *runtime, int from_task, int to_task);
    void (*publish_task)(Runtime *runtime, int task_id);
    void *(*device_malloc)(std::size_t size);
    void (*device_free)(void *dev_ptr);
};

// A host buffer that gets the bytes of a device buffer when the Runtime is finalised.
struct TensorPair {
    void *host_ptr;
    void *dev_ptr;
    std::size_t size;
};

struct DeviceAlloc {
    void *dev_ptr;
};

// A task of host_build_graph. What is written into args, num_args, func_id, core_type and function_bin_addr counts; fanin
// and fanout are for reading.
struct Task {
    int task_id;
    int func_id;
    uint64_t args[RUNTIME_MAX_ARGS];
    int num_args;
    int pto_reserved;
    uint64_t function_bin_addr;
    CoreType core_type;
    std::atomic<int> fanin;
    const int *fanout;
    int fanout_count;
    std::atomic<int> published;
    std::atomic<int> completed;
    int pto_reserved2;
    uint64_t start_time;
    uint64_t end_time;
};

// What the methods call; not for sources.
struct pto_runtime_calls {
    int (*add_task)(Runtime *, const uint64_t *, int, int, int);
    void (*add_successor)(Runtime *, int, int);
    Task *(*get_task)(Runtime *, int);
    int (*get_task_count)(const Runtime *);
    int (*get_initial_ready_tasks)(Runtime *, int *);
    void (*print_runtime)(const Runtime *);
    void (*record_tensor_pair)(Runtime *, void *, void *, std::size_t);
    TensorPair *(*get_tensor_pairs)(Runtime *);
    int (*get_tensor_pair_count)(const Runtime *);
    void (*clear_tensor_pairs)(Runtime *);
    void (*record_device_alloc)(Runtime *, void *);
    DeviceAlloc *(*get_device_allocs)(Runtime *);
    int (*get_device_alloc_count)(const Runtime *);
    void (*clear_device_allocs)(Runtime *);
    int (*set_aicpu_orch_so)(Runtime *, const void *, std::size_t);
    const void *(*get_aicpu_orch_so_data)(const Runtime *);
    std::size_t (*get_aicpu_orch_so_size)(const Runtime *);
};

class Runtime {
public:
    int worker_count;  // cores of the device
    int sche_cpu_num;  // AICPU instances
    int orch_argc;     // how many words of orch_args the builder gets
    int build_mode;    // 0: the builder first, then the schedulers; 1: at once
    uint64_t orch_args[RUNTIME_MAX_ORCH_ARGS];
    uint64_t kernel_addrs[RUNTIME_MAX_FUNC_ID];  // 0: no kernel
    char aicpu_orch_func_name[64];               // the plugin's function; "build_graph_aicpu" at first
    AicpuBuildApi aicpu_build_api;
    HostApi host_api;
    const pto_runtime_calls *pto_calls;
    void *pto_state;
    const struct pto_stream_api *pto_stream;  // pto_stream.h: tasks with tensors, under tensormap_and_ringbuffer

    Runtime() = delete;
    Runtime(const Runtime &) = delete;
    Runtime &operator=(const Runtime &) = delete;

    // A task of host_build_graph; its id, or -1.
    int add_task(uint64_t *args, int num_args, int func_id, CoreType core_type = CoreType::AIC) {
        return pto_calls->add_task(this, args, num_args, func_id, static_cast<int>(core_type));
    }
    int add_task(uint64_t *args, int num_args, int func_id, int core_type) {
        return pto_calls->add_task(this, args, num_args, func_id, core_type);
    }
    // Makes to_task wait for from_task.
    void add_successor(int from_task, int to_task) { pto_calls->add_successor(this, from_task, to_task); }
    // The same, in a builder also when from_task may have completed.
    void add_successor_conditional(int from_task, int to_task) {
        pto_calls->add_successor(this, from_task, to_task);
    }
    // nullptr: there is no such task, or a plugin asks. Valid until the Runtime is finalised.
    Task *get_task(int task_id) { return pto_calls->get_task(this, task_id); }
    int get_task_count() const { return pto_calls->get_task_count(this); }
    // Ids of the tasks that wait for none, if ready_tasks is not null; how many there are.
    int get_initial_ready_tasks(int *ready_tasks) {
        return pto_calls->get_initial_ready_tasks(this, ready_tasks);
    }
    void print_runtime() const { pto_calls->print_runtime(this); }

    uint64_t get_function_bin_addr(int func_id) const {
        return func_id < 0 || func_id >= RUNTIME_MAX_FUNC_ID ? 0 : kernel_addrs[func_id];
    }
    void set_function_bin_addr(int func_id, uint64_t addr) {
        if (func_id >= 0 && func_id < RUNTIME_MAX_FUNC_ID) {
            kernel_addrs[func_id] = addr;
        }
    }

    // Copied back, then freed, when the Runtime is finalised; also after a run that failed.
    void record_tensor_pair(void *host_ptr, void *dev_ptr, std::size_t size) {
        pto_calls->record_tensor_pair(this, host_ptr, dev_ptr, size);
    }
    TensorPair *get_tensor_pairs() { return pto_calls->get_tensor_pairs(this); }
    int get_tensor_pair_count() const { return pto_calls->get_tensor_pair_count(this); }
    void clear_tensor_pairs() { pto_calls->clear_tensor_pairs(this); }
    void record_device_alloc(void *dev_ptr) { pto_calls->record_device_alloc(this, dev_ptr); }
    DeviceAlloc *get_device_allocs() { return pto_calls->get_device_allocs(this); }
    int get_device_alloc_count() const { return pto_calls->get_device_alloc_count(this); }
    void clear_device_allocs() { pto_calls->clear_device_allocs(this); }

    // Embeds the bytes of a builder plugin. false: none, or more than RUNTIME_MAX_AICPU_ORCH_SO_SIZE.
    bool try_set_aicpu_orch_so(const void *data, std::size_t size) {
        return pto_calls->set_aicpu_orch_so(this, data, size) == 0;
    }
    void set_aicpu_orch_so(const void *data, std::size_t size) { pto_calls->set_aicpu_orch_so(this, data, size); }
    const void *get_aicpu_orch_so_data() const { return pto_calls->get_aicpu_orch_so_data(this); }
    std::size_t get_aicpu_orch_so_size() const { return pto_calls->get_aicpu_orch_so_size(this); }
};

// The same as aicpu_build_api, by name.
extern "C" {
inline int aicpu_runtime_add_task(Runtime *runtime, uint64_t *args, int num_args, int func_id, CoreType core_type,
                                  uint64_t function_bin_addr) {
    return runtime->aicpu_build_api.add_task(runtime, args, num_args, func_id, core_type, function_bin_addr);
}
inline void aicpu_runtime_add_successor_conditional(Runtime *runtime, int from_task, int to_task) {
    runtime->aicpu_build_api.add_successor_conditional(runtime, from_task, to_task);
}
inline void aicpu_runtime_publish_task(Runtime *runtime, int task_id) {
    runtime->aicpu_build_api.publish_task(runtime, task_id);
}
}

static_assert(sizeof(void *) == 8, "the runtime has 64-bit addresses");
static_assert(sizeof(Runtime) == 9392, "size of Runtime");
static_assert(offsetof(Runtime, orch_argc) == 8, "Runtime::orch_argc");
static_assert(offsetof(Runtime, build_mode) == 12, "Runtime::build_mode");
static_assert(offsetof(Runtime, orch_args) == 16, "Runtime::orch_args");
static_assert(offsetof(Runtime, kernel_addrs) == 1040, "Runtime::kernel_addrs");
static_assert(offsetof(Runtime, aicpu_orch_func_name) == 9232, "Runtime::aicpu_orch_func_name");
static_assert(offsetof(Runtime, aicpu_build_api) == 9296, "Runtime::aicpu_build_api");
static_assert(offsetof(Runtime, host_api) == 9336, "Runtime::host_api");
static_assert(offsetof(Runtime, pto_calls) == 9368, "Runtime::pto_calls");
static_assert(offsetof(Runtime, pto_state) == 9376, "Runtime::pto_state");
static_assert(offsetof(Runtime, pto_stream) == 9384, "Runtime::pto_stream");
static_assert(sizeof(Task) == 1096, "size of Task");
static_assert(offsetof(Task, args) == 8, "Task::args");
static_assert(offsetof(Task, num_args) == 1032, "Task::num_args");
static_assert(offsetof(Task, function_bin_addr) == 1040, "Task::function_bin_addr");
static_assert(offsetof(Task, fanin) == 1052, "Task::fanin");
static_assert(offsetof(Task, fanout) == 1056, "Task::fanout");
static_assert(sizeof(pto_runtime_calls) == 17 * 8, "size of pto_runtime_calls");

#endif  // PTO_CLASS_RUNTIME_H

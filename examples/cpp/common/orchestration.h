// What the orchestrations of these examples share: buffers, and one graph program for all runtimes.
#ifndef EXAMPLES_ORCHESTRATION_H
#define EXAMPLES_ORCHESTRATION_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "graph.h"

class HostGraph {
public:
    explicit HostGraph(Runtime *runtime) : runtime_(runtime) {}
    int add(int func_id, CoreType core, std::initializer_list<uint64_t> words) {
        std::vector<uint64_t> args(words);
        return runtime_->add_task(args.data(), static_cast<int>(args.size()), func_id, core);
    }
    void after(int producer, int consumer) { runtime_->add_successor(producer, consumer); }
    void publish(int) {}
    // `count` elements that the host has written at `address` of the device's memory.
    template <class Element>
    pto::Table<Element> table(uint64_t address, uint64_t count) const {
        return pto::Table<Element>(runtime_, address, count);
    }

private:
    Runtime *runtime_;
};

// A device buffer with the bytes of a host buffer; 0 if it cannot be had.
inline uint64_t upload(Runtime *runtime, uint64_t host, uint64_t bytes) {
    void *device = runtime->host_api.device_malloc(bytes);
    if (device == nullptr) {
        return 0;
    }
    runtime->record_device_alloc(device);
    if (runtime->host_api.copy_to_device(device, reinterpret_cast<void *>(host), bytes) != 0) {
        return 0;
    }
    return reinterpret_cast<uint64_t>(device);
}

// The same, copied back at the end.
inline uint64_t result(Runtime *runtime, uint64_t host, uint64_t bytes) {
    const uint64_t device = upload(runtime, host, bytes);
    if (device != 0) {
        runtime->record_tensor_pair(reinterpret_cast<void *>(host), reinterpret_cast<void *>(device), bytes);
    }
    return device;
}

// A device buffer for what only the kernels see.
inline uint64_t scratch(Runtime *runtime, uint64_t bytes) {
    void *device = runtime->host_api.device_malloc(bytes);
    runtime->record_device_alloc(device);
    return reinterpret_cast<uint64_t>(device);
}

// Hands words to the graph program: at once on the host, or to the plugin that PTO_AICPU_ORCH_SO names.
template <class Program>
int run_program(Runtime *runtime, const std::vector<uint64_t> &words, Program program) {
    const char *path = std::getenv("PTO_AICPU_ORCH_SO");
    if (path == nullptr) {
        HostGraph graph(runtime);
        return program(graph, words.data());
    }
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!runtime->try_set_aicpu_orch_so(bytes.data(), bytes.size())) {
        std::fprintf(stderr, "the plugin %s cannot be embedded\n", path);
        return -1;
    }
    const char *function = std::getenv("PTO_AICPU_ORCH_FUNC");
    if (function != nullptr) {
        std::snprintf(runtime->aicpu_orch_func_name, sizeof runtime->aicpu_orch_func_name, "%s", function);
    }
    runtime->orch_argc = static_cast<int>(words.size());
    std::memcpy(runtime->orch_args, words.data(), 8 * words.size());
    return 0;
}

#endif

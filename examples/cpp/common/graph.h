// What graph programs of these examples are written with: templates over a builder with add, after, publish and table. HostGraph
// (orchestration.h) runs them in the orchestration (host_build_graph), AicpuGraph in a plugin on AICPU instance 0.
//
// Nothing of the C++ library is needed here, so that plugins can be linked into a firmware image as well.
#ifndef EXAMPLES_GRAPH_H
#define EXAMPLES_GRAPH_H

#include <cstdint>
#include <initializer_list>

#include "pto_table.hpp"
#include "runtime.h"

class AicpuGraph {
public:
    explicit AicpuGraph(Runtime *runtime) : runtime_(runtime), api_(runtime->aicpu_build_api) {}
    int add(int func_id, CoreType core, std::initializer_list<uint64_t> words) {
        uint64_t args[RUNTIME_MAX_ARGS];
        int count = 0;
        for (const uint64_t word : words) {
            if (count == RUNTIME_MAX_ARGS) {
                return -1;
            }
            args[count++] = word;
        }
        return api_.add_task(runtime_, args, count, func_id, core, 0);
    }
    void after(int producer, int consumer) { api_.add_successor_conditional(runtime_, producer, consumer); }
    void publish(int task) { api_.publish_task(runtime_, task); }
    // `count` elements that the host has written at `address` of the device's memory.
    template <class Element>
    pto::Table<Element> table(uint64_t address, uint64_t count) const {
        return pto::Table<Element>(runtime_, address, count);
    }

private:
    Runtime *runtime_;
    const AicpuBuildApi &api_;
};

#endif

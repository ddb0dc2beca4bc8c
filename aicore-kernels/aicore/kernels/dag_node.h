/* A node of a random graph, as `aicore-kernels/src/probe.rs`. */
#ifndef PTO_KERNEL_DAG_NODE_H
#define PTO_KERNEL_DAG_NODE_H

#include "kernel.h"

namespace kernel {

/* Counts that it ran, and folds the values of its producers, in their order. */
PTO_AICORE PTO_INLINE void dag_node(Args args) {
    const int64_t index = args.size(0);
    PTO_GM uint64_t *const values = args.gm<uint64_t>(2);
    PTO_GM uint32_t *const counters = args.gm<uint32_t>(3);
    store(counters, index, load(counters, index) + 1);
    uint64_t value = mix(mix(args.word(1)) ^ args.word(0));
    for (int64_t at = 0; at < args.size(5); ++at) {
        const uint32_t producer = load(args.gm<uint32_t>(4), at);
        if (producer < index) {
            value = mix(value ^ load(values, producer));
        }
    }
    store(values, index, value);
}

} // namespace kernel

#endif

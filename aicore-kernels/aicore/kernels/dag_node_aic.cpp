#include "kernel.h"

/* Counts that it ran, and folds the values of its producers, in their order. */
PTO_KERNEL(args) {
    const int64_t index = args.size(0);
    PTO_GM uint64_t *const values = args.gm<uint64_t>(2);
    PTO_GM uint32_t *const counters = args.gm<uint32_t>(3);
    kernel::store(counters, index, kernel::load(counters, index) + 1);
    uint64_t value = kernel::mix(kernel::mix(args.word(1)) ^ args.word(0));
    for (int64_t at = 0; at < args.size(5); ++at) {
        const uint32_t producer = kernel::load(args.gm<uint32_t>(4), at);
        if (producer < index) {
            value = kernel::mix(value ^ kernel::load(values, producer));
        }
    }
    kernel::store(values, index, value);
}

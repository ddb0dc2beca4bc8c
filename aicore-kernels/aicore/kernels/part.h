/* Folds into the cell of a part, as `aicore-kernels/src/parts.rs`. */
#ifndef PTO_KERNEL_PART_H
#define PTO_KERNEL_PART_H

#include "kernel.h"

namespace kernel {

/* Words of a block, which of them is where its parts meet, and the bit that says that all blocks meet at the first one's. */
constexpr uint64_t BLOCK_WORDS = 4, MEETING = 3, ALL_BLOCKS = UINT64_C(1) << 32;

/* Waits until so many have come. */
PTO_AICORE PTO_INLINE void meet(PTO_GM uint64_t *word, uint64_t parts) {
#ifdef PTO_ON_THIS_MACHINE
    const uint64_t before = __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL), round = before >> 32;
    if ((before & 0xFFFFFFFF) + 1 >= parts) {
        return __atomic_store_n(word, (round + 1) << 32, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) >> 32 == round) {
        __builtin_ia32_pause();
    }
#else
    /* A core has no addition in GM that gives back what was there before: parts that meet are for the machines that have one. */
    (void)word, (void)parts;
    trap();
#endif
}

PTO_AICORE PTO_INLINE void part(PTO_GM uint64_t *cells, uint64_t salt, uint64_t group, Block block, uint64_t first) {
    const uint64_t own = BLOCK_WORDS * block.number;
    if (group != 0) {
        meet(cells + ((group & ALL_BLOCKS) == 0 ? own : 0) + MEETING, group & (ALL_BLOCKS - 1));
    }
    const uint64_t at = own + first + block.lane;
    const uint64_t number = at ^ static_cast<uint64_t>(block.count) << 32;
    store(cells, static_cast<int64_t>(at), mix(load(cells, static_cast<int64_t>(at)) ^ mix(salt ^ number)));
}

} // namespace kernel

#endif

#include "kernel.h"

/* So many steps, each of which needs the one before it. */
PTO_KERNEL(args) {
    volatile uint64_t state = args.word(0);
    for (uint64_t turn = 0; turn < args.word(0); ++turn) {
        state = kernel::mix(state);
    }
}

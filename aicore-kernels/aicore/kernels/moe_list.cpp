#include "kernel.h"

PTO_KERNEL(args) {
    uint32_t found = 0;
    for (int64_t entry = 0; entry < args.size(3); ++entry) {
        if (kernel::load(args.gm<uint32_t>(0), entry) == args.word(4)) {
            kernel::store(args.gm<uint32_t>(1), found, static_cast<uint32_t>(entry));
            found += 1;
        }
    }
    kernel::store(args.gm<uint32_t>(2), 0, found);
}

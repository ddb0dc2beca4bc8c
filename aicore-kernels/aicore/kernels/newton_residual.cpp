#include "kernel.h"

PTO_KERNEL(args) {
    float sum = 0;
    for (int64_t row = 0; row < args.size(3); ++row) {
        const PTO_GM float *const p = args.gm(0) + row * args.size(6);
        PTO_GM float *const e = args.gm(1) + row * args.size(7);
        for (int64_t col = 0; col < args.size(4); ++col) {
            const float rest = 0.0f - kernel::load(p, col);
            const bool is_diagonal = args.word(5) + static_cast<uint64_t>(row) == static_cast<uint64_t>(col);
            kernel::store(e, col, is_diagonal ? 1.0f + rest : rest);
        }
        sum += kernel::dot(e, e, args.size(4));
    }
    kernel::store(args.gm(2), 0, sum);
}

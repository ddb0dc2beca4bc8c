#include "triangle.h"

PTO_KERNEL(args) {
    const int64_t n = args.size(3), l_ld = args.size(4);
    for (int64_t row = 0; row < args.size(2); ++row) {
        PTO_GM float *const solved = args.gm(1) + row * args.size(5);
        for (int64_t col = 0; col < n; ++col) {
            const PTO_GM float *const l = args.gm(0) + col * l_ld;
            kernel::store(solved, col, (kernel::load(solved, col) - kernel::dot(solved, l, col)) / kernel::load(l, col));
        }
    }
}

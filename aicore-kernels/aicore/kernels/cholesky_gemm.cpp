#include "triangle.h"

PTO_KERNEL(args) {
    PTO_GM float *const c = args.gm(2);
    for (int64_t row = 0; row < args.size(3); ++row) {
        for (int64_t col = 0; col < args.size(4); ++col) {
            const float dot = kernel::dot_of_tile(args.gm(0) + row * args.size(6), args.gm(1) + col * args.size(7), args.size(5));
            const int64_t at = row * args.size(8) + col;
            kernel::store(c, at, kernel::load(c, at) - dot);
        }
    }
}

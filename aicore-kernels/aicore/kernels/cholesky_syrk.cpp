#include "triangle.h"

/* The lower triangle. Rows go in pairs, and the corner of a pair is a sum in eight lanes. */
PTO_KERNEL(args) {
    PTO_GM float *const a = args.gm(0), *const c = args.gm(1);
    const int64_t k = args.size(3), a_ld = args.size(4);
    for (int64_t row = 0; row < args.size(2); ++row) {
        for (int64_t col = 0; col <= row; ++col) {
            const bool is_corner = row % 2 == 1 && col == row;
            const PTO_GM float *const left = a + row * a_ld, *const right = a + col * a_ld;
            const float dot = is_corner ? kernel::dot(left, right, k) : kernel::dot_of_tile(left, right, k);
            const int64_t at = row * args.size(5) + col;
            kernel::store(c, at, kernel::load(c, at) - dot);
        }
    }
}

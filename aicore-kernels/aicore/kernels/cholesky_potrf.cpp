#include "triangle.h"

/* The first row, from 1, whose pivot is not a finite number above zero; 0: none. */
PTO_AICORE static PTO_INLINE int64_t factor(PTO_GM float *a, int64_t n, int64_t ld) {
    for (int64_t col = 0; col < n; ++col) {
        PTO_GM float *const pivot = a + col * ld;
        const float rest = kernel::load(pivot, col) - kernel::dot(pivot, pivot, col);
        if (!(rest > 0 && rest < __builtin_inff())) {
            return col + 1;
        }
        const float root = __builtin_sqrtf(rest);
        kernel::store(pivot, col, root);
        for (int64_t row = col + 1; row < n; ++row) {
            PTO_GM float *const head = a + row * ld;
            kernel::store(head, col, (kernel::load(head, col) - kernel::dot(head, pivot, col)) / root);
        }
    }
    return 0;
}

PTO_KERNEL(args) {
    const int64_t failed = factor(args.gm(0), args.size(2), args.size(3));
    const uint64_t row = failed == 0 ? 0 : args.word(4) + static_cast<uint64_t>(failed);
    kernel::store(args.gm<uint32_t>(1), 0, static_cast<uint32_t>(row < UINT32_MAX ? row : UINT32_MAX));
}

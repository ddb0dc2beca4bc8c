/* The kernels of a Cholesky factorisation, by the scalar unit: `aicore-kernels/src/cholesky.rs` in the same order. */
#ifndef PTO_KERNEL_TRIANGLE_H
#define PTO_KERNEL_TRIANGLE_H

#include "kernel.h"

namespace kernel {

/* The sum of products of two rows in GM, in four lanes. */
PTO_AICORE PTO_INLINE float dot_of_tile(const PTO_GM float *a, const PTO_GM float *b, int64_t n) {
    float s[4] = {};
    for (int64_t i = 0; i < n; ++i) {
        s[i % 4] += load(a, i) * load(b, i);
    }
    return (s[0] + s[2]) + (s[1] + s[3]);
}

} // namespace kernel

#endif

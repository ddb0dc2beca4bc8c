#include "kernel.h"

/* Magnitudes of a row are added in eight lanes, those of a column from the top to the bottom. */
PTO_KERNEL(args) {
    PTO_GM float *const a = args.gm(0), *const x = args.gm(1);
    const int64_t n = args.size(2), a_ld = args.size(3), x_ld = args.size(4);
    float rows = 0, cols = 0;
    for (int64_t row = 0; row < n; ++row) {
        float s[8] = {}, column = 0;
        for (int64_t i = 0; i < n; ++i) {
            s[i % 8] += __builtin_fabsf(kernel::load(a, row * a_ld + i));
            column += __builtin_fabsf(kernel::load(a, i * a_ld + row));
        }
        rows = kernel::larger(rows, ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])));
        cols = kernel::larger(cols, column);
    }
    for (int64_t col = 0; col < n; ++col) {
        for (int64_t from = 0; from < n; ++from) {
            kernel::store(x, col * x_ld + from, kernel::load(a, from * a_ld + col) / rows / cols);
        }
    }
}

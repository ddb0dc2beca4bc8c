#include "rows.h"

/* The heads of the queries on the first vector core of a block, the head of the keys on the second. */
PTO_KERNEL(args) {
    const int64_t rows = args.size(7), dim = args.size(8), ld = args.size(13);
    const bool is_first = kernel::Block(args.word(14)).lane == 0;
    PTO_GM float *const heads = args.gm(is_first ? 3 : 4);
    for (int64_t row = 0; row < rows; ++row) {
        const uint32_t position = kernel::load(args.gm<uint32_t>(5), row);
        PTO_GM float *const cos = args.gm(6) + dim * (position > 0 ? position - 1 : 0);
        const kernel::View x{heads + row * ld, dim};
        kernel::rotate(is_first ? args.size(10) : 1, dim, x, cos, cos + dim / 2, x);
    }
}

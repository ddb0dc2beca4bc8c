#include "vector.h"

PTO_KERNEL(args) {
    const int64_t rows = kernel::load(args.gm<uint32_t>(2)), top_k = args.size(7);
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t token = kernel::load(args.gm<uint32_t>(1), row) / top_k;
        kernel::elementwise(1, args.size(6), {kernel::View{args.gm(0) + token * args.size(8), args.size(8)}},
                            kernel::View{args.gm(4) + row * args.size(9), args.size(9)},
                            [](auto &out, auto &in) { pto::TMOV(out, in[0]); });
    }
    kernel::store(args.gm<uint32_t>(3), 0, kernel::load(args.gm<uint32_t>(3)) + 1);
}

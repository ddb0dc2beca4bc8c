#include "vector.h"

PTO_KERNEL(args) {
    const int64_t rows = kernel::load(args.gm<uint32_t>(2)), top_k = args.size(7);
    for (int64_t row = 0; row < rows; ++row) {
        const uint32_t entry = kernel::load(args.gm<uint32_t>(1), row);
        const float weight = kernel::load(args.gm(3), entry);
        const kernel::View out{args.gm(4) + entry / top_k * args.size(9), args.size(9)};
        kernel::elementwise(1, args.size(6), {out, kernel::View{args.gm(0) + row * args.size(8), args.size(8)}}, out,
                            [=](auto &sum, auto &in) {
                                pto::TMULS(in[1], in[1], weight);
                                pipe_barrier(PIPE_V);
                                pto::TADD(sum, in[0], in[1]);
                            });
    }
}

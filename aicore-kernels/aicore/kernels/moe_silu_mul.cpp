#include "silu.h"

PTO_KERNEL(args) {
    const int64_t rows = kernel::load(args.gm<uint32_t>(3));
    kernel::gated(rows, args.size(4), kernel::View{args.gm(0), args.size(5)}, kernel::View{args.gm(1), args.size(6)},
                  kernel::View{args.gm(2), args.size(7)});
}

#include "matrix.h"

PTO_KERNEL(args) {
    const int64_t rows = kernel::load(args.gm<uint32_t>(3));
    kernel::product(rows, args.size(4), args.size(5), {args.gm(0), args.size(6)}, {args.gm(1), args.size(7)},
                    {args.gm(2), args.size(8)});
}

#include "matrix.h"

PTO_KERNEL(args) {
    kernel::product(args.size(7), args.size(8), args.size(9), {args.gm(0), args.size(11)}, {args.gm(1), args.size(12)},
                    {args.gm(2), args.size(13)});
}

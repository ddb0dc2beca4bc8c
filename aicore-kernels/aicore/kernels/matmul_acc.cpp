#include "matrix.h"

PTO_KERNEL(args) {
    kernel::product_plus(args.size(3), args.size(4), args.size(5), {args.gm(0), args.size(6)}, {args.gm(1), args.size(7)},
                         {args.gm(2), args.size(8)});
}

#include "rows.h"

PTO_KERNEL(args) {
    kernel::rotate(args.size(4), args.size(5), {args.gm(0), args.size(6)}, args.gm(1), args.gm(2), {args.gm(3), args.size(7)});
}

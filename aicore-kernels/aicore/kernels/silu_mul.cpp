#include "silu.h"

PTO_KERNEL(args) {
    kernel::gated(args.size(3), args.size(4), kernel::View{args.gm(0), args.size(5)}, kernel::View{args.gm(1), args.size(6)},
                  kernel::View{args.gm(2), args.size(7)});
}

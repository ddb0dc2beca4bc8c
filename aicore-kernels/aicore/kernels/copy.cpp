#include "vector.h"

PTO_KERNEL(args) {
    kernel::elementwise(args.size(2), args.size(3), {kernel::View{args.gm(0), args.size(4)}}, kernel::View{args.gm(1), args.size(5)},
                        [](auto &out, auto &in) { pto::TMOV(out, in[0]); });
}

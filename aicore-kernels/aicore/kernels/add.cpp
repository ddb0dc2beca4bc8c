#include "vector.h"

PTO_KERNEL(args) {
    kernel::elementwise(args.size(3), {args.gm(0), args.gm(1)}, args.gm(2),
                        [](auto &out, auto &in) { pto::TADD(out, in[0], in[1]); });
}

#include "vector.h"

PTO_KERNEL(args) {
    kernel::elementwise(args.size(2), {args.gm(0)}, args.gm(1), [](auto &out, auto &in) { pto::TEXP(out, in[0]); });
}

#include "vector.h"

PTO_KERNEL(args) {
    const float scalar = args.scalar(1);
    kernel::elementwise(args.size(3), {args.gm(0)}, args.gm(2), [=](auto &out, auto &in) { pto::TADDS(out, in[0], scalar); });
}

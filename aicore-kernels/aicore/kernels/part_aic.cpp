#include "part.h"

PTO_KERNEL(args) { kernel::part(args.gm<uint64_t>(0), args.word(1), args.word(2), kernel::Block(args.word(3)), 0); }

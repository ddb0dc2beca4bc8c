// Programs of February 2026 include this next to pto_runtime2.h. The memory that it is about is the runtime's own here.
#ifndef PTO_SHARED_MEMORY_H
#define PTO_SHARED_MEMORY_H

#include "pto_runtime2.h"

#endif  // PTO_SHARED_MEMORY_H

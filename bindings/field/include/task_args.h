// Arguments of an entry, as programs of March 2026 include them.
#ifndef PTO_FIELD_TASK_ARGS_H
#define PTO_FIELD_TASK_ARGS_H

#include "runtime.h"

#endif  // PTO_FIELD_TASK_ARGS_H

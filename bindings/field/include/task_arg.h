// Arguments of an entry as an array, as programs of 26 to 28 March 2026 include them.
#ifndef PTO_FIELD_TASK_ARG_H
#define PTO_FIELD_TASK_ARG_H

#include "runtime.h"

#endif  // PTO_FIELD_TASK_ARG_H

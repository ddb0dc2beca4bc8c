// Arguments of an entry as an array, as programs of 24 to 26 March 2026 include them.
#ifndef PTO_FIELD_ORCH_ARG_H
#define PTO_FIELD_ORCH_ARG_H

#include "runtime.h"

#endif  // PTO_FIELD_ORCH_ARG_H

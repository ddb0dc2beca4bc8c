// Programs of August 2026 that include runtime.h need what the orchestration interface has.
#ifndef PTO_FIELD_RUNTIME_H
#define PTO_FIELD_RUNTIME_H

#include "pto_orchestration_api.h"

#endif  // PTO_FIELD_RUNTIME_H

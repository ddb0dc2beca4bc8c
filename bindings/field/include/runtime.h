// What programs find under this name: until March 2026 the host-built runtime's interface (PTO_FIELD_HOST_BUILT), and in August the orchestration interface.
#ifndef PTO_FIELD_RUNTIME_H
#define PTO_FIELD_RUNTIME_H

#if defined(PTO_FIELD_HOST_BUILT)
#include "orchestration_api.h"
#else
#include "pto_orchestration_api.h"
#endif

#endif  // PTO_FIELD_RUNTIME_H

// The names of June and July 2026 for what aicpu/worker_chip_orch_endpoint.h has.
#ifndef PTO_FIELD_L3_L2_ORCH_ENDPOINT_H
#define PTO_FIELD_L3_L2_ORCH_ENDPOINT_H

#include "aicpu/worker_chip_orch_endpoint.h"

#define L3L2_ORCH_REGION_DESC_SCALAR_COUNT WORKER_CHIP_ORCH_REGION_DESC_SCALAR_COUNT

using L3L2OrchEndpoint = WorkerChipOrchEndpoint;
using L3L2OrchNotifyOp = WorkerChipOrchNotifyOp;
using L3L2OrchPayloadView = WorkerChipOrchPayloadView;
using L3L2OrchRegionDesc = WorkerChipOrchRegionDesc;
using L3L2OrchSignalTestResult = WorkerChipOrchSignalTestResult;
using L3L2OrchWaitCmp = WorkerChipOrchWaitCmp;
#if defined(PTO_FIELD_EARLY_JULY)
// At first an error named its operation by a text.
struct L3L2EndpointError : WorkerChipEndpointError {
    const char *op;
    L3L2EndpointError(const WorkerChipEndpointError &error) : WorkerChipEndpointError(error), op(worker_chip_endpoint_op_to_string(error.op)) {}
};
#else
using L3L2EndpointError = WorkerChipEndpointError;
#endif
using L3L2EndpointErrorKind = WorkerChipEndpointErrorKind;
using L3L2EndpointOp = WorkerChipEndpointOp;
inline const char *l3_l2_endpoint_op_to_string(L3L2EndpointOp op) { return worker_chip_endpoint_op_to_string(op); }

#endif  // PTO_FIELD_L3_L2_ORCH_ENDPOINT_H

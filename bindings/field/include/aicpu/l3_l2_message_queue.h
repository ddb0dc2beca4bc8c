// The names of July 2026 for what aicpu/worker_chip_message_queue.h has.
#ifndef PTO_FIELD_L3_L2_MESSAGE_QUEUE_H
#define PTO_FIELD_L3_L2_MESSAGE_QUEUE_H

#include "aicpu/l3_l2_orch_endpoint.h"
#include "aicpu/worker_chip_message_queue.h"

#if defined(PTO_FIELD_EARLY_JULY)
// At first it had no window, and an error named its operation by a text.
using L3L2QueueEndpoint = WorkerChipQueueEndpoint<1>;
struct L3L2QueueError : WorkerChipQueueError {
    const char *op;
    L3L2QueueError(const WorkerChipQueueError &error) : WorkerChipQueueError(error), op(worker_chip_queue_op_to_string(error.op)) {}
};
#else
template <uint64_t MaxInflight = 1>
using L3L2QueueEndpoint = WorkerChipQueueEndpoint<MaxInflight>;
using L3L2QueueError = WorkerChipQueueError;
#endif
using L3L2QueueArgs = WorkerChipQueueArgs;
using L3L2QueueErrorKind = WorkerChipQueueErrorKind;
using L3L2QueueInputHandle = WorkerChipQueueInputHandle;
using L3L2QueueOp = WorkerChipQueueOp;
using L3L2QueueOpcode = WorkerChipQueueOpcode;
using L3L2QueueOutputReservation = WorkerChipQueueOutputReservation;
inline const char *l3_l2_queue_op_to_string(L3L2QueueOp op) { return worker_chip_queue_op_to_string(op); }

#endif  // PTO_FIELD_L3_L2_MESSAGE_QUEUE_H

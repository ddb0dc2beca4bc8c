// Ranks of a group that exchange tensors: each puts what it has for another rank into the window of that rank, raises its counter, waits until all have
// been there, and makes its output of what it got. The second scalar says which operation it is.
#include <cstdint>

#include "platform_comm/comm_context.h"
#include "tensor.h"

enum Operation : int64_t { ALLREDUCE, ALLGATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST };

static ChipTensor *tensor(int64_t word) { return reinterpret_cast<ChipTensor *>(word); }
static float *elements(const ChipTensor *tensor) { return reinterpret_cast<float *>(tensor->buffer.addr) + tensor->start_offset; }

extern "C" void kernel_entry(int64_t *args) {
    const ChipTensor *in = tensor(args[0]), *out = tensor(args[1]), *slots = tensor(args[2]), *counter = tensor(args[3]);
    const CommContext *context = reinterpret_cast<const CommContext *>(args[4]);
    const int64_t operation = args[5];
    const uint32_t ranks = context->rankNum, own = context->rankId, count = in->shapes[0];
    const bool is_scattered = operation == REDUCE_SCATTER || operation == ALL_TO_ALL;
    const uint32_t sent = is_scattered ? count / ranks : count;
    const uint64_t window = context->windowsIn[own];
    for (uint32_t peer = 0; peer < ranks; peer++) {
        const uint64_t there = context->windowsIn[peer] - window;
        if (operation != BROADCAST || own == 0) {
            float *slot = reinterpret_cast<float *>(slots->buffer.addr + there) + own * sent;
            for (uint32_t i = 0; i < sent; i++) slot[i] = elements(in)[is_scattered ? peer * sent + i : i];
        }
        __atomic_fetch_add(reinterpret_cast<int32_t *>(counter->buffer.addr + there), 1, __ATOMIC_ACQ_REL);
    }
    const int32_t *arrived = reinterpret_cast<const int32_t *>(counter->buffer.addr);
    while (ld_dev(arrived) < static_cast<int32_t>(ranks)) {
    }
    const float *got = elements(slots);
    const bool is_sum = operation == ALLREDUCE || operation == REDUCE_SCATTER;
    const uint32_t made = out->shapes[0];
    for (uint32_t i = 0; i < made; i++) {
        float value = got[i];
        for (uint32_t rank = 1; is_sum && rank < ranks; rank++) value += got[rank * sent + i];
        elements(out)[i] = value;
    }
}

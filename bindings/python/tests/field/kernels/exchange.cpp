// Two ranks: each puts its input into the window of the other one, tells it, waits, and copies what it got to its output.
#include <cstdint>

#include "platform_comm/comm_context.h"
#include "tensor.h"

static ChipTensor *tensor(int64_t word) { return reinterpret_cast<ChipTensor *>(word); }

extern "C" void kernel_entry(int64_t *args) {
    ChipTensor *in = tensor(args[0]), *out = tensor(args[1]), *mailbox = tensor(args[2]), *counter = tensor(args[3]);
    CommContext *context = reinterpret_cast<CommContext *>(args[4]);
    uint64_t own = context->windowsIn[context->rankId], peer = context->windowsIn[1 - context->rankId];
    auto *theirs = reinterpret_cast<volatile float *>(mailbox->buffer.addr - own + peer);
    auto *told = reinterpret_cast<int32_t *>(counter->buffer.addr - own + peer);
    for (uint32_t i = 0; i < in->shapes[0]; i++) theirs[i] = reinterpret_cast<float *>(in->buffer.addr)[i];
    __atomic_store_n(told, 1, __ATOMIC_RELEASE);
    auto *heard = reinterpret_cast<int32_t *>(counter->buffer.addr);
    while (__atomic_load_n(heard, __ATOMIC_ACQUIRE) == 0) {
    }
    for (uint32_t i = 0; i < out->shapes[0]; i++)
        reinterpret_cast<float *>(out->buffer.addr)[i] = reinterpret_cast<float *>(mailbox->buffer.addr)[i];
}

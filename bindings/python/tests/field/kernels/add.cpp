// out[i] = a[i] + b[i].
#include <cstdint>

#include "tensor.h"

static float *elements(int64_t word) {
    ChipTensor *tensor = reinterpret_cast<ChipTensor *>(word);
    return reinterpret_cast<float *>(tensor->buffer.addr) + tensor->start_offset;
}

extern "C" void kernel_entry(int64_t *args) {
    uint32_t count = reinterpret_cast<ChipTensor *>(args[0])->shapes[0];
    for (uint32_t i = 0; i < count; i++) elements(args[2])[i] = elements(args[0])[i] + elements(args[1])[i];
}

/* What the streaming programs of this folder share: tensors and arguments. */
#ifndef TENSORS_H
#define TENSORS_H

#include "pto_stream.h"

/* A tensor of `n` unsigned numbers, all of them. */
static inline pto_stream_tensor whole(uint64_t address, uint32_t n) {
    const pto_stream_tensor tensor = {
        .base = address, .bytes = 4 * n, .strides = {1}, .shape = {n}, .rank = 1, .element = PTO_ELEMENT_TYPE_U32};
    return tensor;
}

static inline pto_stream_arg argument(uint32_t kind, pto_stream_tensor tensor) {
    const pto_stream_arg arg = {.kind = kind, .tensor = tensor};
    return arg;
}

static inline pto_stream_arg word(uint32_t kind, uint64_t value) {
    const pto_stream_arg arg = {.kind = kind, .scalar = value};
    return arg;
}

#endif

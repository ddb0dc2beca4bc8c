/* What every kernel begins with: its arguments, scalars in GM, and PTO-ISA (on a development machine the header that replaces it).
 *
 * A kernel is one function at the start of its code, `kernel_entry`, and everything that it calls is inlined into it: only the bytes of `.text` go to GM.
 */
#ifndef PTO_KERNEL_H
#define PTO_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef PTO_ON_THIS_MACHINE
#define PTO_AICORE
#define PTO_GM
#elif !defined(PTO_AICORE)
#define PTO_AICORE [aicore]
#define PTO_GM __gm__
#endif

#include "pto/pto-inst.hpp"

#ifndef PTO_ON_THIS_MACHINE
#define PTO_INLINE inline __attribute__((always_inline))
#endif

/* On a development machine the caller's register, which holds the core's services for the kernel, is as before when the kernel returns. */
#ifdef PTO_ON_THIS_MACHINE
#define PTO_SERVICES , const pto_core_services *services
#define PTO_WITH_SERVICES(call)                                                                                        \
    const pto_core_services *const before = pto_core;                                                                  \
    pto_core = services;                                                                                               \
    call;                                                                                                              \
    pto_core = before
#else
#define PTO_SERVICES
#define PTO_WITH_SERVICES(call) call
#endif

/* `PTO_KERNEL(args) { .. }` is a kernel with the words `args`. */
#define PTO_KERNEL(args)                                                                                               \
    PTO_AICORE static PTO_INLINE void kernel_body(kernel::Args args);                                                  \
    extern "C" PTO_AICORE __attribute__((section(".text.kernel_entry"), used, visibility("default"))) void kernel_entry(PTO_GM int64_t *words PTO_SERVICES) { \
        PTO_WITH_SERVICES(kernel_body(kernel::Args{reinterpret_cast<const PTO_GM uint64_t *>(words)}));                \
    }                                                                                                                  \
    PTO_AICORE static PTO_INLINE void kernel_body(kernel::Args args)

namespace kernel {

/* The words of a task: addresses in GM, sizes, bits of `float`. The worker has made the cache fresh. */
struct Args {
    const PTO_GM uint64_t *words;
    PTO_AICORE PTO_INLINE int64_t size(int at) const { return static_cast<int64_t>(words[at]); }
    PTO_AICORE PTO_INLINE uint64_t word(int at) const { return words[at]; }
    template <typename T = float> PTO_AICORE PTO_INLINE PTO_GM T *gm(int at) const { return reinterpret_cast<PTO_GM T *>(words[at]); }
    PTO_AICORE PTO_INLINE float scalar(int at) const {
        const uint32_t bits = static_cast<uint32_t>(words[at]);
        float value;
        __builtin_memcpy(&value, &bits, sizeof value);
        return value;
    }
};

/* Which part of its task a kernel is: the word after its arguments (`abi/src/block.rs`). */
struct Block {
    uint32_t number, count, lane;
    PTO_AICORE PTO_INLINE explicit Block(uint64_t word)
        : number(static_cast<uint32_t>(word) & 0xFFFFFF), count(static_cast<uint32_t>(word >> 32)),
          lane(static_cast<uint32_t>(word) >> 24) {}
};

/* One element in GM, past the cache: neighbours in its line may be another core's. */
template <typename T> PTO_AICORE PTO_INLINE T load(const PTO_GM T *table, int64_t index = 0) {
#ifdef PTO_ON_THIS_MACHINE
    T value;
    __atomic_load(table + index, &value, __ATOMIC_RELAXED);
    return value;
#else
    return ld_dev(const_cast<PTO_GM T *>(table + index), 0);
#endif
}
template <typename T> PTO_AICORE PTO_INLINE void store(PTO_GM T *table, int64_t index, T value) {
#ifdef PTO_ON_THIS_MACHINE
    __atomic_store(table + index, &value, __ATOMIC_RELAXED);
#else
    st_dev(value, table + index, 0);
#endif
}

template <typename T> PTO_AICORE PTO_INLINE T least(T a, T b) { return a < b ? a : b; }
PTO_AICORE PTO_INLINE float larger(float a, float b) { return b > a || b != b ? b : a; }

/* One step of splitmix64, as `aicore-kernels/src/probe.rs`. */
PTO_AICORE PTO_INLINE uint64_t mix(uint64_t value) {
    uint64_t z = value + UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The sum of products of two rows in GM, in eight lanes. */
PTO_AICORE PTO_INLINE float dot(const PTO_GM float *a, const PTO_GM float *b, int64_t n) {
    float s[8] = {};
    for (int64_t i = 0; i < n; ++i) {
        s[i % 8] += load(a, i) * load(b, i);
    }
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Matrices in GM, as PTO-ISA has them. */
using Shape = pto::Shape<1, 1, 1, pto::DYNAMIC, pto::DYNAMIC>;
using Stride = pto::Stride<1, 1, 1, pto::DYNAMIC, pto::DYNAMIC>;
using Global = pto::GlobalTensor<float, Shape, Stride>;
PTO_AICORE PTO_INLINE Global matrix(PTO_GM float *at, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride = 1) {
    return Global(at, Shape(rows, cols), Stride(row_stride, col_stride));
}

/* A matrix in GM: element (row, col) is at `at[row * ld + col * col_stride]`. */
struct View {
    PTO_GM float *at;
    int64_t ld;
    int64_t col_stride = 1;
    PTO_AICORE PTO_INLINE Global part(int64_t row, int64_t col, int64_t rows, int64_t cols) const {
        return matrix(at + row * ld + col * col_stride, rows, cols, ld, col_stride);
    }
};

} // namespace kernel

#endif

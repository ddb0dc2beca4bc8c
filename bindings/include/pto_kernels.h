/* Kernels in a shared object, for `pto run FILE --kernels OBJECT.so` and `pto check FILE --kernels OBJECT.so`.
 *
 * The object exports an array of the kernels that it has:
 *
 *     #include "pto_kernels.h"
 *     static void scale(int64_t *args) { .. }
 *     PTO_KERNELS = {
 *         {100, PTO_AIV, "scale", "a, factor, out, n", scale},
 *     };
 *
 * A kernel gets the words of its task, in the order of the task's arguments. A word is the address of the first element of a
 * view, a whole number, or the bits of a float in the low half. The memory of a task may be used until the kernel returns. The
 * simulator does not protect its process from a kernel.
 */
#ifndef PTO_KERNELS_H
#define PTO_KERNELS_H

#include <stdint.h>

/* The cores that a kernel runs on. */
enum { PTO_AIC = 0, PTO_AIV = 1 };

struct pto_kernel {
    uint32_t func;               /* the func id: tasks name it */
    uint32_t kind;               /* PTO_AIC or PTO_AIV */
    const char *name;            /* what reports call it */
    const char *args;            /* what its words are called, with commas between them; null: it has none */
    void (*entry)(int64_t *args);
};

#ifdef __cplusplus
#define PTO_KERNELS                                   \
    extern "C" const struct pto_kernel pto_kernels[]; \
    const struct pto_kernel pto_kernels[]
#else
#define PTO_KERNELS const struct pto_kernel pto_kernels[]
#endif

#endif

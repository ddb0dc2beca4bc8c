/* `gate / (1 + e^-gate) * up`. */
#ifndef PTO_KERNEL_SILU_H
#define PTO_KERNEL_SILU_H

#include "vector.h"

namespace kernel {

/* At minus infinity the quotient is none: there the gate is taken as the smallest number, of which the result is a zero as well. */
PTO_AICORE PTO_INLINE void gated(int64_t rows, int64_t cols, View gate, View up, View out) {
    elementwise(rows, cols, {gate, up}, out, [](auto &result, auto &in) {
        pto::TMAXS(in[0], in[0], -3.4028235e38f);
        pipe_barrier(PIPE_V);
        pto::TNEG(result, in[0]);
        pipe_barrier(PIPE_V);
        pto::TEXP(result, result);
        pipe_barrier(PIPE_V);
        pto::TADDS(result, result, 1.0f);
        pipe_barrier(PIPE_V);
        pto::TDIV(result, in[0], result);
        pipe_barrier(PIPE_V);
        pto::TMUL(result, result, in[1]);
    });
}

} // namespace kernel

#endif

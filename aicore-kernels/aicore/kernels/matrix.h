/* The product of a cube core: GM -> L1 (MTE2) -> L0A, L0B (MTE1) -> L0C (M) -> GM (FIX), with two buffers in L1 and in L0A and L0B.
 *
 * A tile of the result is a sum over tiles of `k`, in ascending order. 128 x 128 results take half of L0C, 128 x 64 operands half of L0A and of L0B.
 */
#ifndef PTO_KERNEL_MATRIX_H
#define PTO_KERNEL_MATRIX_H

#include "kernel.h"

namespace kernel {

constexpr int SIDE = 128, DEPTH = 64;
using MatA = pto::Tile<pto::TileType::Mat, float, SIDE, DEPTH, pto::BLayout::ColMajor, pto::DYNAMIC, pto::DYNAMIC, pto::SLayout::RowMajor, 512>;
using MatB = pto::Tile<pto::TileType::Mat, float, DEPTH, SIDE, pto::BLayout::ColMajor, pto::DYNAMIC, pto::DYNAMIC, pto::SLayout::RowMajor, 512>;
using Left = pto::TileLeft<float, SIDE, DEPTH, pto::DYNAMIC, pto::DYNAMIC>;
using Right = pto::TileRight<float, DEPTH, SIDE, pto::DYNAMIC, pto::DYNAMIC>;
using Acc = pto::TileAcc<float, SIDE, SIDE, pto::DYNAMIC, pto::DYNAMIC>;
constexpr uint64_t OPERAND_BYTES = SIDE * DEPTH * 4;

/* The sum over tiles of k for one tile of the result, in L0C. */
PTO_AICORE PTO_INLINE void sum_tile(Acc &sums, View a, View b, int64_t row, int64_t col, int64_t k) {
    int buffer = 0;
    for (int64_t at = 0; at < k; at += DEPTH) {
        const int64_t deep = least<int64_t>(k - at, DEPTH);
        const event_t event = buffer == 0 ? EVENT_ID0 : EVENT_ID1;
        MatA a1(sums.rows, deep);
        MatB b1(deep, sums.cols);
        Left a0(sums.rows, deep);
        Right b0(deep, sums.cols);
        pto::TASSIGN(a1, static_cast<uint64_t>(buffer) * OPERAND_BYTES);
        pto::TASSIGN(b1, static_cast<uint64_t>(2 + buffer) * OPERAND_BYTES);
        pto::TASSIGN(a0, static_cast<uint64_t>(buffer) * OPERAND_BYTES);
        pto::TASSIGN(b0, static_cast<uint64_t>(buffer) * OPERAND_BYTES);
        wait_flag(PIPE_MTE1, PIPE_MTE2, event);
        pto::TLOAD(a1, a.part(row, at, sums.rows, deep));
        pto::TLOAD(b1, b.part(at, col, deep, sums.cols));
        set_flag(PIPE_MTE2, PIPE_MTE1, event);
        wait_flag(PIPE_MTE2, PIPE_MTE1, event);
        wait_flag(PIPE_M, PIPE_MTE1, event);
        pto::TMOV(a0, a1);
        pto::TMOV(b0, b1);
        set_flag(PIPE_MTE1, PIPE_MTE2, event);
        set_flag(PIPE_MTE1, PIPE_M, event);
        wait_flag(PIPE_MTE1, PIPE_M, event);
        if (at == 0) {
            pto::TMATMUL(sums, a0, b0);
        } else {
            pto::TMATMUL_ACC(sums, sums, a0, b0);
        }
        set_flag(PIPE_M, PIPE_MTE1, event);
        buffer ^= 1;
    }
}

/* `c = a @ b`, or `c += a @ b`: the sum is made first, and added then. */
template <pto::AtomicType ATOMIC> PTO_AICORE PTO_INLINE void product(int64_t m, int64_t n, int64_t k, View a, View b, View c) {
    if (k == 0) {
        for (int64_t row = 0; ATOMIC == pto::AtomicType::AtomicNone && row < m; ++row) {
            for (int64_t col = 0; col < n; ++col) {
                store(c.at, row * c.ld + col * c.col_stride, 0.0f);
            }
        }
        return;
    }
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    set_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);
    set_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
    for (int64_t row = 0; row < m; row += SIDE) {
        for (int64_t col = 0; col < n; col += SIDE) {
            Acc sums(least<int64_t>(m - row, SIDE), least<int64_t>(n - col, SIDE));
            pto::TASSIGN(sums, 0);
            wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
            sum_tile(sums, a, b, row, col, k);
            set_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
            wait_flag(PIPE_M, PIPE_FIX, EVENT_ID0);
            pto::TSTORE<ATOMIC>(c.part(row, col, sums.rows, sums.cols), sums);
            set_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
        }
    }
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE1, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID0);
    wait_flag(PIPE_M, PIPE_MTE1, EVENT_ID1);
    wait_flag(PIPE_FIX, PIPE_M, EVENT_ID0);
}
PTO_AICORE PTO_INLINE void product(int64_t m, int64_t n, int64_t k, View a, View b, View c) {
    product<pto::AtomicType::AtomicNone>(m, n, k, a, b, c);
}
PTO_AICORE PTO_INLINE void product_plus(int64_t m, int64_t n, int64_t k, View a, View b, View c) {
    product<pto::AtomicType::AtomicAdd>(m, n, k, a, b, c);
}

/* A copy of a cube core, through L1. */
PTO_AICORE PTO_INLINE void copy(int64_t rows, int64_t cols, View from, View to) {
    for (int64_t row = 0; row < rows; row += SIDE) {
        for (int64_t col = 0; col < cols; col += DEPTH) {
            MatA tile(least<int64_t>(rows - row, SIDE), least<int64_t>(cols - col, DEPTH));
            pto::TASSIGN(tile, 0);
            pto::TLOAD(tile, from.part(row, col, tile.rows, tile.cols));
            set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
            wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
            pto::TSTORE(to.part(row, col, tile.rows, tile.cols), tile);
            set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
            wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
        }
    }
}

} // namespace kernel

#endif

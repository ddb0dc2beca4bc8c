/* Loops of a vector core over matrices in GM: in tiles that fit the unified buffer, with two buffers, so that a tile is loaded while the one before it is
 * computed and the one before that is stored.
 *
 *   MTE2  load 0 | load 1 | load 0 ..
 *   V            | compute 0 | compute 1 ..
 *   MTE3                     | store 0 | store 1 ..
 *
 * Event `buffer` of MTE2 -> V says that a tile is loaded, of V -> MTE2 that its room is free again; of V -> MTE3 that a result is there, of MTE3 -> V that
 * its room is free again.
 */
#ifndef PTO_KERNEL_VECTOR_H
#define PTO_KERNEL_VECTOR_H

#include "kernel.h"

namespace kernel {

/* A tile of the loops: 16 KiB. */
constexpr int ROWS = 8, COLS = 512;
constexpr int TILE_BYTES = ROWS * COLS * 4;
using VecTile = pto::Tile<pto::TileType::Vec, float, ROWS, COLS, pto::BLayout::RowMajor, pto::DYNAMIC, pto::DYNAMIC>;
/* One element of each row, and a row. */
constexpr int COLUMN_BYTES = ROWS * 8 * 4;
using Column = pto::Tile<pto::TileType::Vec, float, ROWS, 8, pto::BLayout::RowMajor, pto::DYNAMIC, pto::DYNAMIC>;
constexpr int ROW_BYTES = COLS * 4;
using Row = pto::Tile<pto::TileType::Vec, float, 1, COLS, pto::BLayout::RowMajor, pto::DYNAMIC, pto::DYNAMIC>;

PTO_AICORE PTO_INLINE event_t event_of(int buffer) { return buffer == 0 ? EVENT_ID0 : EVENT_ID1; }

/* Sets the flags of free buffers before a loop, and waits for them after it. */
PTO_AICORE PTO_INLINE void buffers_are_free() {
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    set_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    set_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
}
PTO_AICORE PTO_INLINE void wait_for_buffers() {
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE2, EVENT_ID1);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID1);
}

/* `compute(out, tiles)` for each tile of a matrix of rows by cols: N operands are loaded, one result is stored. */
template <int N, typename Compute>
PTO_AICORE PTO_INLINE void elementwise(int64_t rows, int64_t cols, const View (&from)[N], View to, Compute compute) {
    buffers_are_free();
    int buffer = 0;
    for (int64_t row = 0; row < rows; row += ROWS) {
        for (int64_t col = 0; col < cols; col += COLS) {
            const int64_t high = least<int64_t>(rows - row, ROWS), wide = least<int64_t>(cols - col, COLS);
            const event_t event = event_of(buffer);
            VecTile tiles[N], out(high, wide);
            wait_flag(PIPE_V, PIPE_MTE2, event);
            for (int at = 0; at < N; ++at) {
                tiles[at].rows = high, tiles[at].cols = wide;
                pto::TASSIGN(tiles[at], static_cast<uint64_t>((buffer * (N + 1) + at) * TILE_BYTES));
                pto::TLOAD(tiles[at], from[at].part(row, col, high, wide));
            }
            pto::TASSIGN(out, static_cast<uint64_t>((buffer * (N + 1) + N) * TILE_BYTES));
            set_flag(PIPE_MTE2, PIPE_V, event);
            wait_flag(PIPE_MTE2, PIPE_V, event);
            wait_flag(PIPE_MTE3, PIPE_V, event);
            compute(out, tiles);
            set_flag(PIPE_V, PIPE_MTE2, event);
            set_flag(PIPE_V, PIPE_MTE3, event);
            wait_flag(PIPE_V, PIPE_MTE3, event);
            pto::TSTORE(to.part(row, col, high, wide), out);
            set_flag(PIPE_MTE3, PIPE_V, event);
            buffer ^= 1;
        }
    }
    wait_for_buffers();
}

/* The same for vectors of n elements: as rows of whole tiles, and what is left over. */
template <int N, typename Compute>
PTO_AICORE PTO_INLINE void elementwise(int64_t n, PTO_GM float *const (&from)[N], PTO_GM float *to, Compute compute) {
    const int64_t rows = n / COLS, rest = n % COLS;
    View views[N], ends[N];
    for (int at = 0; at < N; ++at) {
        views[at] = View{from[at], COLS};
        ends[at] = View{from[at] + rows * COLS, rest};
    }
    elementwise(rows, COLS, views, View{to, COLS}, compute);
    elementwise(1, rest, ends, View{to + rows * COLS, rest}, compute);
}

/* The addresses of the tiles of kernels with loops of their own: first tiles, then so many columns. */
constexpr uint64_t tile_at(int number) { return static_cast<uint64_t>(number) * TILE_BYTES; }
constexpr uint64_t small_at(int number) { return 160u * 1024u + static_cast<uint64_t>(number) * ROW_BYTES; }

/* Every pipe waits for every pipe: between steps of kernels that do not overlap them. */
PTO_AICORE PTO_INLINE void step() { pipe_barrier(PIPE_ALL); }

} // namespace kernel

#endif

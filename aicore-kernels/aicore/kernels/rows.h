/* Loops of a vector core over blocks of rows, step after step: for kernels that read a row more than once. */
#ifndef PTO_KERNEL_ROWS_H
#define PTO_KERNEL_ROWS_H

#include "vector.h"

namespace kernel {

/* The smallest normal number below all others: what replaces minus infinity where a difference is taken. */
constexpr float LOWEST = -3.4028235e38f;

/* Tiles of a block of rows. */
struct Block8 {
    int64_t row, rows;
    PTO_AICORE PTO_INLINE Block8(int64_t from, int64_t all) : row(from), rows(least<int64_t>(all - from, ROWS)) {}
};

PTO_AICORE PTO_INLINE void assign(VecTile &tile, int number, int64_t rows, int64_t cols) {
    tile.rows = rows, tile.cols = cols;
    pto::TASSIGN(tile, tile_at(number));
}
PTO_AICORE PTO_INLINE void assign(Column &column, int number, int64_t rows) {
    column.rows = rows, column.cols = 1;
    pto::TASSIGN(column, small_at(number));
}
PTO_AICORE PTO_INLINE void assign(Row &row, int number, int64_t cols) {
    row.rows = 1, row.cols = cols;
    pto::TASSIGN(row, small_at(number));
}
/* One element of each row of a block, in GM. */
PTO_AICORE PTO_INLINE Global column_of(PTO_GM float *at, Block8 block) { return matrix(at + block.row, block.rows, 1, 1); }

/* For each tile of a block: loads it, and calls `work(tile, col)`. */
template <typename Work> PTO_AICORE PTO_INLINE void each_tile(VecTile &tile, Block8 block, int64_t cols, View from, Work work) {
    for (int64_t col = 0; col < cols; col += COLS) {
        assign(tile, 0, block.rows, least<int64_t>(cols - col, COLS));
        step();
        pto::TLOAD(tile, from.part(block.row, col, tile.rows, tile.cols));
        step();
        work(tile, col);
    }
}

/* `total` of each row: the first tile's, and `add(total, part)` of each further one. `of(part, tile, room)` makes that of a tile. */
template <typename Of, typename Add>
PTO_AICORE PTO_INLINE void reduce(Column &total, Block8 block, int64_t cols, View from, float of_none, Of of, Add add) {
    VecTile tile, room;
    Column part;
    assign(part, 7, block.rows);
    if (cols == 0) {
        for (int64_t row = 0; row < block.rows; ++row) {
            total.SetValue(static_cast<uint32_t>(row * 8), of_none);
        }
    }
    each_tile(tile, block, cols, from, [&](VecTile &loaded, int64_t col) {
        assign(room, 1, loaded.rows, loaded.cols);
        of(col == 0 ? total : part, loaded, room);
        step();
        if (col > 0) {
            add(total, part);
        }
    });
    step();
}

/* Rotates each row in the planes of its elements i and i + dim / 2. */
PTO_AICORE PTO_INLINE void rotate(int64_t rows, int64_t dim, View x, PTO_GM float *cos, PTO_GM float *sin, View out) {
    const int64_t half = dim / 2;
    for (int64_t row = 0; row < rows; row += ROWS) {
        const Block8 block(row, rows);
        for (int64_t col = 0; col < half; col += COLS) {
            const int64_t wide = least<int64_t>(half - col, COLS);
            VecTile low, high, left, right;
            Row c, s;
            assign(low, 0, block.rows, wide), assign(high, 1, block.rows, wide);
            assign(left, 2, block.rows, wide), assign(right, 3, block.rows, wide);
            assign(c, 0, wide), assign(s, 1, wide);
            step();
            pto::TLOAD(low, x.part(row, col, block.rows, wide));
            pto::TLOAD(high, x.part(row, half + col, block.rows, wide));
            pto::TLOAD(c, matrix(cos + col, 1, wide, wide));
            pto::TLOAD(s, matrix(sin + col, 1, wide, wide));
            step();
            pto::TCOLEXPANDMUL(left, low, c);
            pto::TCOLEXPANDMUL(right, high, s);
            step();
            pto::TSUB(left, left, right);
            pto::TCOLEXPANDMUL(high, high, c);
            pto::TCOLEXPANDMUL(low, low, s);
            step();
            pto::TADD(high, high, low);
            step();
            pto::TSTORE(out.part(row, col, block.rows, wide), left);
            pto::TSTORE(out.part(row, half + col, block.rows, wide), high);
            step();
        }
    }
}

/* One element for each row: `within` takes a tile to a column, `across` a column of each tile to the result, from `first` on. */
template <typename Within, typename Across>
PTO_AICORE PTO_INLINE void reduce_rows(Args args, float first, Within within, Across across) {
    const int64_t rows = args.size(2);
    for (int64_t row = 0; row < rows; row += ROWS) {
        const Block8 block(row, rows);
        Column total;
        assign(total, 0, block.rows);
        reduce(total, block, args.size(3), {args.gm(0), args.size(4)}, first, within, across);
        pto::TSTORE(column_of(args.gm(1), block), total);
        step();
    }
}

} // namespace kernel

#endif

#include "rows.h"

PTO_KERNEL(args) {
    const int64_t rows = args.size(4), cols = args.size(5);
    const kernel::View s{args.gm(0), args.size(6)}, p{args.gm(1), args.size(7)};
    const float scale = args.scalar(8);
    for (int64_t row = 0; row < rows; row += kernel::ROWS) {
        const kernel::Block8 block(row, rows);
        kernel::Column most, below, sum, part;
        kernel::assign(most, 0, block.rows), kernel::assign(below, 1, block.rows);
        kernel::assign(sum, 2, block.rows), kernel::assign(part, 3, block.rows);
        kernel::reduce(most, block, cols, s, -__builtin_inff(),
                       [=](auto &out, auto &tile, auto &room) {
                           pto::TMULS(tile, tile, scale);
                           kernel::step();
                           pto::TROWMAX(out, tile, room);
                       },
                       [](auto &out, auto &of_part) { pto::TMAX(out, out, of_part); });
        /* What is masked has no weight, also in a row without anything else. */
        pto::TMAXS(below, most, kernel::LOWEST);
        kernel::VecTile tile, room;
        kernel::each_tile(tile, block, cols, s, [&](kernel::VecTile &loaded, int64_t col) {
            kernel::assign(room, 1, loaded.rows, loaded.cols);
            pto::TMULS(loaded, loaded, scale);
            kernel::step();
            pto::TROWEXPANDSUB(loaded, loaded, below);
            kernel::step();
            pto::TEXP(loaded, loaded);
            kernel::step();
            pto::TSTORE(p.part(block.row, col, loaded.rows, loaded.cols), loaded);
            pto::TROWSUM(col == 0 ? sum : part, loaded, room);
            kernel::step();
            if (col > 0) {
                pto::TADD(sum, sum, part);
            }
        });
        if (cols == 0) {
            for (int64_t at = 0; at < block.rows; ++at) {
                sum.SetValue(static_cast<uint32_t>(at * 8), 0.0f);
            }
        }
        kernel::step();
        pto::TSTORE(kernel::column_of(args.gm(2), block), most);
        pto::TSTORE(kernel::column_of(args.gm(3), block), sum);
        kernel::step();
    }
}

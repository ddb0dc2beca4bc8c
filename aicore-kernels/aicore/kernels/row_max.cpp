#include "rows.h"

PTO_KERNEL(args) {
    const int64_t rows = args.size(2);
    for (int64_t row = 0; row < rows; row += kernel::ROWS) {
        const kernel::Block8 block(row, rows);
        kernel::Column total;
        kernel::assign(total, 0, block.rows);
        kernel::reduce(total, block, args.size(3), {args.gm(0), args.size(4)}, -__builtin_inff(),
                       [](auto &out, auto &tile, auto &room) { pto::TROWMAX(out, tile, room); },
                       [](auto &out, auto &part) { pto::TMAX(out, out, part); });
        pto::TSTORE(kernel::column_of(args.gm(1), block), total);
        kernel::step();
    }
}

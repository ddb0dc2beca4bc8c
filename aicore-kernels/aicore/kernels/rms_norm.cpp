#include "rows.h"

PTO_KERNEL(args) {
    const int64_t rows = args.size(3), cols = args.size(4);
    const kernel::View x{args.gm(0), args.size(5)}, out{args.gm(2), args.size(6)};
    for (int64_t row = 0; row < rows; row += kernel::ROWS) {
        const kernel::Block8 block(row, rows);
        kernel::Column root;
        kernel::assign(root, 0, block.rows);
        kernel::reduce(root, block, cols, x, 0.0f,
                       [](auto &sum, auto &tile, auto &room) {
                           pto::TMUL(tile, tile, tile);
                           kernel::step();
                           pto::TROWSUM(sum, tile, room);
                       },
                       [](auto &sum, auto &part) { pto::TADD(sum, sum, part); });
        pto::TDIVS(root, root, static_cast<float>(cols));
        kernel::step();
        pto::TADDS(root, root, args.scalar(7));
        kernel::step();
        pto::TSQRT(root, root);
        kernel::VecTile tile;
        kernel::Row weight;
        kernel::each_tile(tile, block, cols, x, [&](kernel::VecTile &loaded, int64_t col) {
            kernel::assign(weight, 8, loaded.cols);
            pto::TLOAD(weight, kernel::matrix(args.gm(1) + col, 1, loaded.cols, loaded.cols));
            pto::TROWEXPANDDIV(loaded, loaded, root);
            kernel::step();
            pto::TCOLEXPANDMUL(loaded, loaded, weight);
            kernel::step();
            pto::TSTORE(out.part(block.row, col, loaded.rows, loaded.cols), loaded);
        });
        kernel::step();
    }
}

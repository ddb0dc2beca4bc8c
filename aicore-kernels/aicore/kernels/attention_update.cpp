#include "rows.h"

/* The word `flags`: the first block of a sequence, and the last one. */
constexpr uint64_t FIRST = 1, LAST = 2;

PTO_KERNEL(args) {
    const int64_t rows = args.size(7), dim = args.size(8);
    const kernel::View o_new{args.gm(2), args.size(9)}, o_acc{args.gm(5), args.size(9)}, out{args.gm(6), args.size(10)};
    const bool is_first = (args.word(11) & FIRST) != 0, is_last = (args.word(11) & LAST) != 0;
    for (int64_t row = 0; row < rows; row += kernel::ROWS) {
        const kernel::Block8 block(row, rows);
        kernel::Column m, l, m_acc, l_acc, most, keep, take;
        kernel::Column *const columns[] = {&m, &l, &m_acc, &l_acc, &most, &keep, &take};
        for (int number = 0; number < 7; ++number) {
            kernel::assign(*columns[number], number, block.rows);
        }
        kernel::step();
        pto::TLOAD(m, kernel::column_of(args.gm(0), block));
        pto::TLOAD(l, kernel::column_of(args.gm(1), block));
        if (!is_first) {
            pto::TLOAD(m_acc, kernel::column_of(args.gm(3), block));
            pto::TLOAD(l_acc, kernel::column_of(args.gm(4), block));
            kernel::step();
            pto::TMAX(most, m_acc, m);
            kernel::step();
            pto::TMAXS(take, most, kernel::LOWEST);
            kernel::step();
            pto::TSUB(keep, m_acc, take);
            kernel::step();
            pto::TSUB(take, m, take);
            kernel::step();
            pto::TEXP(keep, keep);
            pto::TEXP(take, take);
            kernel::step();
            pto::TMUL(l_acc, keep, l_acc);
            pto::TMUL(l, take, l);
            kernel::step();
            pto::TADD(l, l_acc, l);
            pto::TMOV(m, most);
        }
        kernel::step();
        pto::TSTORE(kernel::column_of(args.gm(3), block), m);
        pto::TSTORE(kernel::column_of(args.gm(4), block), l);
        /* Where everything is masked the sum is 0, and so is the output. */
        pto::TMAXS(m_acc, l, 1.1754944e-38f);
        kernel::step();
        kernel::VecTile fresh, held;
        kernel::each_tile(fresh, block, dim, o_new, [&](kernel::VecTile &loaded, int64_t col) {
            if (!is_first) {
                kernel::assign(held, 1, loaded.rows, loaded.cols);
                pto::TLOAD(held, o_acc.part(block.row, col, loaded.rows, loaded.cols));
                kernel::step();
                pto::TROWEXPANDMUL(held, held, keep);
                pto::TROWEXPANDMUL(loaded, loaded, take);
                kernel::step();
                pto::TADD(loaded, held, loaded);
                kernel::step();
            }
            pto::TSTORE(o_acc.part(block.row, col, loaded.rows, loaded.cols), loaded);
            if (is_last) {
                kernel::step();
                pto::TROWEXPANDDIV(loaded, loaded, m_acc);
                kernel::step();
                pto::TSTORE(out.part(block.row, col, loaded.rows, loaded.cols), loaded);
            }
        });
        kernel::step();
    }
}

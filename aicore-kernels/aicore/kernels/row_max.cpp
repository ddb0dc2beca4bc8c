#include "rows.h"

PTO_KERNEL(args) {
    kernel::reduce_rows(
        args, -__builtin_inff(), [](auto &out, auto &tile, auto &room) { pto::TROWMAX(out, tile, room); }, [](auto &out, auto &part) { pto::TMAX(out, out, part); });
}

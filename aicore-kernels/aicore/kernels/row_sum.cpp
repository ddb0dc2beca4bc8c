#include "rows.h"

PTO_KERNEL(args) {
    kernel::reduce_rows(
        args, 0.0f, [](auto &out, auto &tile, auto &room) { pto::TROWSUM(out, tile, room); }, [](auto &out, auto &part) { pto::TADD(out, out, part); });
}

#include "rows.h"

/* Whether an expert was chosen for a token before. */
PTO_AICORE static PTO_INLINE bool is_taken(const PTO_GM uint32_t *chosen, int64_t slots, uint32_t expert) {
    for (int64_t slot = 0; slot < slots; ++slot) {
        if (kernel::load(chosen, slot) == expert) {
            return true;
        }
    }
    return false;
}

/* The best expert that is not taken: the first of the largest logits, and a NaN before all numbers. */
PTO_AICORE static PTO_INLINE uint32_t best(const PTO_GM float *logits, int64_t count, const PTO_GM uint32_t *chosen, int64_t slots) {
    uint32_t best_expert = 0;
    float largest = 0;
    bool is_found = false;
    for (uint32_t expert = 0; expert < count; ++expert) {
        const float logit = kernel::load(logits, expert);
        const bool is_better = !is_found || logit > largest || (logit != logit && largest == largest);
        if (is_better && !is_taken(chosen, slots, expert)) {
            best_expert = expert, largest = logit, is_found = true;
        }
    }
    return best_expert;
}

PTO_KERNEL(args) {
    const int64_t tokens = args.size(3), count = args.size(4), top_k = args.size(5);
    for (int64_t token = 0; token < tokens; ++token) {
        const PTO_GM float *const logits = args.gm(0) + token * args.size(6);
        PTO_GM uint32_t *const chosen = args.gm<uint32_t>(1) + token * top_k;
        for (int64_t slot = 0; slot < top_k; ++slot) {
            const uint32_t expert = best(logits, count, chosen, slot);
            kernel::store(chosen, slot, expert);
            kernel::store(args.gm(2), token * top_k + slot, kernel::load(logits, expert));
        }
    }
    /* The softmax of each token's logits. */
    const kernel::View weights{args.gm(2), top_k};
    for (int64_t row = 0; row < tokens; row += kernel::ROWS) {
        const kernel::Block8 block(row, tokens);
        kernel::VecTile tile, room;
        kernel::Column most;
        kernel::assign(most, 0, block.rows);
        kernel::each_tile(tile, block, top_k, weights, [&](kernel::VecTile &loaded, int64_t) {
            kernel::assign(room, 1, loaded.rows, loaded.cols);
            pto::TROWMAX(most, loaded, room);
            kernel::step();
            pto::TROWEXPANDSUB(loaded, loaded, most);
            kernel::step();
            pto::TEXP(loaded, loaded);
            kernel::step();
            pto::TROWSUM(most, loaded, room);
            kernel::step();
            pto::TROWEXPANDDIV(loaded, loaded, most);
            kernel::step();
            pto::TSTORE(weights.part(block.row, 0, loaded.rows, loaded.cols), loaded);
        });
        kernel::step();
    }
}

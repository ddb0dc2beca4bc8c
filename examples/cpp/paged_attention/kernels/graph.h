// The graph of paged_attention: per sequence and block of its context scores -> softmax -> weighted sum -> update; the updates
// of a sequence follow one another. Words: query, key cache, value cache, block table, context lengths, out, scratch, batch,
// heads, kv_heads, head_dim, block_size, blocks of a row of the table.
#include "../../common/graph.h"

enum { SCORES = 0, SOFTMAX = 1, WEIGHTED_SUM = 2, UPDATE = 3 };

// Floats of one block's scratch: scores, weights, and the partial result with its maximum and sum for every head.
inline uint64_t block_floats(uint64_t heads, uint64_t head_dim, uint64_t block_size) {
    return heads * (block_size + head_dim + 2);
}

template <class Graph>
int build(Graph &graph, const uint64_t *words) {
    const uint64_t batch = words[7], heads = words[8], kv_heads = words[9], dim = words[10], size = words[11];
    const uint64_t row = words[12], floats = block_floats(heads, dim, size);
    const auto table = graph.template table<int32_t>(words[3], batch * row);
    const auto lengths = graph.template table<int32_t>(words[4], batch);
    for (uint64_t b = 0; b < batch; b++) {
        const uint64_t length = static_cast<uint64_t>(lengths[b]), blocks = (length + size - 1) / size;
        // What is summed up over the blocks: maximum and sum of every head; the result itself stands in `out`.
        const uint64_t state = words[6] + 4 * (b * (row * floats + 2 * heads));
        const uint64_t query = words[0] + 4 * b * heads * dim, out = words[5] + 4 * b * heads * dim;
        int last = -1;
        for (uint64_t j = 0; j < blocks && lengths.is_good(); j++) {
            const uint64_t cached = static_cast<uint64_t>(table[b * row + j]) * size * kv_heads * dim * 4;
            const uint64_t valid = length - j * size < size ? length - j * size : size;
            const uint64_t scores = state + 4 * (2 * heads + j * floats);
            const uint64_t maximum = scores + 4 * heads * size, partial = maximum + 8 * heads;
            const int t0 = graph.add(SCORES, CoreType::AIC, {query, words[1] + cached, scores, heads, kv_heads, dim, size, valid});
            const int t1 = graph.add(SOFTMAX, CoreType::AIV, {scores, maximum, heads, size, valid});
            const int t2 =
                graph.add(WEIGHTED_SUM, CoreType::AIC, {scores, words[2] + cached, partial, heads, kv_heads, dim, size, valid});
            const uint64_t first = j == 0, final = j + 1 == blocks;
            const int t3 = graph.add(UPDATE, CoreType::AIV, {maximum, partial, state, out, heads, dim, first, final});
            graph.after(t0, t1);
            graph.after(t1, t2);
            graph.after(t2, t3);
            if (last >= 0) {
                graph.after(last, t3);
            }
            for (const int task : {t0, t1, t2, t3}) {
                graph.publish(task);
            }
            last = t3;
        }
    }
    return table.is_good() && lengths.is_good() ? 0 : 1;
}

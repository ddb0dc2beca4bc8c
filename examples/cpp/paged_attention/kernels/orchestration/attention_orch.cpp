// Words: addresses of query, key_cache, value_cache, block_table, context_lens, out_attention, shape (int64: batch, heads,
// kv_heads, head_dim, block_size, blocks of a row); their bytes; elements of query.
#include "../../../common/orchestration.h"
#include "../graph.h"

extern "C" int build_attention_graph(Runtime *runtime, uint64_t *args, int count) {
    if (runtime == nullptr || count != 15) {
        return -1;
    }
    const int64_t *shape = reinterpret_cast<const int64_t *>(args[6]);
    const uint64_t batch = shape[0], heads = shape[1], dim = shape[3], size = shape[4], row = shape[5];
    const uint64_t bytes = 4 * batch * (row * block_floats(heads, dim, size) + 2 * heads);
    std::vector<uint64_t> words;
    for (int i = 0; i < 5; i++) {
        words.push_back(upload(runtime, args[i], args[7 + i]));
    }
    words.push_back(result(runtime, args[5], args[12]));
    words.push_back(scratch(runtime, bytes));
    for (int i = 0; i < 6; i++) {
        words.push_back(static_cast<uint64_t>(shape[i]));
    }
    return run_program(runtime, words, [](auto &graph, const uint64_t *of) { return build(graph, of); });
}

// scores[h][i] = query[h] . key[i][h's group] / sqrt(dim). Words: query, keys of the block, scores, heads, kv_heads, dim, size,
// valid.
#include <cmath>
#include <cstdint>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    const __gm__ float *query = reinterpret_cast<const __gm__ float *>(args[0]);
    const __gm__ float *keys = reinterpret_cast<const __gm__ float *>(args[1]);
    __gm__ float *scores = reinterpret_cast<__gm__ float *>(args[2]);
    const int64_t heads = args[3], kv_heads = args[4], dim = args[5], size = args[6], valid = args[7];
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    for (int64_t head = 0; head < heads; head++) {
        const int64_t group = head / (heads / kv_heads);
        for (int64_t i = 0; i < valid; i++) {
            float sum = 0.0f;
            for (int64_t d = 0; d < dim; d++) {
                sum += query[head * dim + d] * keys[(i * kv_heads + group) * dim + d];
            }
            scores[head * size + i] = sum * scale;
        }
    }
}

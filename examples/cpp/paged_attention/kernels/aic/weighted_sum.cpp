// partial[h] = sum of weights[h][i] * value[i][h's group]. Words: weights, values of the block, partial, heads, kv_heads, dim,
// size, valid.
#include <cstdint>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    const __gm__ float *weights = reinterpret_cast<const __gm__ float *>(args[0]);
    const __gm__ float *values = reinterpret_cast<const __gm__ float *>(args[1]);
    __gm__ float *partial = reinterpret_cast<__gm__ float *>(args[2]);
    const int64_t heads = args[3], kv_heads = args[4], dim = args[5], size = args[6], valid = args[7];
    for (int64_t head = 0; head < heads; head++) {
        const int64_t group = head / (heads / kv_heads);
        for (int64_t d = 0; d < dim; d++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < valid; i++) {
                sum += weights[head * size + i] * values[(i * kv_heads + group) * dim + d];
            }
            partial[head * dim + d] = sum;
        }
    }
}

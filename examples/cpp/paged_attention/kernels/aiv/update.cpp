// Adds a block's part to what was summed up before it, both scaled to the larger maximum; the last one divides. Words: maxima
// (then sums) of the block, partial, maxima (then sums) so far, out, heads, dim, 1 if first, 1 if last.
#include <cmath>
#include <cstdint>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    const __gm__ float *block = reinterpret_cast<const __gm__ float *>(args[0]);
    const __gm__ float *partial = reinterpret_cast<const __gm__ float *>(args[1]);
    __gm__ float *state = reinterpret_cast<__gm__ float *>(args[2]);
    __gm__ float *out = reinterpret_cast<__gm__ float *>(args[3]);
    const int64_t heads = args[4], dim = args[5], first = args[6], last = args[7];
    for (int64_t head = 0; head < heads; head++) {
        const float before = first != 0 ? block[head] : state[head];
        const float maximum = block[head] > before ? block[head] : before;
        const float keep = first != 0 ? 0.0f : std::exp(before - maximum), take = std::exp(block[head] - maximum);
        const float sum_before = first != 0 ? 0.0f : state[heads + head];
        const float sum = sum_before * keep + block[heads + head] * take;
        for (int64_t d = 0; d < dim; d++) {
            const float held = first != 0 ? 0.0f : out[head * dim + d];
            const float value = held * keep + partial[head * dim + d] * take;
            out[head * dim + d] = last != 0 ? value / sum : value;
        }
        state[head] = maximum;
        state[heads + head] = sum;
    }
}

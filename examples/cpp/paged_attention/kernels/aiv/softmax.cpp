// scores become exp(score - maximum); maximum and sum of each head. Words: scores, maxima (then sums), heads, size, valid.
#include <cmath>
#include <cstdint>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ float *scores = reinterpret_cast<__gm__ float *>(args[0]);
    __gm__ float *maxima = reinterpret_cast<__gm__ float *>(args[1]);
    const int64_t heads = args[2], size = args[3], valid = args[4];
    __gm__ float *sums = maxima + heads;
    for (int64_t head = 0; head < heads; head++) {
        __gm__ float *row = scores + head * size;
        float maximum = row[0], sum = 0.0f;
        for (int64_t i = 1; i < valid; i++) {
            maximum = row[i] > maximum ? row[i] : maximum;
        }
        for (int64_t i = 0; i < valid; i++) {
            row[i] = std::exp(row[i] - maximum);
            sum += row[i];
        }
        maxima[head] = maximum;
        sums[head] = sum;
    }
}

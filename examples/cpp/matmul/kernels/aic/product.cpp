// c = a @ b, or c += a @ b. Words: a, b, c, rows, columns, depth, row length of a, of b and c, 1 to add.
#include <cstdint>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    const __gm__ float *a = reinterpret_cast<const __gm__ float *>(args[0]);
    const __gm__ float *b = reinterpret_cast<const __gm__ float *>(args[1]);
    __gm__ float *c = reinterpret_cast<__gm__ float *>(args[2]);
    const int64_t rows = args[3], columns = args[4], depth = args[5], length_a = args[6], length_b = args[7];
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = 0; column < columns; column++) {
            float sum = args[8] != 0 ? c[row * length_b + column] : 0.0f;
            for (int64_t i = 0; i < depth; i++) {
                sum += a[row * length_a + i] * b[i * length_b + column];
            }
            c[row * length_b + column] = sum;
        }
    }
}

// out = a * b. Words: a, b, out, n.
#include <cstdint>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    const __gm__ float *a = reinterpret_cast<const __gm__ float *>(args[0]);
    const __gm__ float *b = reinterpret_cast<const __gm__ float *>(args[1]);
    __gm__ float *out = reinterpret_cast<__gm__ float *>(args[2]);
    for (int64_t i = 0; i < args[3]; i++) {
        out[i] = a[i] * b[i];
    }
}

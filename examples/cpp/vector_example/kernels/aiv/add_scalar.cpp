// out = a + scalar. Words: a, scalar (a whole number), out, n.
#include <cstdint>

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    const __gm__ float *a = reinterpret_cast<const __gm__ float *>(args[0]);
    __gm__ float *out = reinterpret_cast<__gm__ float *>(args[2]);
    for (int64_t i = 0; i < args[3]; i++) {
        out[i] = a[i] + static_cast<float>(args[1]);
    }
}

// Counts its execution, and writes a checksum of its producers' values. Words: index, seed, values, counters, producers, count.
#include <cstdint>

namespace {
// A step of splitmix64.
uint64_t mix(uint64_t value) {
    uint64_t z = value + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}
}  // namespace

extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ uint64_t *values = reinterpret_cast<__gm__ uint64_t *>(args[2]);
    __gm__ uint32_t *counters = reinterpret_cast<__gm__ uint32_t *>(args[3]);
    const __gm__ int32_t *producers = reinterpret_cast<const __gm__ int32_t *>(args[4]);
    const uint64_t index = static_cast<uint64_t>(args[0]);
    uint64_t value = mix(mix(static_cast<uint64_t>(args[1])) ^ index);
    for (int64_t i = 0; i < args[5]; i++) {
        value = mix(value ^ values[producers[i]]);
    }
    values[index] = value;
    counters[index] += 1;
}

// A kernel that a relocatable object cannot bring: its global object wants a constructor.
#include <cstdint>

struct Counter {
    std::int64_t value;
    Counter();
};
std::int64_t outside();
Counter::Counter() : value(outside()) {}
std::int64_t outside() { return 4; }
static Counter counter;

extern "C" void kernel_entry(std::int64_t *args) { *reinterpret_cast<std::int64_t *>(args[0]) = counter.value; }

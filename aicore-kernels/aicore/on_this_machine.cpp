/* The machine of a worker that runs on a development machine: each call goes to a table that a test or the stand-in for a device gives. */
#include "machine.h"

#define CALLS(row)                                                                                                     \
    row(uint32_t, block, (), ())                                                                                       \
    row(uint32_t, blocks, (), ())                                                                                      \
    row(uint32_t, sub, (), ())                                                                                         \
    row(uint32_t, subs, (), ())                                                                                        \
    row(uint32_t, doorbell, (), ())                                                                                    \
    row(void, status, (uint32_t value), (value))                                                                       \
    row(uint64_t, ticks, (), ())                                                                                       \
    row(uint64_t, load, (uint64_t address, uint32_t bytes), (address, bytes))                                          \
    row(void, store, (uint64_t address, uint32_t bytes, uint64_t value), (address, bytes, value))                      \
    row(void, fresh, (uint64_t address), (address))                                                                    \
    row(void, write_back, (uint64_t address), (address))                                                               \
    row(void, drop_cache, (), ())                                                                                      \
    row(void, pipes_idle, (), ())                                                                                      \
    row(void, call, (uint64_t code, uint64_t args), (code, args))                                                      \
    row(void, set_flags_base, (uint64_t address), (address))

#define POINTER(result, name, parameters, arguments) result(*name) parameters;
struct Calls {
    CALLS(POINTER)
};

/* In a section of its own: a worker for a device has no variables, which `pto fw seal` checks. */
__attribute__((section(".pto_this_machine"))) static const Calls *calls = nullptr;

PTO_ENTRY void pto_core_bind(const Calls *table) { calls = table; }

#define FORWARD(result, name, parameters, arguments)                                                                   \
    extern "C" result pto_core_##name parameters { return calls->name arguments; }
CALLS(FORWARD)

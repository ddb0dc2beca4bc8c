/* Reports what the pipes of a kernel do, to a table that the test gives. */
#include <stdint.h>

struct Pipes {
    void (*begin)(uint32_t pipe, uint32_t line);
    void (*access)(uint32_t space, uint64_t address, uint64_t bytes, uint32_t is_write);
    void (*set)(uint32_t from, uint32_t to, uint32_t event, uint32_t line);
    void (*wait)(uint32_t from, uint32_t to, uint32_t event, uint32_t line);
    void (*barrier)(uint32_t pipe, uint32_t line);
    void (*raise)(uint32_t pipe, uint32_t line);
};

static const Pipes *pipes;

extern "C" __attribute__((visibility("default"))) void pto_pipes_bind(const Pipes *table) { pipes = table; }
extern "C" void pto_pipes_begin(uint32_t pipe, uint32_t line) { pipes->begin(pipe, line); }
extern "C" void pto_pipes_access(uint32_t space, uint64_t address, uint64_t bytes, uint32_t is_write) {
    pipes->access(space, address, bytes, is_write);
}
extern "C" void pto_pipes_set(uint32_t from, uint32_t to, uint32_t event, uint32_t line) { pipes->set(from, to, event, line); }
extern "C" void pto_pipes_wait(uint32_t from, uint32_t to, uint32_t event, uint32_t line) { pipes->wait(from, to, event, line); }
extern "C" void pto_pipes_barrier(uint32_t pipe, uint32_t line) { pipes->barrier(pipe, line); }
extern "C" void pto_pipes_raise(uint32_t pipe, uint32_t line) { pipes->raise(pipe, line); }

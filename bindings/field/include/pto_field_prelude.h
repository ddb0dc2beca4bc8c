// Include this before everything else of a kernel (-include pto_field_prelude.h). It gives PTO-ISA's simulator what it looks
// for by name, and the kernel what the simulator's headers lack.
#ifndef PTO_FIELD_PRELUDE_H
#define PTO_FIELD_PRELUDE_H

#include <stddef.h>
#include <stdint.h>

struct pto_field_instruction;  // pto_field_counters.h

struct pto_field_sim_ops {
    uint64_t version;
    uint32_t (*subblock)(void);
    void *(*pipe)(uint64_t key, size_t bytes);
    uint64_t (*ticks)(void);
    // From version 2 on.
    void (*count)(const pto_field_instruction *instruction);
};

extern "C" {
__attribute__((weak, visibility("default"))) const pto_field_sim_ops *pto_field_sim_table;

// 0, or 1 on the second vector core of a cluster.
__attribute__((weak, visibility("default"), used)) uint32_t pto_sim_get_subblock_id(void) {
    return pto_field_sim_table == nullptr ? 0 : pto_field_sim_table->subblock();
}
// Memory, at first zeros, that the kernels of a block find by the same key.
__attribute__((weak, visibility("default"), used)) void *pto_sim_get_pipe_shared_state(uint64_t key, size_t bytes) {
    return pto_field_sim_table == nullptr ? nullptr : pto_field_sim_table->pipe(key, bytes);
}
}

// The clock of a core, in ticks of 20 ns.
static inline uint64_t get_sys_cnt(void) { return pto_field_sim_table == nullptr ? 0 : pto_field_sim_table->ticks(); }

// Stores and loads that pass the cache.
template <typename T>
static inline void st_dev(T value, T *place, int64_t offset = 0) {
    __atomic_store(reinterpret_cast<T *>(reinterpret_cast<char *>(place) + offset), &value, __ATOMIC_RELEASE);
}
template <typename T>
static inline T ld_dev(const T *place, int64_t offset = 0) {
    T value;
    __atomic_load(reinterpret_cast<const T *>(reinterpret_cast<const char *>(place) + offset), &value, __ATOMIC_ACQUIRE);
    return value;
}

#endif  // PTO_FIELD_PRELUDE_H

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
    void (*raise)(uint32_t mode, uint32_t flag);
    void (*wait)(uint32_t flag);
    // From version 3 on.
    void (*look)(uint64_t address, uint64_t value);
};

#ifdef PTO_FIELD_AICORE
// An AICore has its clock and its flags as instructions.
static inline void pto_field_look(const volatile void *, uint64_t) {}
#elif defined(PTO_FIELD_DEVICE)
// In the memory of a device these are functions of the kernels' blob.
extern "C" {
uint32_t pto_sim_get_subblock_id(void);
void *pto_sim_get_pipe_shared_state(uint64_t key, size_t bytes);
uint64_t pto_field_device_ticks(void);
void pto_field_device_raise(uint32_t mode, uint32_t flag);
void pto_field_device_wait(uint32_t flag);
}
static inline uint64_t get_sys_cnt(void) { return pto_field_device_ticks(); }
// Each core runs by itself there: a core that waits keeps no other core from running.
static inline void pto_field_look(const volatile void *, uint64_t) {}
#else
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

// Reports to the runtime that the kernel has looked at a word which others may write. A kernel that does nothing else waits: where no other kernel can run
// meanwhile, the run ends there, and names the hosting mode that it needs.
static inline void pto_field_look(const volatile void *address, uint64_t value) {
    if (pto_field_sim_table != nullptr && pto_field_sim_table->version >= 3) {
        pto_field_sim_table->look(reinterpret_cast<uint64_t>(address), value);
    }
}
#endif

#if !defined(PTO_FIELD_AICORE) || defined(PTO_ON_THIS_MACHINE)
// Stores and loads that pass the cache.
template <typename T>
static inline void st_dev(T value, T *address, int64_t offset = 0) {
    __atomic_store(reinterpret_cast<T *>(reinterpret_cast<char *>(address) + offset), &value, __ATOMIC_RELEASE);
}
template <typename T>
static inline T ld_dev(const T *address, int64_t offset = 0) {
    T value;
    const T *from = reinterpret_cast<const T *>(reinterpret_cast<const char *>(address) + offset);
    __atomic_load(from, &value, __ATOMIC_ACQUIRE);
    uint64_t seen = 0;
    __builtin_memcpy(&seen, &value, sizeof value < sizeof seen ? sizeof value : sizeof seen);
    pto_field_look(from, seen);
    return value;
}

// A line goes out of the cache: a kernel that waits for a word of it does that before each look. PTO-ISA's simulator has functions of this name, which
// take any pointer and do nothing; these fit better.
template <typename T, typename... More>
static inline void dcci(T *line, int, More...) {
    const uint64_t address = reinterpret_cast<uint64_t>(line) & ~static_cast<uint64_t>(3);
    if (address != 0) {
        pto_field_look(line, __atomic_load_n(reinterpret_cast<const uint32_t *>(address), __ATOMIC_ACQUIRE));
    }
}

// What kernels until July 2026 give dcci; later they write `cache_line_t::` and `dcci_dst_t::` before these, which PTO-ISA has.
enum : int { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE = 1, CACHELINE_OUT = 2 };
#endif

#ifndef PTO_FIELD_AICORE
// Flags between the cores of a task. The word that raises one has the mode in bits 4 and 5 and the flag in bits 8 to 11: mode 0 is for all
// cores of a kind in the task, 1 for the vector cores of a block, 2 for its cube core and its vector cores. A wait takes one.
#ifdef PTO_FIELD_DEVICE
static inline void pto_field_raise(uint32_t mode, uint32_t flag) { pto_field_device_raise(mode, flag); }
static inline void pto_field_wait(uint32_t flag) { pto_field_device_wait(flag); }
#else
static inline void pto_field_raise(uint32_t mode, uint32_t flag) {
    if (pto_field_sim_table != nullptr && pto_field_sim_table->version >= 2) {
        pto_field_sim_table->raise(mode, flag);
    }
}
static inline void pto_field_wait(uint32_t flag) {
    if (pto_field_sim_table != nullptr && pto_field_sim_table->version >= 2) {
        pto_field_sim_table->wait(flag);
    }
}
#endif
template <typename Pipe>
static inline void ffts_cross_core_sync(Pipe, uint64_t word) {
    pto_field_raise(static_cast<uint32_t>(word >> 4 & 3), static_cast<uint32_t>(word >> 8 & 15));
}
static inline void wait_flag_dev(int64_t flag) { pto_field_wait(static_cast<uint32_t>(flag)); }
static inline void set_ffts_base_addr(uint64_t) {}
// Flags between the cube core of a block and one of its vector cores, as a5 has them: numbers from 16 on are about the second vector core.
template <typename Pipe>
static inline void set_intra_block(Pipe, uint32_t flag) {
    pto_field_raise(4, flag);
}
template <typename Pipe>
static inline void wait_intra_block(Pipe, uint32_t flag) {
    pto_field_wait(64 + flag);
}
#endif

#endif  // PTO_FIELD_PRELUDE_H

/* What the worker loop needs of an AICore: its registers, its cache, its pipes.
 *
 * On the device each of these is an instruction or an intrinsic of the vendor's compiler. With PTO_ON_THIS_MACHINE they are calls, which a test or
 * a stand-in answers: the same loop then runs on a development machine, where the one that answers can model a cache that nobody keeps coherent.
 */
#ifndef PTO_AICORE_MACHINE_H
#define PTO_AICORE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "pto_abi.h"

/* The source is compiled once for each kind of core, and both objects are linked into one program. What they share by name, the linker keeps once, of either
 * kind: so that all functions here are static. */
#ifdef __DAV_CUBE__
constexpr bool IS_CUBE = true;
#else
constexpr bool IS_CUBE = false;
#endif

#ifdef PTO_ON_THIS_MACHINE

#define PTO_AICORE
#define PTO_GM
#define PTO_ENTRY extern "C" __attribute__((visibility("default")))

extern "C" {
/* The number of this core's cluster, how many clusters there are, which core of the cluster this is among those of its kind, how many there are. */
uint32_t pto_core_block(void);
uint32_t pto_core_blocks(void);
uint32_t pto_core_sub(void);
uint32_t pto_core_subs(void);
/* DATA_MAIN_BASE, which the core never writes; COND, which it only writes; the counter of 50 MHz. */
uint32_t pto_core_doorbell(void);
void pto_core_status(uint32_t status);
uint64_t pto_core_ticks(void);
/* A load and a store of 4 or 8 bytes through the core's cache. */
uint64_t pto_core_load(uint64_t address, uint32_t bytes);
void pto_core_store(uint64_t address, uint32_t bytes, uint64_t value);
/* Drops the line of an address, writes it back, or drops the whole cache. */
void pto_core_fresh(uint64_t address);
void pto_core_write_back(uint64_t address);
void pto_core_drop_cache(void);
/* Waits until all pipes are idle. */
void pto_core_pipes_idle(void);
/* Jumps to the code of a kernel. */
void pto_core_call(uint64_t code, uint64_t args);
/* Where the flags between the cores of a cluster are. */
void pto_core_set_flags_base(uint64_t address);
}

namespace machine {

static inline uint32_t block() { return pto_core_block(); }
static inline uint32_t blocks() { return pto_core_blocks(); }
static inline uint32_t sub() { return pto_core_sub(); }
static inline uint32_t subs() { return pto_core_subs(); }
static inline uint32_t doorbell() { return pto_core_doorbell(); }
static inline void status(uint32_t value) { pto_core_status(value); }
static inline uint64_t ticks() { return pto_core_ticks(); }
static inline void fresh(const void *line) { pto_core_fresh(reinterpret_cast<uint64_t>(line)); }
static inline void write_back(const void *line) { pto_core_write_back(reinterpret_cast<uint64_t>(line)); }
static inline void drop_cache() { pto_core_drop_cache(); }
static inline void pipes_idle() { pto_core_pipes_idle(); }
static inline void call(uint64_t code, uint64_t args) { pto_core_call(code, args); }
static inline void flags_base(uint64_t address) { pto_core_set_flags_base(address); }

template <typename T> static inline T load(const T *from) {
    return static_cast<T>(pto_core_load(reinterpret_cast<uint64_t>(from), sizeof(T)));
}
template <typename T> static inline void store(T *to, T value) {
    pto_core_store(reinterpret_cast<uint64_t>(to), sizeof(T), value);
}

} // namespace machine

#else

/* A test defines these away. */
#ifndef PTO_AICORE
#define PTO_AICORE [aicore]
#define PTO_GM __gm__
#endif
#define PTO_ENTRY extern "C" __global__ PTO_AICORE

namespace machine {

PTO_AICORE static inline uint32_t block() { return static_cast<uint32_t>(get_block_idx()); }
PTO_AICORE static inline uint32_t blocks() { return static_cast<uint32_t>(get_block_num()); }
PTO_AICORE static inline uint32_t sub() { return static_cast<uint32_t>(get_subblockid()); }
PTO_AICORE static inline uint32_t subs() { return static_cast<uint32_t>(get_subblockdim()); }

PTO_AICORE static inline uint32_t doorbell() {
    uint64_t value;
    asm volatile("MOV %0, DATA_MAIN_BASE\n" : "=l"(value));
    return static_cast<uint32_t>(value);
}

PTO_AICORE static inline void status(uint32_t value) { set_cond(value); }
PTO_AICORE static inline uint64_t ticks() { return static_cast<uint64_t>(get_sys_cnt()); }

PTO_AICORE static inline void fresh(const PTO_GM void *line) {
    dcci(const_cast<PTO_GM void *>(line), SINGLE_CACHE_LINE);
}
PTO_AICORE static inline void write_back(const PTO_GM void *line) {
    dcci(const_cast<PTO_GM void *>(line), SINGLE_CACHE_LINE, CACHELINE_OUT);
}
PTO_AICORE static inline void drop_cache() { dcci(static_cast<PTO_GM void *>(nullptr), ENTIRE_DATA_CACHE); }
PTO_AICORE static inline void pipes_idle() { pipe_barrier(PIPE_ALL); }

PTO_AICORE static inline void call(uint64_t code, uint64_t args) {
    using Kernel = void (*)(PTO_GM int64_t *);
    reinterpret_cast<Kernel>(code)(reinterpret_cast<PTO_GM int64_t *>(args));
}

PTO_AICORE static inline void flags_base(uint64_t address) { set_ffts_base_addr(address); }

template <typename T> PTO_AICORE static inline T load(const PTO_GM T *from) {
    return *static_cast<const volatile PTO_GM T *>(from);
}
template <typename T> PTO_AICORE static inline void store(PTO_GM T *to, T value) {
    *static_cast<volatile PTO_GM T *>(to) = value;
}

} // namespace machine

#endif

#endif

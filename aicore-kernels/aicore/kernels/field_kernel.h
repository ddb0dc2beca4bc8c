/* Kernels of the field on AICores: `PTO_FIELD_KERNEL(function)` behind a kernel `void function(__gm__ int64_t *args)` makes a kernel of ours of it, which
 * finds what the task has for it as the blob for the emulated machine does (`linker/kernels-blob/src/field/call.rs`).
 *
 *   #include "field_kernel.h"
 *   #define kernel_entry add
 *   #include "add.h"             the kernel of the field
 *   #undef kernel_entry
 *   PTO_FIELD_KERNEL(add)
 *
 * The times of a timing slot are those of one of its kernels where several begin or end at once, because a core has no addition in GM that gives back what
 * was there. A task that waits for conditions waits for as long as its run may take.
 */
#ifndef PTO_FIELD_KERNEL_H
#define PTO_FIELD_KERNEL_H

/* For the field's headers on a development machine: what they have for a device, but for what a core has by itself. */
#define PTO_FIELD_DEVICE 1
#define PTO_FIELD_AICORE 1

#include <string.h>

#include "kernel.h"

/* A core has no library: what copies a few bytes is code of the kernel. */
#define memcpy __builtin_memcpy

namespace field {

/* As `TaskFrame`: its tensors follow it, and its scalars follow those. */
struct Frame {
    uint64_t entries[3], task, shared, file;
    int32_t line;
    uint8_t tensors, scalars, block_word;
    int8_t timing_slot;
    uint16_t party;
    uint8_t starts_at_once;
    uint32_t scalar_words;
};
static_assert(sizeof(Frame) == 64, "the size of TaskFrame");

/* Words of arguments, and which of them are the contexts; bytes of a descriptor of a tensor. */
constexpr int WORDS = 50, LOCAL = 48, GLOBAL = 49, TENSOR_BYTES = 128;
/* The 32-bit word of `RunState` with the first code of a completion that failed; the 64-bit word with its times. */
constexpr int FAILED = 1, TIMING = 4;
/* What a task fails with whose conditions are none. */
constexpr uint32_t INVALID = 101;
constexpr uint64_t NS_A_TICK = 20;

/* What the task waits for after the kernel has returned. */
struct Condition {
    uint64_t address;
    uint32_t expected, engine, type, reserved;
    uint64_t cookie;
};
struct Conditions {
    uint32_t count;
    int32_t error;
    Condition list[64];
};
struct LocalContext {
    int32_t block, blocks;
    uint64_t count, error, list;
    uint32_t capacity, reserved;
    uint64_t task;
};
struct GlobalContext {
    int32_t sub_block, reserved;
    uint64_t dma_workspace[2];
};
static_assert(sizeof(Condition) == 32 && sizeof(LocalContext) == 48 && sizeof(GlobalContext) == 24, "the sizes of the contexts");

/* The words of a kernel's arguments, without the contexts. */
PTO_AICORE PTO_INLINE void arguments(int64_t *words, const PTO_GM Frame *frame) {
    const uint64_t tensors = reinterpret_cast<uint64_t>(frame + 1);
    const PTO_GM int64_t *scalars = reinterpret_cast<const PTO_GM int64_t *>(tensors + TENSOR_BYTES * frame->tensors);
    /* The scalars follow the tensors, or are where the task says. */
    const uint64_t of_scalars = frame->scalar_words != 0 ? frame->scalar_words : ~UINT64_C(0) << frame->tensors;
    const int count = frame->tensors + frame->scalars;
    for (int at = 0, tensor = 0, scalar = 0; at < count; ++at) {
        const bool is_scalar = (of_scalars >> at & 1) != 0;
        words[at] = is_scalar ? scalars[scalar++] : static_cast<int64_t>(tensors + TENSOR_BYTES * static_cast<uint64_t>(tensor++));
    }
}

/* Waits for the conditions; the code of what went wrong, or 0. */
PTO_AICORE PTO_INLINE uint32_t complete(const volatile Conditions &conditions) {
    if (conditions.error != 0) {
        return static_cast<uint32_t>(conditions.error);
    }
    for (uint32_t at = 0; at < conditions.count; ++at) {
        const uint64_t address = conditions.list[at].address;
        if (address == 0 || address % 4 != 0) {
            return INVALID;
        }
        while (kernel::load(reinterpret_cast<const PTO_GM uint32_t *>(address)) < conditions.list[at].expected) {
#ifdef PTO_ON_THIS_MACHINE
            PTO_SERVICE(look)();
#endif
        }
    }
    return 0;
}

/* Widens the times of a slot: they begin with one more than the least, because 0 is none. */
PTO_AICORE PTO_INLINE void widen(PTO_GM uint64_t *times, uint64_t begin, uint64_t end) {
    const uint64_t least = kernel::load(times, 0);
    if (least == 0 || begin + 1 < least) {
        kernel::store(times, 0, begin + 1);
    }
    if (end > kernel::load(times, 1)) {
        kernel::store(times, 1, end);
    }
}

template <typename Kernel> PTO_AICORE PTO_INLINE void run(kernel::Args args, Kernel function) {
#ifdef __DAV_CUBE__
    constexpr bool is_vector = false;
#else
    constexpr bool is_vector = true;
#endif
    const PTO_GM Frame *const frame = args.gm<Frame>(0);
    const kernel::Block block(args.word(frame->block_word));
    Conditions conditions;
    conditions.count = 0, conditions.error = 0;
    LocalContext local = {static_cast<int32_t>(block.number), static_cast<int32_t>(block.count), reinterpret_cast<uint64_t>(&conditions.count),
                          reinterpret_cast<uint64_t>(&conditions.error), reinterpret_cast<uint64_t>(&conditions.list), 64, 0, frame->task};
    GlobalContext global = {is_vector ? static_cast<int32_t>(block.lane) : 0, 0, {0, 0}};
    int64_t words[WORDS];
    for (int at = 0; at < WORDS; ++at) {
        words[at] = 0;
    }
    arguments(words, frame);
    words[LOCAL] = static_cast<int64_t>(reinterpret_cast<uint64_t>(&local));
    words[GLOBAL] = static_cast<int64_t>(reinterpret_cast<uint64_t>(&global));
    const bool is_timed = frame->timing_slot >= 0;
    const uint64_t begin = is_timed ? get_sys_cnt() : 0;
    function(reinterpret_cast<PTO_GM int64_t *>(words));
    PTO_GM uint32_t *const state = reinterpret_cast<PTO_GM uint32_t *>(frame->shared);
    const uint32_t failed = complete(conditions);
    if (failed != 0 && kernel::load(state, FAILED) == 0) {
        kernel::store(state, FAILED, failed);
    }
    if (is_timed) {
        widen(reinterpret_cast<PTO_GM uint64_t *>(state) + TIMING + 2 * frame->timing_slot, begin * NS_A_TICK, get_sys_cnt() * NS_A_TICK);
    }
}

} // namespace field

#define PTO_FIELD_KERNEL(function)                                                                                     \
    PTO_KERNEL(args) { field::run(args, function); }
#endif

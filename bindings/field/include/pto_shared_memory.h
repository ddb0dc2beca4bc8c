// Programs of February 2026 include this next to pto_runtime2.h. The memory that it is about is the runtime's own here.
#ifndef PTO_SHARED_MEMORY_H
#define PTO_SHARED_MEMORY_H

#include "pto_runtime2.h"

// In the first days of February 2026 a program made its runtime itself, in memory that it had been given.
enum PTO2RuntimeMode { PTO2_MODE_EXECUTE = 0 };

inline int32_t pto2_sm_calculate_size(int32_t, int32_t) { return sizeof(PTO2SharedMemoryHeader); }
inline PTO2SharedMemoryHandle *pto2_sm_create_from_buffer(void *memory, int32_t, int32_t, int32_t, int32_t) {
    static PTO2SharedMemoryHandle handle;
    handle.header = static_cast<PTO2SharedMemoryHeader *>(memory);
    return &handle;
}
inline void pto2_sm_destroy(PTO2SharedMemoryHandle *) {}
inline PTO2Runtime *pto2_runtime_create_from_sm(PTO2RuntimeMode, PTO2SharedMemoryHandle *memory, void *, int32_t) {
    static PTO2Runtime runtime;
    runtime.sm_handle = memory;
    return &runtime;
}
inline void pto2_runtime_destroy(PTO2Runtime *) {}

#endif  // PTO_SHARED_MEMORY_H

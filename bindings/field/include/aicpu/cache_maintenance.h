// Cache maintenance of the control core. On this machine all memory is coherent, so that there is nothing to do.
#ifndef PTO_FIELD_CACHE_MAINTENANCE_H
#define PTO_FIELD_CACHE_MAINTENANCE_H

#include <atomic>
#include <stddef.h>

inline void cache_flush_range(const void *, size_t) { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void cache_invalidate_range(const void *, size_t) { std::atomic_thread_fence(std::memory_order_seq_cst); }

#endif  // PTO_FIELD_CACHE_MAINTENANCE_H

// A barrier over all pipes of a core. Here a kernel runs in the order of its statements.
#ifndef PTO_FIELD_PIPE_SYNC_H
#define PTO_FIELD_PIPE_SYNC_H

#include <atomic>

inline void pipe_sync() { std::atomic_thread_fence(std::memory_order_seq_cst); }

#endif  // PTO_FIELD_PIPE_SYNC_H

// See graph.h.
#pragma once
#include <dispenso/thread_pool.h>

namespace dispenso {
struct ConcurrentTaskSet {
    explicit ConcurrentTaskSet(ThreadPool &) {}
};
} // namespace dispenso

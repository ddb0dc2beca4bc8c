// See graph.h.
#pragma once
#include <cstddef>

namespace dispenso {
struct ThreadPool {
    explicit ThreadPool(std::size_t) {}
};
} // namespace dispenso

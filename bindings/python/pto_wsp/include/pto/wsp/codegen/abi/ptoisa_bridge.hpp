// Tiles and global tensors for kernels in C++ that run on this machine, with the cycles of the v9 clock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "pto/wsp/codegen/abi/kernel_abi.hpp"

namespace pto {

constexpr int DYNAMIC = -1;

enum class Layout { ND, DN, NZ };
enum class TileType { Vec, Mat, Left, Right, Acc };
enum class BLayout { RowMajor, ColMajor };

namespace cpu_sim {
inline uint64_t& counter() {
  thread_local uint64_t cycles = 0;
  return cycles;
}
inline void add_cycles(uint64_t cycles) { counter() += cycles; }
inline uint64_t take_cycles() {
  const uint64_t cycles = counter();
  counter() = 0;
  return cycles;
}
}  // namespace cpu_sim

// Rows and columns; the leading extents are 1.
template <int... Extents>
struct Shape {
  int64_t rows, cols;
  Shape(int64_t rows, int64_t cols) : rows(rows), cols(cols) {}
};

template <int... Steps>
struct Stride {
  int64_t row, col;
  Stride(int64_t row, int64_t col) : row(row), col(col) {}
};

template <typename T, typename ShapeOf, typename StrideOf, Layout layout = Layout::ND>
class GlobalTensor {
 public:
  GlobalTensor(T* first, ShapeOf shape, StrideOf stride) : first_(first), shape_(shape), stride_(stride) {}
  T& at(int64_t row, int64_t col) const { return first_[row * stride_.row + col * stride_.col]; }
  int64_t rows() const { return shape_.rows; }
  int64_t cols() const { return shape_.cols; }

 private:
  T* first_;
  ShapeOf shape_;
  StrideOf stride_;
};

template <TileType kind, typename T, int Rows, int Cols, BLayout layout = BLayout::RowMajor, int ValidRows = Rows,
          int ValidCols = Cols>
class Tile {
 public:
  Tile() : Tile(Rows, Cols) {}
  Tile(size_t rows, size_t cols) : rows_(rows), cols_(cols), elements_(size_t(Rows) * Cols) {}
  T* data() { return elements_.data(); }
  const T* data() const { return elements_.data(); }
  T& at(int64_t row, int64_t col) {
    return elements_[layout == BLayout::RowMajor ? row * Cols + col : col * Rows + row];
  }
  int64_t rows() const { return int64_t(rows_); }
  int64_t cols() const { return int64_t(cols_); }

 private:
  size_t rows_, cols_;
  std::vector<T> elements_;
};

}  // namespace pto

namespace pto_wsp {
namespace ptoisa {

template <typename TileOf, typename Global>
void TLOAD(TileOf& tile, const Global& from) {
  for (int64_t row = 0; row < tile.rows(); ++row)
    for (int64_t col = 0; col < tile.cols(); ++col) tile.at(row, col) = from.at(row, col);
  pto::cpu_sim::add_cycles(uint64_t(tile.rows() * tile.cols()));
}

template <typename Global, typename TileOf>
void TSTORE(Global& to, TileOf& tile) {
  for (int64_t row = 0; row < tile.rows(); ++row)
    for (int64_t col = 0; col < tile.cols(); ++col) to.at(row, col) = tile.at(row, col);
  pto::cpu_sim::add_cycles(uint64_t(tile.rows() * tile.cols()));
}

// Pairs of score and index, descending; of equal scores the smaller index first.
template <typename Pairs, typename Scores, typename Indices>
void TSORT32(Pairs& pairs, Scores& scores, Indices& indices) {
  const size_t count = size_t(scores.cols());
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto x = scores.data()[a], y = scores.data()[b];
    return x != y ? x > y : indices.data()[a] < indices.data()[b];
  });
  for (size_t place = 0; place < count; ++place) {
    pairs.data()[2 * place] = scores.data()[order[place]];
    pairs.data()[2 * place + 1] = float(indices.data()[order[place]]);
  }
  pto::cpu_sim::add_cycles(5 * count);
}

}  // namespace ptoisa
}  // namespace pto_wsp

// Tiles and global tensors for kernels in C++ that run on this machine, with the cycles of the v9 clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>
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
  const int64_t rows = std::min(tile.rows(), to.rows()), cols = std::min(tile.cols(), to.cols());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col) to.at(row, col) = tile.at(row, col);
  pto::cpu_sim::add_cycles(uint64_t(rows * cols));
}

// Each element of a tile that counts, and its cost.
template <typename Out, typename Function>
void each(Out& out, Function function) {
  using Element = typename std::remove_reference<decltype(out.at(0, 0))>::type;
  for (int64_t row = 0; row < out.rows(); ++row)
    for (int64_t col = 0; col < out.cols(); ++col) out.at(row, col) = static_cast<Element>(function(row, col));
  pto::cpu_sim::add_cycles(uint64_t(out.rows() * out.cols()));
}

template <typename Vector>
auto along(Vector& vector, int64_t place) {
  return vector.cols() == 1 ? vector.at(place, 0) : vector.at(0, place);
}

// A function of pairs: of two tiles, of a tile and a scalar, of a scalar and a tile, of a tile and a vector.
#define PTO_WSP_PAIRS(NAME, EXPRESSION)                                                             \
  template <typename T>                                                                             \
  T pair_##NAME(T a, T b) {                                                                         \
    return static_cast<T>(EXPRESSION);                                                              \
  }                                                                                                 \
  template <typename Out, typename A, typename B>                                                   \
  void T##NAME(Out& out, A& a, B& b) {                                                              \
    each(out, [&](int64_t r, int64_t c) { return pair_##NAME(a.at(r, c), b.at(r, c)); });           \
  }                                                                                                 \
  template <typename Out, typename A, typename T>                                                   \
  void T##NAME##S(Out& out, A& a, T s) {                                                            \
    each(out, [&](int64_t r, int64_t c) { return pair_##NAME(a.at(r, c), s); });                    \
  }                                                                                                 \
  template <typename Out, typename T, typename B>                                                   \
  void TS##NAME(Out& out, T s, B& b) {                                                              \
    each(out, [&](int64_t r, int64_t c) { return pair_##NAME(s, b.at(r, c)); });                    \
  }                                                                                                 \
  template <typename Out, typename A, typename V>                                                   \
  void TROWEXPAND##NAME(Out& out, A& a, V& v) {                                                     \
    each(out, [&](int64_t r, int64_t c) { return pair_##NAME(a.at(r, c), along(v, r)); });          \
  }                                                                                                 \
  template <typename Out, typename A, typename V>                                                   \
  void TCOLEXPAND##NAME(Out& out, A& a, V& v) {                                                     \
    each(out, [&](int64_t r, int64_t c) { return pair_##NAME(a.at(r, c), along(v, c)); });          \
  }
PTO_WSP_PAIRS(ADD, a + b)
PTO_WSP_PAIRS(SUB, a - b)
PTO_WSP_PAIRS(MUL, a * b)
PTO_WSP_PAIRS(DIV, a / b)
PTO_WSP_PAIRS(MAX, std::max(a, b))
PTO_WSP_PAIRS(MIN, std::min(a, b))
#undef PTO_WSP_PAIRS

// A function of each element, in double precision and rounded once.
#define PTO_WSP_FUNCTION(NAME, EXPRESSION)                    \
  template <typename Out, typename X>                         \
  void T##NAME(Out& out, X& tile) {                           \
    each(out, [&](int64_t r, int64_t c) {                     \
      const double x = static_cast<double>(tile.at(r, c));    \
      return EXPRESSION;                                      \
    });                                                       \
  }
PTO_WSP_FUNCTION(EXP, std::exp(x))
PTO_WSP_FUNCTION(LOG, std::log(x))
PTO_WSP_FUNCTION(SQRT, std::sqrt(x))
PTO_WSP_FUNCTION(RSQRT, 1 / std::sqrt(x))
PTO_WSP_FUNCTION(TANH, std::tanh(x))
PTO_WSP_FUNCTION(SIN, std::sin(x))
PTO_WSP_FUNCTION(COS, std::cos(x))
PTO_WSP_FUNCTION(SIGMOID, 1 / (1 + std::exp(-x)))
PTO_WSP_FUNCTION(SILU, x / (1 + std::exp(-x)))
PTO_WSP_FUNCTION(RELU, x > 0 ? x : 0.0)
PTO_WSP_FUNCTION(NEG, -x)
PTO_WSP_FUNCTION(ABS, std::fabs(x))
PTO_WSP_FUNCTION(GELU, x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))))
#undef PTO_WSP_FUNCTION

// A copy, and a conversion.
template <typename Out, typename X>
void TMOV(Out& out, X& x) {
  each(out, [&](int64_t r, int64_t c) { return x.at(r, c); });
}
template <typename Out, typename X>
void TCVT(Out& out, X& x) {
  TMOV(out, x);
}

// One element for each row or column; sums are kept in double precision.
#define PTO_WSP_REDUCTION(NAME, START, STEP)                                       \
  template <typename Out, typename X>                                              \
  void TROW##NAME(Out& out, X& x) {                                                \
    each(out, [&](int64_t r, int64_t) {                                            \
      double found = START;                                                        \
      for (int64_t c = 0; c < x.cols(); ++c) STEP(found, double(x.at(r, c)));      \
      return found;                                                                \
    });                                                                            \
  }                                                                                \
  template <typename Out, typename X>                                              \
  void TCOL##NAME(Out& out, X& x) {                                                \
    each(out, [&](int64_t, int64_t c) {                                            \
      double found = START;                                                        \
      for (int64_t r = 0; r < x.rows(); ++r) STEP(found, double(x.at(r, c)));      \
      return found;                                                                \
    });                                                                            \
  }
inline void add_to(double& found, double x) { found += x; }
inline void raise_to(double& found, double x) { found = std::max(found, x); }
PTO_WSP_REDUCTION(SUM, 0.0, add_to)
PTO_WSP_REDUCTION(MAX, -HUGE_VAL, raise_to)
#undef PTO_WSP_REDUCTION

// A sum, and a division.
template <typename Out, typename X>
void TROWMEAN(Out& out, X& x) {
  TROWSUM(out, x);
  TDIVS(out, out, static_cast<typename std::remove_reference<decltype(out.at(0, 0))>::type>(x.cols()));
}

// A product, plus what is in `out` where `with` is 1.
template <typename Out, typename A, typename B>
void TMATMUL(Out& out, A& a, B& b, int with = 0) {
  using Element = typename std::remove_reference<decltype(out.at(0, 0))>::type;
  for (int64_t r = 0; r < out.rows(); ++r)
    for (int64_t c = 0; c < out.cols(); ++c) {
      double sum = with ? double(out.at(r, c)) : 0.0;
      for (int64_t k = 0; k < a.cols(); ++k) sum += double(a.at(r, k)) * double(b.at(k, c));
      out.at(r, c) = static_cast<Element>(sum);
    }
  pto::cpu_sim::add_cycles(uint64_t(out.rows() * out.cols() * a.cols()));
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

// The row 0, 1, .., and the indices of the first pairs: they cost nothing.
template <typename Out>
void TCI(Out& out) {
  for (int64_t col = 0; col < out.cols(); ++col) out.at(0, col) = static_cast<uint32_t>(col);
}
template <typename Out, typename Pairs>
void TTOPK(Out& out, Pairs& pairs) {
  for (int64_t col = 0; col < out.cols(); ++col) out.at(0, col) = static_cast<int32_t>(pairs.at(0, 2 * col + 1));
}

}  // namespace ptoisa

// The tile of a task's tensor, with the rows and columns that count.
template <typename T>
auto global(const KernelTaskDesc* task, uint32_t tensor) {
  using Shape = pto::Shape<1, 1, 1, pto::DYNAMIC, pto::DYNAMIC>;
  using Stride = pto::Stride<1, 1, 1, pto::DYNAMIC, pto::DYNAMIC>;
  const uint64_t* counted = task->args + task->num_axis_args - 2 * task->num_tensors + 2 * tensor;
  const uint64_t* steps = task->tensor_strides + 2 * tensor;
  return pto::GlobalTensor<T, Shape, Stride>(
      static_cast<T*>(task->tensor_ptrs[tensor]), Shape(int64_t(counted[0]), int64_t(counted[1])),
      Stride(int64_t(steps[0]), int64_t(steps[1])));
}

template <typename T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// A scalar argument of a task: the bits of its type.
template <typename T>
T scalar(const KernelTaskDesc* task, uint32_t number) {
  return from_bits<T>(task->args[task->num_axis_args + number]);
}

}  // namespace pto_wsp

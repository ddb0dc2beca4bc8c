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
#include <utility>
#include <vector>

#include "pto/wsp/codegen/abi/elements.hpp"
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
  // The same rows and columns, from another place on.
  GlobalTensor from(int64_t row, int64_t col) const { return GlobalTensor(&at(row, col), shape_, stride_); }
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
void TSTORE(const Global& to, TileOf& tile) {
  const int64_t rows = std::min(tile.rows(), to.rows()), cols = std::min(tile.cols(), to.cols());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col) to.at(row, col) = tile.at(row, col);
  pto::cpu_sim::add_cycles(uint64_t(rows * cols));
}

// Requires that as much counts of a tile as of another one, or of a view. Whether the task has a result up to here.
template <typename TileOf, typename Of>
bool covers(TileOf& tile, const Of& other) {
  pto::cpu_sim::require(tile.rows() >= other.rows() && tile.cols() >= other.cols());
  return !pto::cpu_sim::refusal();
}

// Where a mask is not 0; elsewhere a tile gets 0, and a tensor keeps what it has.
template <typename TileOf, typename Global, typename Mask>
void TLOAD_MASKED(TileOf& tile, const Global& from, Mask& mask) {
  covers(mask, from);
  for (int64_t row = 0; row < tile.rows(); ++row)
    for (int64_t col = 0; col < tile.cols(); ++col)
      if (mask.at(row, col) != 0) tile.at(row, col) = from.at(row, col);
  pto::cpu_sim::add_cycles(uint64_t(tile.rows() * tile.cols()));
}
template <typename Global, typename TileOf, typename Mask>
void TSTORE_MASKED(const Global& to, TileOf& tile, Mask& mask) {
  if (!covers(mask, to)) return;
  for (int64_t row = 0; row < to.rows(); ++row)
    for (int64_t col = 0; col < to.cols(); ++col)
      if (mask.at(row, col) != 0) to.at(row, col) = tile.at(row, col);
  pto::cpu_sim::add_cycles(uint64_t(to.rows() * to.cols()));
}

template <typename TileOf>
using ElementOf = typename std::remove_reference<decltype(std::declval<TileOf&>().at(0, 0))>::type;

// Each element of a tile that counts, and its cost.
template <typename Out, typename Function>
void each(Out& out, Function function) {
  for (int64_t row = 0; row < out.rows(); ++row)
    for (int64_t col = 0; col < out.cols(); ++col) out.at(row, col) = static_cast<ElementOf<Out>>(function(row, col));
  pto::cpu_sim::add_cycles(uint64_t(out.rows() * out.cols()));
}

template <typename Vector>
auto along(Vector& vector, int64_t place) {
  return vector.cols() == 1 ? vector.at(place, 0) : vector.at(0, place);
}

// The element of a tile that has one.
template <typename TileOf>
ElementOf<TileOf> only(TileOf& tile) {
  pto::cpu_sim::require(tile.rows() * tile.cols() >= 1);
  return tile.at(0, 0);
}

// A function of pairs: of two tiles, of a tile and a scalar, of a scalar and a tile, of a tile and a vector.
#define PTO_WSP_PAIRS(NAME, FUNCTION)                                                                      \
  template <typename Out, typename A, typename B>                                                          \
  void T##NAME(Out& out, A& a, B& b) {                                                                     \
    using T = ElementOf<A>;                                                                                \
    each(out, [&](int64_t r, int64_t c) { return elements::FUNCTION<T>(a.at(r, c), b.at(r, c)); });        \
  }                                                                                                        \
  template <typename Out, typename A, typename S>                                                          \
  void T##NAME##S(Out& out, A& a, S s) {                                                                   \
    using T = ElementOf<A>;                                                                                \
    each(out, [&](int64_t r, int64_t c) { return elements::FUNCTION<T>(a.at(r, c), static_cast<T>(s)); }); \
  }                                                                                                        \
  template <typename Out, typename S, typename B>                                                          \
  void TS##NAME(Out& out, S s, B& b) {                                                                     \
    using T = ElementOf<B>;                                                                                \
    each(out, [&](int64_t r, int64_t c) { return elements::FUNCTION<T>(static_cast<T>(s), b.at(r, c)); }); \
  }                                                                                                        \
  template <typename Out, typename A, typename V>                                                          \
  void TROWEXPAND##NAME(Out& out, A& a, V& v) {                                                            \
    using T = ElementOf<A>;                                                                                \
    pto::cpu_sim::require(v.rows() * v.cols() >= a.rows());                                                \
    each(out, [&](int64_t r, int64_t c) { return elements::FUNCTION<T>(a.at(r, c), along(v, r)); });       \
  }                                                                                                        \
  template <typename Out, typename A, typename V>                                                          \
  void TCOLEXPAND##NAME(Out& out, A& a, V& v) {                                                            \
    using T = ElementOf<A>;                                                                                \
    pto::cpu_sim::require(v.rows() * v.cols() >= a.cols());                                                \
    each(out, [&](int64_t r, int64_t c) { return elements::FUNCTION<T>(a.at(r, c), along(v, c)); });       \
  }
PTO_WSP_PAIRS(ADD, add)
PTO_WSP_PAIRS(SUB, sub)
PTO_WSP_PAIRS(MUL, mul)
PTO_WSP_PAIRS(DIV, div)
PTO_WSP_PAIRS(MAX, larger)
PTO_WSP_PAIRS(MIN, smaller)
// 1 where it holds, 0 elsewhere.
PTO_WSP_PAIRS(LT, less)
PTO_WSP_PAIRS(LE, less_equal)
PTO_WSP_PAIRS(GT, greater)
PTO_WSP_PAIRS(GE, greater_equal)
PTO_WSP_PAIRS(EQ, equal)
PTO_WSP_PAIRS(NE, not_equal)
#undef PTO_WSP_PAIRS

// A function of each element.
#define PTO_WSP_FUNCTION(NAME, FUNCTION)                                                       \
  template <typename Out, typename X>                                                          \
  void T##NAME(Out& out, X& x) {                                                               \
    each(out, [&](int64_t r, int64_t c) { return elements::FUNCTION<ElementOf<X>>(x.at(r, c)); }); \
  }
PTO_WSP_FUNCTION(MOV, copy)
PTO_WSP_FUNCTION(EXP, exp)
PTO_WSP_FUNCTION(LOG, log)
PTO_WSP_FUNCTION(SQRT, sqrt)
PTO_WSP_FUNCTION(RSQRT, rsqrt)
PTO_WSP_FUNCTION(TANH, tanh)
PTO_WSP_FUNCTION(SIN, sin)
PTO_WSP_FUNCTION(COS, cos)
PTO_WSP_FUNCTION(SIGMOID, sigmoid)
PTO_WSP_FUNCTION(SILU, silu)
PTO_WSP_FUNCTION(RELU, relu)
PTO_WSP_FUNCTION(NEG, neg)
PTO_WSP_FUNCTION(ABS, abs)
PTO_WSP_FUNCTION(GELU, gelu)
#undef PTO_WSP_FUNCTION

// Another element type.
template <typename Out, typename X>
void TCVT(Out& out, X& x) {
  each(out, [&](int64_t r, int64_t c) { return cast<ElementOf<Out>>(x.at(r, c)); });
}

// `a` where the mask is not 0, else `b`.
template <typename Out, typename Mask, typename A, typename B>
void TSEL(Out& out, Mask& mask, A& a, B& b) {
  each(out, [&](int64_t r, int64_t c) { return mask.at(r, c) != 0 ? a.at(r, c) : b.at(r, c); });
}

// Every second column, from `first` on; columns of two tiles in turn; what has one row or column, repeated.
template <typename Out, typename X>
void TSLICE(Out& out, X& x, int first) {
  each(out, [&](int64_t r, int64_t c) { return x.at(r, 2 * c + first); });
}
template <typename Out, typename A, typename B>
void TINTERLEAVE(Out& out, A& a, B& b) {
  each(out, [&](int64_t r, int64_t c) { return c % 2 == 0 ? a.at(r, c / 2) : b.at(r, c / 2); });
}
template <typename Out, typename X>
void TEXPAND(Out& out, X& x) {
  each(out, [&](int64_t r, int64_t c) { return x.at(x.rows() == 1 ? 0 : r, x.cols() == 1 ? 0 : c); });
}
template <typename Out, typename S>
void TEXPANDS(Out& out, S s) {
  each(out, [&](int64_t, int64_t) { return s; });
}

// A row is added in eight sums, element `i` to sum `i % 8`, and the sums as a balanced tree; a column from the top to the bottom.
template <typename S, typename X>
elements::SumOf<S> row_sum(X& x, int64_t row) {
  using Sum = elements::SumOf<S>;
  Sum s[8] = {};
  for (int64_t c = 0; c < x.cols(); ++c) s[c % 8] = elements::add<Sum>(s[c % 8], Sum(cast<S>(x.at(row, c))));
  const auto add = [](Sum a, Sum b) { return elements::add<Sum>(a, b); };
  return add(add(add(s[0], s[4]), add(s[2], s[6])), add(add(s[1], s[5]), add(s[3], s[7])));
}

template <typename Out, typename X>
void TROWSUM(Out& out, X& x) {
  using S = ElementOf<Out>;
  each(out, [&](int64_t r, int64_t) { return S(row_sum<S>(x, r)); });
}
// What takes a sum and a division.
template <typename Out, typename X>
void TROWMEAN(Out& out, X& x) {
  using S = ElementOf<Out>;
  each(out, [&](int64_t r, int64_t) {
    const auto term = [&](int64_t c) { return elements::SumOf<S>(cast<S>(x.at(r, c))); };
    return S(elements::mean(row_sum<S>(x, r), x.cols(), term));
  });
  pto::cpu_sim::add_cycles(uint64_t(out.rows()));
}
template <typename Out, typename X>
void TCOLSUM(Out& out, X& x) {
  using S = ElementOf<Out>;
  using Sum = elements::SumOf<S>;
  each(out, [&](int64_t, int64_t c) {
    Sum sum = 0;
    for (int64_t r = 0; r < x.rows(); ++r) sum = elements::add<Sum>(sum, Sum(cast<S>(x.at(r, c))));
    return S(sum);
  });
}

// The largest one: of a row in eight lanes, of which the last elements of the row begin.
template <typename Out, typename X>
void TROWMAX(Out& out, X& x) {
  using T = ElementOf<X>;
  each(out, [&](int64_t r, int64_t) {
    T lanes[8], most = elements::lowest<T>();
    std::fill_n(lanes, 8, most);
    const int64_t whole = x.cols() / 8 * 8;
    for (int64_t c = 0; c < whole; ++c) lanes[c % 8] = elements::larger<T>(lanes[c % 8], x.at(r, c));
    for (int64_t c = whole; c < x.cols(); ++c) most = elements::larger<T>(most, x.at(r, c));
    for (const T lane : lanes) most = elements::larger<T>(most, lane);
    return cast<ElementOf<Out>>(most);
  });
}
template <typename Out, typename X>
void TCOLMAX(Out& out, X& x) {
  using T = ElementOf<X>;
  each(out, [&](int64_t, int64_t c) {
    T most = elements::lowest<T>();
    for (int64_t r = 0; r < x.rows(); ++r) most = elements::larger<T>(most, x.at(r, c));
    return cast<ElementOf<Out>>(most);
  });
}

// A product, to which what is in `acc` is added at the end.
template <typename Out, typename A, typename B, typename Start>
void product(Out& out, A& a, B& b, Start start) {
  using S = ElementOf<Out>;
  using Sum = elements::SumOf<S>;
  pto::cpu_sim::require(a.cols() == b.rows());
  for (int64_t r = 0; r < out.rows(); ++r)
    for (int64_t c = 0; c < out.cols(); ++c) {
      Sum sum = 0;
      for (int64_t k = 0; k < a.cols(); ++k)
        sum = elements::add<Sum>(sum, elements::mul<Sum>(Sum(cast<S>(a.at(r, k))), Sum(cast<S>(b.at(k, c)))));
      out.at(r, c) = S(start(r, c, sum));
    }
  pto::cpu_sim::add_cycles(uint64_t(out.rows() * out.cols() * a.cols()));
}
template <typename Out, typename A, typename B>
void TMATMUL(Out& out, A& a, B& b) {
  product(out, a, b, [](int64_t, int64_t, auto sum) { return sum; });
}
template <typename Out, typename Acc, typename A, typename B>
void TMATMUL_ACC(Out& out, Acc& acc, A& a, B& b) {
  covers(acc, out);
  product(out, a, b, [&](int64_t r, int64_t c, auto sum) {
    using Sum = decltype(sum);
    return elements::add<Sum>(Sum(acc.at(r, c)), sum);
  });
}

// Pairs of score and index, descending, NaN first; of equal scores the smaller index first. In a tile of 32 pairs what does not count comes
// last, as minus infinity.
template <typename Pairs, typename Scores, typename Indices>
void TSORT32(Pairs& pairs, Scores& scores, Indices& indices) {
  const size_t count = size_t(std::min(scores.cols(), indices.cols()));
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const auto x = scores.data()[a], y = scores.data()[b];
    if ((x != x) != (y != y)) return x != x;
    return x > y || x < y ? x > y : indices.data()[a] < indices.data()[b];
  });
  for (size_t place = 0; place < count; ++place) {
    pairs.data()[2 * place] = scores.data()[order[place]];
    pairs.data()[2 * place + 1] = float(indices.data()[order[place]]);
  }
  for (size_t place = count; 2 * place + 1 < size_t(pairs.cols()); ++place) {
    pairs.data()[2 * place] = -HUGE_VALF;
    pairs.data()[2 * place + 1] = float(UINT32_MAX);
  }
  pto::cpu_sim::add_cycles(5 * size_t(scores.rows() * scores.cols()));
}

// The row 0, 1, .., and the indices of the first pairs: they cost nothing.
template <typename Out>
void TCI(Out& out) {
  for (int64_t col = 0; col < out.cols(); ++col) out.at(0, col) = cast<ElementOf<Out>>(uint64_t(col));
}
template <typename Out, typename Pairs>
void TTOPK(Out& out, Pairs& pairs) {
  for (int64_t col = 0; col < out.cols(); ++col) {
    const float index = pairs.at(0, 2 * col + 1);
    // Up to here a float holds every integer.
    pto::cpu_sim::require(index >= 0 && index <= 16777216.0f);
    out.at(0, col) = cast<int32_t>(index);
  }
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

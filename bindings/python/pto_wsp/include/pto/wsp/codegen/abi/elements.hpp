// Functions of elements and of pairs of elements, on this machine: those of the tile machine, with its bits. Half precision is computed in
// floats; integers wrap.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "pto/wsp/codegen/abi/functions.hpp"
#include "pto/wsp/codegen/abi/half.hpp"

namespace pto {
namespace cpu_sim {
// Whether the task that runs has no result: a divisor is zero, a tile does not cover another one, an index is none.
inline bool& refusal() {
  thread_local bool is_refused = false;
  return is_refused;
}
inline void require(bool holds) {
  if (!holds) refusal() = true;
}
inline bool take_refusal() {
  const bool is_refused = refusal();
  refusal() = false;
  return is_refused;
}
}  // namespace cpu_sim
}  // namespace pto

namespace pto_wsp {
namespace elements {

#define PTO_WSP_SUM(NAME, SIGN)                                                     \
  template <typename T>                                                             \
  T NAME(T a, T b) {                                                                \
    if constexpr (std::is_integral<T>::value) return T(uint64_t(a) SIGN uint64_t(b)); \
    else return T(WideOf<T>(a) SIGN WideOf<T>(b));                                  \
  }
PTO_WSP_SUM(add, +)
PTO_WSP_SUM(sub, -)
PTO_WSP_SUM(mul, *)
#undef PTO_WSP_SUM

template <typename T>
T div(T a, T b) {
  if constexpr (std::is_integral<T>::value) {
    pto::cpu_sim::require(b != 0);
    if (b == 0) return 0;
    if (std::is_signed<T>::value && b == T(-1)) return T(0 - uint64_t(a));
    return T(a / b);
  } else {
    return T(WideOf<T>(a) / WideOf<T>(b));
  }
}

// The larger and the smaller one; NaN if one is.
template <typename T>
T larger(T a, T b) {
  const WideOf<T> x = a, y = b;
  return y > x || y != y ? b : a;
}
template <typename T>
T smaller(T a, T b) {
  const WideOf<T> x = a, y = b;
  return y < x || y != y ? b : a;
}

#define PTO_WSP_COMPARISON(NAME, SIGN)                      \
  template <typename T>                                     \
  uint8_t NAME(T a, T b) {                                  \
    return WideOf<T>(a) SIGN WideOf<T>(b) ? 1 : 0;          \
  }
PTO_WSP_COMPARISON(less, <)
PTO_WSP_COMPARISON(less_equal, <=)
PTO_WSP_COMPARISON(greater, >)
PTO_WSP_COMPARISON(greater_equal, >=)
PTO_WSP_COMPARISON(equal, ==)
PTO_WSP_COMPARISON(not_equal, !=)
#undef PTO_WSP_COMPARISON

template <typename T>
T copy(T x) {
  return x;
}
template <typename T>
T neg(T x) {
  if constexpr (std::is_integral<T>::value) return T(0 - uint64_t(x));
  else return T(-WideOf<T>(x));
}
template <typename T>
T abs(T x) {
  if constexpr (std::is_integral<T>::value) return x < T(0) ? neg(x) : x;
  else return T(std::fabs(WideOf<T>(x)));
}
template <typename T>
T relu(T x) {
  return larger(x, T(0));
}

// In double precision, and rounded once to what is computed in.
#define PTO_WSP_REAL(NAME, LONG, SHORT)                                       \
  template <typename T>                                                       \
  T NAME(T element) {                                                         \
    const double x = double(WideOf<T>(element));                              \
    return T(WideOf<T>(sizeof(T) <= sizeof(float) ? SHORT : LONG));           \
  }
PTO_WSP_REAL(exp, functions::exp(x), functions::exp(x))
PTO_WSP_REAL(log, functions::log(x), functions::log_for_float(x))
PTO_WSP_REAL(sqrt, std::sqrt(x), std::sqrt(x))
PTO_WSP_REAL(rsqrt, 1 / std::sqrt(x), 1 / std::sqrt(x))
PTO_WSP_REAL(tanh, functions::tanh(x), functions::tanh_for_float(x))
PTO_WSP_REAL(sigmoid, functions::sigmoid(x), functions::sigmoid(x))
PTO_WSP_REAL(silu, functions::silu(x), functions::silu(x))
PTO_WSP_REAL(gelu, functions::gelu(x), functions::gelu(x))
#undef PTO_WSP_REAL

// Of what is large, half precision is rounded from the double itself.
#define PTO_WSP_TURNS(NAME)                                                   \
  template <typename T>                                                       \
  T NAME(T element) {                                                         \
    const double x = double(WideOf<T>(element)), found = functions::NAME(x);  \
    return functions::is_large(x) ? T(found) : T(WideOf<T>(found));           \
  }
PTO_WSP_TURNS(sin)
PTO_WSP_TURNS(cos)
#undef PTO_WSP_TURNS

// What sums are kept in while they grow: floats in double precision, integers in the type of the sum.
template <typename S>
using SumOf = typename std::conditional<std::is_integral<S>::value, S, double>::type;

// The mean of so many terms, which `term` gives, and of which `sum` is the sum. It does not overflow where the sum does; of integers towards
// zero, and 0 for a count that the type does not have.
template <typename Sum, typename Term>
Sum mean(Sum sum, int64_t count, Term term) {
  if constexpr (std::is_integral<Sum>::value) {
    if (count == 0 || int64_t(Sum(count)) != count || Sum(count) < 0) return 0;
    __int128 exact = 0;
    for (int64_t at = 0; at < count; ++at) exact += term(at);
    return Sum(exact / count);
  } else {
    const double scale = 18446744073709551616.0, largest = std::numeric_limits<double>::max();
    const double short_mean = sum / double(count);
    if (std::isfinite(short_mean)) return short_mean;
    double scaled = 0;
    for (int64_t at = 0; at < count; ++at) scaled += term(at) / scale;
    scaled /= double(count);
    return std::isfinite(scaled) ? std::fmax(-largest, std::fmin(scaled * scale, largest)) : scaled;
  }
}

// What is not larger than any element: minus infinity, or the smallest integer.
template <typename T>
T lowest() {
  return cast<T>(-HUGE_VAL);
}

}  // namespace elements
}  // namespace pto_wsp

// Half precision on this machine, where a compiler for AICores has these types, and conversions between all element types.
// They give the bits of the tile machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace pto_wsp {

// The value of the same bits.
template <typename To, typename From>
To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the types differ in size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// A float from which rounding to fewer bits gives what rounding `value` itself would give: what does not fit is kept as an odd
// last bit.
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const uint32_t bits = same_bits<uint32_t>(nearest);
  if (double(nearest) == value || std::isnan(value) || std::isinf(nearest) || (bits & 1) != 0) return nearest;
  return same_bits<float>(std::fabs(double(nearest)) > std::fabs(value) ? bits - 1 : bits + 1);
}

// A number as a double that rounds to half precision as the number does: of an integer with more bits than a double has, the lowest are kept as
// an odd bit.
template <typename Number>
double as_double(Number number) {
  if constexpr (std::is_integral<Number>::value && sizeof(Number) == 8) {
    const uint64_t bits = uint64_t(number), lowest = (1 << 11) - 1;
    const uint64_t magnitude = number < 0 ? 0 - bits : bits;
    if (magnitude >= uint64_t(1) << 53) return double(Number((bits & ~lowest) | ((bits & lowest) != 0 ? lowest + 1 : 0)));
  }
  return double(number);
}

// IEEE half precision.
struct HalfBits {
  static uint16_t from(float single) {
    const uint32_t bits = same_bits<uint32_t>(single), magnitude = bits & 0x7FFFFFFF;
    const uint32_t sign = (bits >> 16) & 0x8000, odd = (magnitude >> 13) & 1;
    if (magnitude >= (127u + 16) << 23)
      return uint16_t(sign | (magnitude > 0x7F800000 ? ((magnitude >> 13) & 0x01FF) | 0x7E00 : 0x7C00));
    if (magnitude >= (127u - 14) << 23) return uint16_t(sign | ((magnitude - (112u << 23) + 0x0FFF + odd) >> 13));
    return uint16_t(sign | (same_bits<uint32_t>(same_bits<float>(magnitude) + 0.5f) - (126u << 23)));
  }
  static float to(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16, magnitude = (half & 0x7FFFu) << 13;
    const uint32_t quiet = (half & 0x7FFF) > 0x7C00 ? 0x00400000 : 0;
    const bool is_special = (half & 0x7C00) == 0x7C00;
    const uint32_t finite = same_bits<uint32_t>(same_bits<float>(magnitude) * same_bits<float>((127u + 112) << 23));
    return same_bits<float>(sign | (is_special ? magnitude | 0x7F800000 | quiet : finite));
  }
};

// The upper half of a float.
struct BrainBits {
  static uint16_t from(float single) {
    const uint32_t bits = same_bits<uint32_t>(single);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return uint16_t((bits >> 16) | 0x0040);
    return uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }
  static float to(uint16_t half) { return same_bits<float>(uint32_t(half) << 16); }
};

// A number of 16 bits, computed with as a float.
template <typename Bits>
struct Short {
  uint16_t bits;
  Short() = default;
  template <typename Number, typename = typename std::enable_if<std::is_arithmetic<Number>::value>::type>
  Short(Number number)
      : bits(Bits::from(std::is_same<Number, float>::value ? float(number) : round_to_odd(as_double(number)))) {}
  operator float() const { return Bits::to(bits); }
};

}  // namespace pto_wsp

#ifndef PTO_WSP_ENABLE_ASCEND
using half = pto_wsp::Short<pto_wsp::HalfBits>;
using bfloat16_t = pto_wsp::Short<pto_wsp::BrainBits>;
#endif

namespace pto_wsp {

template <typename T>
constexpr bool is_short = std::is_same<T, half>::value || std::is_same<T, bfloat16_t>::value;

// What elements are computed in: half precision in a float.
template <typename T>
using WideOf = typename std::conditional<is_short<T>, float, T>::type;

// Another element type: floats round to nearest even, floats to integers truncate and saturate, integers wrap.
template <typename To, typename From>
To cast(From from) {
  if constexpr (is_short<From>) {
    return cast<To>(static_cast<float>(from));
  } else if constexpr (std::is_floating_point<From>::value && std::is_integral<To>::value) {
    // The first number above, which a float has.
    const From end = std::ldexp(From(1), std::numeric_limits<To>::digits);
    if (std::isnan(from)) return 0;
    if (from >= end) return std::numeric_limits<To>::max();
    if (from < From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(from);
  } else {
    return static_cast<To>(from);
  }
}

}  // namespace pto_wsp

// Transcendental functions in double precision, step by step those of the tile machine, so that the bits are the same. A compiler must not
// fuse a multiplication with an addition here (`-ffp-contract=off`).
#pragma once

#include <cmath>
#include <cstdint>

#include "pto/wsp/codegen/abi/half.hpp"

namespace pto_wsp {
namespace functions {

// `1.5 * 2^52`: adding it rounds to an integer, which then stands in the low bits.
constexpr double ROUND = 6755399441055744.0;
constexpr double LOG2_E = 1.44269504088896340736, LN2 = 0.693147180559945309417;
constexpr double FRAC_2_PI = 0.636619772367581343076, FRAC_PI_2 = 1.57079632679489661923;

inline uint64_t bits(double x) { return same_bits<uint64_t>(x); }
inline double number(uint64_t bits) { return same_bits<double>(bits); }
// `ln 2` in two parts.
inline double ln2_hi() { return number(0x3FE62E42FEE00000); }
inline double ln2_lo() { return number(0x3DEA39EF35793C76); }

struct ExpParts {
  int64_t n;
  double p;
};

// `e^x = 2^n (1 + p)`.
inline ExpParts exp_parts(double x) {
  const double shifted = x * LOG2_E + ROUND;
  const double n = shifted - ROUND;
  const double r = (x - n * ln2_hi()) - n * ln2_lo();
  double coefficients[12], factorial = 1;
  for (int k = 2; k <= 13; ++k) coefficients[13 - k] = 1 / (factorial *= k);
  double poly = coefficients[0];
  for (int k = 1; k < 12; ++k) poly = poly * r + coefficients[k];
  return {int64_t(bits(shifted) - bits(ROUND)), poly * (r * r) + r};
}

inline double power_of_two(int64_t n) { return number(uint64_t(n + 1023) << 52); }

inline double clamp(double x, double low, double high) {
  x = x > high ? high : x;
  return x < low ? low : x;
}

inline double exp(double x) {
  const ExpParts parts = exp_parts(clamp(x, -750, 715));
  // Of a NaN the parts are anything.
  if (std::isnan(x)) return x;
  const int64_t half = parts.n >> 1;
  return (parts.p + 1) * power_of_two(half) * power_of_two(parts.n - half);
}

inline double tanh(double x) {
  if (std::isnan(x) || x == 0) return x;
  const ExpParts parts = exp_parts(2 * clamp(x, -22, 22));
  const double scale = power_of_two(parts.n);
  const double minus_one = scale * parts.p + (scale - 1);
  return minus_one / (minus_one + 2);
}

// The hyperbolic tangent for a result that is rounded to a float.
inline double tanh_for_float(double x) {
  if (std::isnan(x)) return x;
  double poly[8], term = 2;
  for (int n = 2; n <= 9; ++n) poly[n - 2] = term *= 2.0 / n;
  const double magnitude = std::fabs(x) > 13 ? 13.0 : std::fabs(x);
  const double shifted = magnitude * (2 * LOG2_E) + ROUND;
  const double r = magnitude - (shifted - ROUND) * (0.5 * LN2);
  const double scale = number((bits(shifted) + 1023) << 52);
  const double r2 = r * r;
  const double low = (poly[3] * r + poly[2]) * r2 + (poly[1] * r + poly[0]);
  const double high = (poly[7] * r + poly[6]) * r2 + (poly[5] * r + poly[4]);
  const double p = (high * (r2 * r2) + low) * r2 + (r + r);
  const double minus_one = scale * p + (scale - 1);
  return number(bits(minus_one / (minus_one + 2)) | (bits(x) & (uint64_t(1) << 63)));
}

inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }

inline double silu(double x) { return x == -HUGE_VAL ? -0.0 : x / (1 + exp(-x)); }

inline double gelu(double x) {
  const double inner = 1.5957691216057307 * (x + 0.044715 * x * x * x);
  return x == -HUGE_VAL ? -0.0 : x / (1 + exp(-inner));
}

// The logarithm, without so many of the first coefficients of its series.
inline double log_without(double x, int skipped) {
  if (!(x >= 0)) return NAN;
  if (x == 0 || x == HUGE_VAL) return x == 0 ? -HUGE_VAL : x;
  const bool is_subnormal = x < 2.2250738585072014e-308;
  const double lifted = is_subnormal ? x * 18014398509481984.0 : x;
  const int64_t exponent = int64_t(bits(lifted) - 0x3FE6A09E667F3BCD) >> 52;
  const double m = number(bits(lifted) - (uint64_t(exponent) << 52));
  const double e = double(exponent) - (is_subnormal ? 54.0 : 0.0);
  const double f = m - 1, s = f / (2 + f), z = s * s;
  double series = 2.0 / (21 - 2 * skipped);
  for (int n = skipped + 1; n < 10; ++n) series = series * z + 2.0 / (21 - 2 * n);
  return e * ln2_hi() + (f - (s * (f - series * z) - e * ln2_lo()));
}

inline double log(double x) { return log_without(x, 0); }
inline double log_for_float(double x) { return log_without(x, 5); }

// A count of quarter turns, of which the last two bits matter, and a rest of at most an eighth turn.
struct Turn {
  uint64_t quarters;
  double rest;
};

// Beyond this magnitude the integer mantissa is multiplied with the bits of `2 / pi` that matter.
constexpr double LARGE = 1048576.0;

inline Turn large_turn(double x) {
  static const uint64_t TWO_OVER_PI[19] = {
      0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
      0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
      0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
      0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
  };
  if (!std::isfinite(x)) return {0, NAN};
  const uint64_t mantissa = (bits(x) & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  // `x = mantissa 2^exponent`; bits of `2 / pi` before the skipped ones give multiples of four quarter turns.
  const int64_t skipped = int64_t(bits(x) >> 52) - 1075 - 2;
  const auto word_at = [](int64_t word) { return word >= 0 && word < 19 ? TWO_OVER_PI[word] : uint64_t(0); };
  const auto window = [&](int64_t at) {
    const int64_t bit = skipped + at, word = bit >> 6, shift = bit & 63;
    const uint64_t high = word_at(word) << shift;
    return shift == 0 ? high : high | word_at(word + 1) >> (64 - shift);
  };
  using Wide = unsigned __int128;
  const Wide high = Wide(window(0)) * mantissa, middle = Wide(window(64)) * mantissa, low = Wide(window(128)) * mantissa;
  // Two bits of quarters, then the fraction; one above a half becomes the next quarter and a negative rest.
  const Wide top = (high << 64) + middle + (low >> 64);
  const uint64_t quarters = uint64_t((top + (Wide(1) << 125)) >> 126);
  return {quarters, double(static_cast<__int128>(top << 2)) * (FRAC_PI_2 / number(uint64_t(1023 + 128) << 52))};
}

inline Turn turn(double x) {
  const double shifted = x * FRAC_2_PI + ROUND, n = shifted - ROUND;
  const double rest = ((x - n * number(0x3FF921FB54400000)) - n * number(0x3DD0B4611A600000)) - n * number(0x3BA3198A2E000000);
  return {bits(shifted), rest - n * number(0x397B839A252049C1)};
}

// Eight coefficients of the series of sine or cosine, from `1 / first!` down by twos.
inline void taylor(double* coefficients, int first) {
  for (int at = 0; at < 8; ++at) {
    const int n = first - 2 * at;
    double factorial = 1;
    for (int k = 2; k <= n; ++k) factorial *= k;
    coefficients[at] = (n / 2 % 2 == 0 ? 1.0 : -1.0) / factorial;
  }
}

// The sine of a number of quarter turns and a rest.
inline double sine_of(Turn turned) {
  double sines[8], cosines[8];
  taylor(sines, 17);
  taylor(cosines, 18);
  const double r = turned.rest, z = r * r, half = 0.5 * z, one = 1 - half;
  double sin = sines[0], cos = cosines[0];
  for (int at = 1; at < 8; ++at) sin = sin * z + sines[at];
  for (int at = 1; at < 8; ++at) cos = cos * z + cosines[at];
  cos = one + (((1 - one) - half) + z * z * cos);
  const double value = (turned.quarters & 1) == 0 ? r + r * z * sin : cos;
  return number(bits(value) ^ ((turned.quarters & 2) << 62));
}

inline bool is_large(double x) { return !(std::fabs(x) <= LARGE); }

inline double sin(double x) {
  if (x == 0) return x;
  if (!is_large(x)) return sine_of(turn(x));
  const double magnitude = sine_of(large_turn(std::fabs(x)));
  return x < 0 ? -magnitude : magnitude;
}

inline double cos(double x) {
  Turn turned = is_large(x) ? large_turn(std::fabs(x)) : turn(x);
  ++turned.quarters;
  return sine_of(turned);
}

}  // namespace functions
}  // namespace pto_wsp

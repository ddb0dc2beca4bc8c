#include "kernel.h"

/* `out = b[0] op .. op a op .. op b[k - 1]` of any element type, as `aicore-kernels/src/combine.rs`: element by element on the scalar unit, so that `out` may be `a`. */

namespace reduce {

enum Element : uint32_t { F32, F16, BF16, I8, U8, I16, U16, I32, U32, I64, U64, F64 };
enum Reduction : uint32_t { SUM, MAX, MIN, PROD };

/* Parts begin at multiples of so many elements. */
constexpr uint64_t ALIGNED = 64;

template <typename To, typename From> PTO_AICORE PTO_INLINE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

/* The bits of a power of two. */
constexpr uint32_t exponent(int power) { return static_cast<uint32_t>(127 + power) << 23; }

/* How an element is in memory, and what it is computed in. */
template <typename T> struct Plain {
    using Stored = T;
    using Wide = T;
    PTO_AICORE static PTO_INLINE Wide widen(Stored value) { return value; }
    PTO_AICORE static PTO_INLINE Stored narrow(Wide value) { return value; }
};

struct Half {
    using Stored = uint16_t;
    using Wide = float;
    PTO_AICORE static PTO_INLINE float widen(uint16_t half) {
        const uint32_t sign = (half & UINT32_C(0x8000)) << 16, magnitude = (half & UINT32_C(0x7FFF)) << 13;
        /* 2^112, the difference of the biases, makes subnormal numbers normal as well. */
        const uint32_t finite = bits_as<uint32_t>(bits_as<float>(magnitude) * bits_as<float>(exponent(112)));
        const uint32_t quiet = (half & 0x7FFF) > 0x7C00 ? UINT32_C(0x00400000) : 0;
        const uint32_t special = magnitude | UINT32_C(0x7F800000) | quiet;
        return bits_as<float>(((half & 0x7C00) == 0x7C00 ? special : finite) | sign);
    }
    /* To nearest even. */
    PTO_AICORE static PTO_INLINE uint16_t narrow(float value) {
        constexpr uint32_t OVERFLOWS = exponent(16), NORMAL = exponent(-14), SUBNORMAL = exponent(-1);
        const uint32_t bits = bits_as<uint32_t>(value), sign = bits >> 16 & 0x8000, magnitude = bits & UINT32_C(0x7FFFFFFF);
        uint32_t half = 0x7C00;
        if (magnitude > UINT32_C(0x7F800000)) {
            half = (magnitude >> 13 & 0x01FF) | 0x7E00;
        } else if (magnitude < NORMAL) {
            half = bits_as<uint32_t>(bits_as<float>(magnitude) + bits_as<float>(SUBNORMAL)) - SUBNORMAL;
        } else if (magnitude < OVERFLOWS) {
            half = (magnitude - exponent(-15) + 0x0FFF + (magnitude >> 13 & 1)) >> 13;
        }
        return static_cast<uint16_t>(sign | half);
    }
};

struct BrainHalf {
    using Stored = uint16_t;
    using Wide = float;
    PTO_AICORE static PTO_INLINE float widen(uint16_t half) { return bits_as<float>(static_cast<uint32_t>(half) << 16); }
    PTO_AICORE static PTO_INLINE uint16_t narrow(float value) {
        const uint32_t bits = bits_as<uint32_t>(value);
        const bool is_nan = (bits & UINT32_C(0x7FFFFFFF)) > UINT32_C(0x7F800000);
        return static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x0040 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
};

/* Integers wrap; a NaN is never dropped. */
template <typename T> struct Wrapping { using Type = T; };
template <> struct Wrapping<int8_t> { using Type = uint8_t; };
template <> struct Wrapping<int16_t> { using Type = uint16_t; };
template <> struct Wrapping<int32_t> { using Type = uint32_t; };
template <> struct Wrapping<int64_t> { using Type = uint64_t; };

template <typename T> PTO_AICORE PTO_INLINE T step(T left, T right, uint32_t reduction) {
    using Bits = typename Wrapping<T>::Type;
    switch (reduction) {
    case SUM: return static_cast<T>(static_cast<Bits>(left) + static_cast<Bits>(right));
    /* A factor of 16 bits would become an int, which does not wrap. */
    case PROD: return static_cast<T>(static_cast<Bits>(left) * 1u * static_cast<Bits>(right));
    case MAX: return right > left || right != right ? right : left;
    default: return right < left || right != right ? right : left;
    }
}

struct Call {
    uint64_t a, b, out, first, count, parts, before, stride;
    uint32_t reduction;
};

template <typename T> PTO_AICORE PTO_INLINE void all(const Call &call) {
    using Stored = typename T::Stored;
    const PTO_GM Stored *a = reinterpret_cast<const PTO_GM Stored *>(call.a) + call.first;
    const PTO_GM Stored *b = reinterpret_cast<const PTO_GM Stored *>(call.b) + call.first;
    PTO_GM Stored *out = reinterpret_cast<PTO_GM Stored *>(call.out) + call.first;
    for (uint64_t index = 0; index < call.count; ++index) {
        Stored sum = 0;
        const auto fold = [&](Stored right, bool is_first) {
            sum = is_first ? right : T::narrow(step<typename T::Wide>(T::widen(sum), T::widen(right), call.reduction));
        };
        /* The parts, and the tensor between them. */
        const uint64_t last = call.parts > call.before ? call.parts : call.before;
        for (uint64_t of = 0; of <= last; ++of) {
            if (of == call.before) {
                fold(kernel::load(a, static_cast<int64_t>(index)), of == 0);
            }
            if (of < last) {
                fold(kernel::load(b, static_cast<int64_t>(of * call.stride + index)), of == 0 && call.before != 0);
            }
        }
        kernel::store(out, static_cast<int64_t>(index), sum);
    }
}

} // namespace reduce

PTO_KERNEL(args) {
    const uint64_t how = args.word(4), parts = args.word(5), elements = how >> 16;
    const kernel::Block block(args.word(6));
    reduce::Call call = {args.word(0), args.word(1), args.word(2), 0, 0, parts & 0xFFFFFFFF, parts >> 32, 0, static_cast<uint32_t>(how >> 8 & 0xFF)};
    /* The blocks after the last element have none. */
    const uint64_t n = args.word(3);
    const bool is_beyond = block.number != 0 && n > elements / block.number;
    call.first = is_beyond ? elements : n * block.number;
    call.count = kernel::least(n, elements - call.first);
    call.stride = (elements + reduce::ALIGNED - 1) / reduce::ALIGNED * reduce::ALIGNED;
    if (call.reduction > reduce::PROD) {
        return;
    }
    switch (how & 0xFF) {
    case reduce::F32: return reduce::all<reduce::Plain<float>>(call);
    case reduce::F16: return reduce::all<reduce::Half>(call);
    case reduce::BF16: return reduce::all<reduce::BrainHalf>(call);
    case reduce::F64: return reduce::all<reduce::Plain<double>>(call);
    case reduce::I8: return reduce::all<reduce::Plain<int8_t>>(call);
    case reduce::U8: return reduce::all<reduce::Plain<uint8_t>>(call);
    case reduce::I16: return reduce::all<reduce::Plain<int16_t>>(call);
    case reduce::U16: return reduce::all<reduce::Plain<uint16_t>>(call);
    case reduce::I32: return reduce::all<reduce::Plain<int32_t>>(call);
    case reduce::U32: return reduce::all<reduce::Plain<uint32_t>>(call);
    case reduce::I64: return reduce::all<reduce::Plain<int64_t>>(call);
    case reduce::U64: return reduce::all<reduce::Plain<uint64_t>>(call);
    default: return;
    }
}

/* Replaces PTO-ISA on a development machine: the types and instructions of it that our kernels use, under the same names.
 *
 * An instruction runs at once. On a core it belongs to a pipe, and pipes run in parallel: only flags and barriers order them. With
 * PTO_CHECK_PIPES each instruction, flag and barrier is reported to a checker (`pto_pipes_*`), with the bytes of local memory and of GM that it touches.
 *
 * Arithmetic is that of the kernels in Rust, in the same order: sums of a row in eight lanes, products in ascending order.
 */
#ifndef PTO_THIS_MACHINE_INST_HPP
#define PTO_THIS_MACHINE_INST_HPP

#include <stddef.h>
#include <stdint.h>

#define PTO_INLINE inline __attribute__((always_inline))

enum pipe_t : uint32_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t : uint32_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

/* Whose memory an access is about. */
enum pto_space : uint32_t { PTO_GM_SPACE, PTO_UB, PTO_L1, PTO_L0A, PTO_L0B, PTO_L0C };

#ifdef PTO_CHECK_PIPES
extern "C" {
void pto_pipes_begin(uint32_t pipe, uint32_t line);
void pto_pipes_access(uint32_t space, uint64_t address, uint64_t bytes, uint32_t is_write);
void pto_pipes_set(uint32_t from, uint32_t to, uint32_t event, uint32_t line);
void pto_pipes_wait(uint32_t from, uint32_t to, uint32_t event, uint32_t line);
void pto_pipes_barrier(uint32_t pipe, uint32_t line);
void pto_pipes_raise(uint32_t pipe, uint32_t line);
}
#else
PTO_INLINE void pto_pipes_begin(uint32_t, uint32_t) {}
PTO_INLINE void pto_pipes_access(uint32_t, uint64_t, uint64_t, uint32_t) {}
PTO_INLINE void pto_pipes_set(uint32_t, uint32_t, uint32_t, uint32_t) {}
PTO_INLINE void pto_pipes_wait(uint32_t, uint32_t, uint32_t, uint32_t) {}
PTO_INLINE void pto_pipes_barrier(uint32_t, uint32_t) {}
PTO_INLINE void pto_pipes_raise(uint32_t, uint32_t) {}
#endif

/* What a kernel asks of its core besides its pipes. The caller of a kernel gives the table. A kernel has no variables: the table is in a register that the
 * compiler leaves alone. */
struct pto_core_services {
    /* Raises a flag for other cores of the cluster; waits for one. */
    void (*raise)(uint64_t word);
    void (*wait)(uint32_t flag);
    /* The counter of 50 MHz. */
    uint64_t (*ticks)();
    /* A look at what others write: they run meanwhile. */
    void (*look)();
};
/* Where functions are counted that call others, a service is one of them. */
#ifdef PTO_CHECK_LIMITS
extern "C" {
void pto_service_raise(uint64_t word);
void pto_service_wait(uint32_t flag);
uint64_t pto_service_ticks();
void pto_service_look();
void *pto_service_local_memory();
}
#define PTO_SERVICE(name) pto_service_##name
#else
#define PTO_SERVICE(name) pto_core->name
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wregister"
#ifdef __aarch64__
register const pto_core_services *pto_core asm("x28");
#else
register const pto_core_services *pto_core asm("r15");
#endif
#pragma GCC diagnostic pop

/* Flags between the cores of a cluster. The word has the mode in bits 4 and 5 and the flag in bits 8 to 11: mode 1 is for the two vector cores, mode 2 for the
 * cube core on one side and both vector cores on the other. The flag is raised when the instructions of the pipe before it are over. */
PTO_INLINE void ffts_cross_core_sync(pipe_t pipe, uint64_t word, uint32_t line = __builtin_LINE()) {
    pto_pipes_raise(pipe, line);
    PTO_SERVICE(raise)(word);
}
PTO_INLINE void wait_flag_dev(int64_t flag) { PTO_SERVICE(wait)(static_cast<uint32_t>(flag)); }
PTO_INLINE uint64_t get_sys_cnt() { return PTO_SERVICE(ticks)(); }

PTO_INLINE void set_flag(pipe_t from, pipe_t to, event_t event, uint32_t line = __builtin_LINE()) {
    pto_pipes_set(from, to, event, line);
}
PTO_INLINE void wait_flag(pipe_t from, pipe_t to, event_t event, uint32_t line = __builtin_LINE()) {
    pto_pipes_wait(from, to, event, line);
}
PTO_INLINE void pipe_barrier(pipe_t pipe, uint32_t line = __builtin_LINE()) { pto_pipes_barrier(pipe, line); }

namespace pto {

constexpr int DYNAMIC = -1;

enum class TileType { Vec, Mat, Left, Right, Acc };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class Layout { ND, DN, NZ };
enum class AtomicType { AtomicNone, AtomicAdd };

template <int N1, int N2, int N3, int N4, int N5> struct Shape {
    static_assert(N1 == 1 && N2 == 1 && N3 == 1 && N4 == DYNAMIC && N5 == DYNAMIC, "matrices alone");
    int64_t rows, cols;
    PTO_INLINE Shape(int64_t r, int64_t c) : rows(r), cols(c) {}
};
template <int N1, int N2, int N3, int N4, int N5> struct Stride {
    static_assert(N1 == 1 && N2 == 1 && N3 == 1, "matrices alone");
    int64_t row, col;
    PTO_INLINE Stride(int64_t r, int64_t c) : row(r), col(c) {}
};

/* A matrix in GM. */
template <typename T, typename ShapeOf, typename StrideOf, Layout LAYOUT = Layout::ND> struct GlobalTensor {
    T *at;
    ShapeOf shape;
    StrideOf stride;
    PTO_INLINE GlobalTensor(T *address, ShapeOf shape_, StrideOf stride_) : at(address), shape(shape_), stride(stride_) {}
    PTO_INLINE T &element(int64_t row, int64_t col) const { return at[row * stride.row + col * stride.col]; }
    /* Its bytes are reported row by row: what lies between two rows belongs to others. */
    PTO_INLINE void touches(bool is_write) const {
#ifdef PTO_CHECK_PIPES
        for (int64_t row = 0; row < shape.rows; ++row) {
            if (stride.col == 1) {
                pto_pipes_access(PTO_GM_SPACE, reinterpret_cast<uint64_t>(&element(row, 0)), shape.cols * sizeof(T), is_write);
                continue;
            }
            for (int64_t col = 0; col < shape.cols; ++col) {
                pto_pipes_access(PTO_GM_SPACE, reinterpret_cast<uint64_t>(&element(row, col)), sizeof(T), is_write);
            }
        }
#else
        (void)is_write;
#endif
    }
};

/* A tile in a local memory: what counts of it is `rows` by `cols`. Here its elements are in the object; the address that TASSIGN gives it is for the checker. */
template <TileType TYPE, typename T, int ROWS, int COLS, BLayout LAYOUT = BLayout::RowMajor, int VALID_ROWS = ROWS, int VALID_COLS = COLS,
          SLayout INNER = SLayout::NoneBox, int FRACTAL = 512>
struct Tile {
    static constexpr TileType type = TYPE;
    static constexpr int most_rows = ROWS, most_cols = COLS;
    static_assert(ROWS * COLS * sizeof(T) % 32 == 0, "tiles begin and end at multiples of 32 bytes");
    using Element = T;
    int64_t rows, cols;
    uint64_t address;
    static constexpr uint64_t bytes = ROWS * COLS * sizeof(T);
#ifdef PTO_CHECK_LIMITS
    T *const elements = static_cast<T *>(pto_service_local_memory());
#else
    T elements[ROWS * COLS];
#endif

    PTO_INLINE Tile(int64_t r = ROWS, int64_t c = COLS) : rows(r), cols(c), address(0) {}
    Tile(const Tile &) = delete;
    PTO_INLINE T &element(int64_t row, int64_t col) { return elements[row * COLS + col]; }
    PTO_INLINE T element(int64_t row, int64_t col) const { return elements[row * COLS + col]; }
    PTO_INLINE void touches(bool is_write) const {
        constexpr uint32_t space = TYPE == TileType::Vec ? PTO_UB
            : TYPE == TileType::Mat                      ? PTO_L1
            : TYPE == TileType::Left                     ? PTO_L0A
            : TYPE == TileType::Right                    ? PTO_L0B
                                                         : PTO_L0C;
        pto_pipes_access(space, address, bytes, is_write);
    }
    PTO_INLINE void SetValue(uint32_t index, T value) { elements[index] = value; }
    PTO_INLINE T GetValue(uint32_t index) const { return elements[index]; }
};
template <typename T, int ROWS, int COLS, int VR = ROWS, int VC = COLS>
using TileLeft = Tile<TileType::Left, T, ROWS, COLS, BLayout::RowMajor, VR, VC, SLayout::RowMajor, 512>;
template <typename T, int ROWS, int COLS, int VR = ROWS, int VC = COLS>
using TileRight = Tile<TileType::Right, T, ROWS, COLS, BLayout::RowMajor, VR, VC, SLayout::ColMajor, 512>;
template <typename T, int ROWS, int COLS, int VR = ROWS, int VC = COLS>
using TileAcc = Tile<TileType::Acc, T, ROWS, COLS, BLayout::ColMajor, VR, VC, SLayout::RowMajor, 1024>;

template <typename TileOf> PTO_INLINE void TASSIGN(TileOf &tile, uint64_t address) { tile.address = address; }

template <typename... Of> PTO_INLINE void touches(bool is_write, const Of &...of) { (of.touches(is_write), ...); }

/* ---- Moves ---- */

template <typename TileOf, typename Global> PTO_INLINE void TLOAD(TileOf &tile, const Global &from, uint32_t line = __builtin_LINE()) {
    pto_pipes_begin(PIPE_MTE2, line);
    touches(false, from), touches(true, tile);
    for (int64_t row = 0; row < tile.rows; ++row) {
        for (int64_t col = 0; col < tile.cols; ++col) {
            tile.element(row, col) = from.element(row, col);
        }
    }
}
/* From a vector core's tile, or from a cube core's: what is added up, or what was moved through. */
template <AtomicType ATOMIC = AtomicType::AtomicNone, typename Global, typename TileOf>
PTO_INLINE void TSTORE(const Global &to, const TileOf &tile, uint32_t line = __builtin_LINE()) {
    pto_pipes_begin(TileOf::type == TileType::Acc ? PIPE_FIX : PIPE_MTE3, line);
    touches(false, tile), touches(true, to);
    for (int64_t row = 0; row < tile.rows; ++row) {
        for (int64_t col = 0; col < tile.cols; ++col) {
            auto &element = to.element(row, col);
            element = ATOMIC == AtomicType::AtomicAdd ? element + tile.element(row, col) : tile.element(row, col);
        }
    }
}
template <typename To, typename From> PTO_INLINE void TMOV(To &to, const From &from, uint32_t line = __builtin_LINE()) {
    pto_pipes_begin(From::type == TileType::Mat ? PIPE_MTE1 : PIPE_V, line);
    touches(false, from), touches(true, to);
    for (int64_t row = 0; row < to.rows; ++row) {
        for (int64_t col = 0; col < to.cols; ++col) {
            to.element(row, col) = from.element(row, col);
        }
    }
}

/* ---- Elements ---- */

namespace elements {

PTO_INLINE float of_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
PTO_INLINE uint32_t bits_of(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}
/* The larger one; NaN if one is NaN. */
PTO_INLINE float larger(float a, float b) { return b > a || b != b ? b : a; }
PTO_INLINE float power_of_two(int32_t n) { return of_bits(static_cast<uint32_t>(n + 127) << 23); }
/* As `aicore-kernels/src/exp.rs`, to the bit. */
PTO_INLINE float exponential(float x) {
    constexpr float round = 12582912.0f;
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float shifted = x * 1.4426950408889634f + round;
    const float n = shifted - round;
    const float r = (x - n * 0.6933594f) - n * -2.1219444e-4f;
    float poly = 1.9875691e-4f;
    poly = poly * r + 1.3981999e-3f;
    poly = poly * r + 8.333452e-3f;
    poly = poly * r + 4.1665796e-2f;
    poly = poly * r + 1.6666665e-1f;
    poly = poly * r + 0.5f;
    const float exp_r = (poly * (r * r) + r) + 1.0f;
    const int32_t whole = static_cast<int32_t>(bits_of(shifted) - bits_of(round));
    const int32_t half = whole >> 1;
    return exp_r * power_of_two(half) * power_of_two(whole - half);
}

} // namespace elements

#define PTO_EACH(out, expression)                                                                                      \
    for (int64_t r = 0; r < out.rows; ++r) {                                                                           \
        for (int64_t c = 0; c < out.cols; ++c) {                                                                       \
            out.element(r, c) = expression;                                                                            \
        }                                                                                                              \
    }
#define PTO_PAIRS(NAME, EXPRESSION)                                                                                    \
    template <typename O, typename A, typename B>                                                                      \
    PTO_INLINE void T##NAME(O &out, const A &x, const B &y, uint32_t line = __builtin_LINE()) {                        \
        pto_pipes_begin(PIPE_V, line);                                                                                 \
        touches(false, x, y), touches(true, out);                                                                            \
        PTO_EACH(out, ([&] { const float a = x.element(r, c), b = y.element(r, c); return EXPRESSION; }()))            \
    }                                                                                                                  \
    template <typename O, typename A>                                                                                  \
    PTO_INLINE void T##NAME##S(O &out, const A &x, float b, uint32_t line = __builtin_LINE()) {                        \
        pto_pipes_begin(PIPE_V, line);                                                                                 \
        touches(false, x), touches(true, out);                                                                               \
        PTO_EACH(out, ([&] { const float a = x.element(r, c); return EXPRESSION; }()))                                 \
    }                                                                                                                  \
    /* With the column's element of each row. */                                                                       \
    template <typename O, typename A, typename B>                                                                      \
    PTO_INLINE void TROWEXPAND##NAME(O &out, const A &x, const B &y, uint32_t line = __builtin_LINE()) {               \
        pto_pipes_begin(PIPE_V, line);                                                                                 \
        touches(false, x, y), touches(true, out);                                                                            \
        PTO_EACH(out, ([&] { const float a = x.element(r, c), b = y.element(r, 0); return EXPRESSION; }()))            \
    }                                                                                                                  \
    /* With the row's element of each column. */                                                                       \
    template <typename O, typename A, typename B>                                                                      \
    PTO_INLINE void TCOLEXPAND##NAME(O &out, const A &x, const B &y, uint32_t line = __builtin_LINE()) {               \
        pto_pipes_begin(PIPE_V, line);                                                                                 \
        touches(false, x, y), touches(true, out);                                                                            \
        PTO_EACH(out, ([&] { const float a = x.element(r, c), b = y.element(0, c); return EXPRESSION; }()))            \
    }
PTO_PAIRS(ADD, a + b)
PTO_PAIRS(SUB, a - b)
PTO_PAIRS(MUL, a *b)
PTO_PAIRS(DIV, a / b)
PTO_PAIRS(MAX, elements::larger(a, b))
#undef PTO_PAIRS

#define PTO_FUNCTION(NAME, EXPRESSION)                                                                                 \
    template <typename O, typename A> PTO_INLINE void T##NAME(O &out, const A &x, uint32_t line = __builtin_LINE()) {  \
        pto_pipes_begin(PIPE_V, line);                                                                                 \
        touches(false, x), touches(true, out);                                                                               \
        PTO_EACH(out, ([&] { const float a = x.element(r, c); return EXPRESSION; }()))                                 \
    }
PTO_FUNCTION(EXP, elements::exponential(a))
PTO_FUNCTION(NEG, -a)
PTO_FUNCTION(SQRT, __builtin_sqrtf(a))
#undef PTO_FUNCTION
#undef PTO_EACH

/* ---- Rows ---- */

#define PTO_ROWS(NAME, START, STEP)                                                                                    \
    template <typename O, typename A, typename W>                                                                      \
    PTO_INLINE void NAME(O &out, const A &x, W &work, uint32_t line = __builtin_LINE()) {                              \
        pto_pipes_begin(PIPE_V, line);                                                                                 \
        touches(false, x), touches(true, out, work);                                                                         \
        for (int64_t r = 0; r < x.rows; ++r) {                                                                         \
            float s[8] = {START, START, START, START, START, START, START, START};                                     \
            for (int64_t c = 0; c < x.cols; ++c) {                                                                     \
                const float a = s[c % 8], b = x.element(r, c);                                                         \
                s[c % 8] = STEP;                                                                                       \
            }                                                                                                          \
            const auto step = [](float a, float b) { return STEP; };                                                   \
            out.element(r, 0) = step(step(step(s[0], s[4]), step(s[2], s[6])), step(step(s[1], s[5]), step(s[3], s[7]))); \
        }                                                                                                              \
    }
PTO_ROWS(TROWSUM, 0.0f, a + b)
PTO_ROWS(TROWMAX, -__builtin_inff(), elements::larger(a, b))
#undef PTO_ROWS

/* ---- Products ---- */

template <bool ADDS, typename C, typename A, typename B> PTO_INLINE void product(C &c, const A &a, const B &b, uint32_t line) {
    pto_pipes_begin(PIPE_M, line);
    touches(false, a, b), touches(true, c);
    for (int64_t row = 0; row < c.rows; ++row) {
        float *sums = &c.element(row, 0);
        for (int64_t col = 0; !ADDS && col < c.cols; ++col) {
            sums[col] = 0;
        }
        for (int64_t k = 0; k < a.cols; ++k) {
            const float left = a.element(row, k);
            const float *right = b.elements + k * B::most_cols;
            for (int64_t col = 0; col < c.cols; ++col) {
                sums[col] += left * right[col];
            }
        }
    }
}
template <typename C, typename A, typename B> PTO_INLINE void TMATMUL(C &c, const A &a, const B &b, uint32_t line = __builtin_LINE()) {
    product<false>(c, a, b, line);
}
template <typename C, typename D, typename A, typename B>
PTO_INLINE void TMATMUL_ACC(C &c, const D &, const A &a, const B &b, uint32_t line = __builtin_LINE()) {
    product<true>(c, a, b, line);
}

} // namespace pto

#endif

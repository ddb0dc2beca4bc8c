// Kernels of the test programs: plain C++, one function each. A file that includes this one can give them another linkage.
#include "intrinsic.h"
#include "pto_async_kernel_api.h"
#include "pto_field_counters.h"
#include "tensor.h"

#include <sched.h>

namespace {

// The first element of the view that argument `index` is.
template <typename T>
T *at(int64_t *args, int index) {
    const ChipTensor *tensor = reinterpret_cast<const ChipTensor *>(args[index]);
    return reinterpret_cast<T *>(tensor->buffer.addr) + tensor->start_offset;
}
const ChipTensor &tensor(int64_t *args, int index) { return *reinterpret_cast<const ChipTensor *>(args[index]); }

// Calls `act(offset in a, offset in b)` for the elements of two views of the same shape.
template <typename Act>
void for_each(const ChipTensor &a, const ChipTensor &b, Act act) {
    const uint64_t count = a.numel();
    for (uint64_t flat = 0; flat < count; flat++) {
        uint64_t rest = flat, from = 0, to = 0;
        for (uint32_t dim = a.ndims; dim-- > 0;) {
            const uint64_t index = rest % a.shapes[dim];
            rest /= a.shapes[dim];
            from += index * a.strides[dim];
            to += index * b.strides[dim];
        }
        act(from, to);
    }
}

// Reports an instruction whose operands have the same shape.
template <size_t N>
void tell(const char (&name)[N], uint32_t to, uint32_t from, uint64_t rows, uint64_t columns) {
    const pto_field_operand operands[] = {{to, 4, rows, columns}, {from, 4, rows, columns}};
    pto_field_count({name, N - 1, operands, 2});
}

float scalar_f32(int64_t word) { return from_u64<float>(static_cast<uint64_t>(word)); }

}  // namespace

#ifndef KERNELS
#define KERNELS extern "C"
#endif
KERNELS {

// out = a + b
void k_add(int64_t *args) {
    float *a = at<float>(args, 0), *b = at<float>(args, 1), *out = at<float>(args, 2);
    for (uint64_t i = 0; i < tensor(args, 2).numel(); i++) out[i] = a[i] + b[i];
}
// out = a * b
void k_mul(int64_t *args) {
    float *a = at<float>(args, 0), *b = at<float>(args, 1), *out = at<float>(args, 2);
    for (uint64_t i = 0; i < tensor(args, 2).numel(); i++) out[i] = a[i] * b[i];
    tell("TMUL", PTO_FIELD_UNIFIED, PTO_FIELD_UNIFIED, 1, 1024);
    tell("TSORT32", PTO_FIELD_UNIFIED, PTO_FIELD_UNIFIED, 1, 32);
    tell("TNEW", PTO_FIELD_GLOBAL, PTO_FIELD_GLOBAL, 1, 32);
}
// out = a + s
void k_add_scalar(int64_t *args) {
    float *a = at<float>(args, 0), *out = at<float>(args, 1);
    const float s = scalar_f32(args[2]);
    for (uint64_t i = 0; i < tensor(args, 1).numel(); i++) out[i] = a[i] + s;
}
// x += s, for views of any strides
void k_bump(int64_t *args) {
    float *x = at<float>(args, 0);
    const float s = scalar_f32(args[1]);
    for_each(tensor(args, 0), tensor(args, 0), [&](uint64_t from, uint64_t) { x[from] += s; });
}
// out = a s + t, with the arguments of February: a, s, out, t
void k_between(int64_t *args) {
    float *a = at<float>(args, 0), *out = at<float>(args, 2);
    for (uint64_t i = 0; i < tensor(args, 2).numel(); i++) out[i] = a[i] * scalar_f32(args[1]) + scalar_f32(args[3]);
}
// out = s, for views of any strides
void k_fill(int64_t *args) {
    float *out = at<float>(args, 0);
    const float s = scalar_f32(args[1]);
    for_each(tensor(args, 0), tensor(args, 0), [&](uint64_t from, uint64_t) { out[from] = s; });
}
// to = from, for views of any strides
void k_copy(int64_t *args) {
    float *from = at<float>(args, 0), *to = at<float>(args, 1);
    for_each(tensor(args, 0), tensor(args, 1), [&](uint64_t a, uint64_t b) { to[b] = from[a]; });
}
// c (+)= a b for square matrices, the first time without +
void k_matmul(int64_t *args) {
    float *a = at<float>(args, 0), *b = at<float>(args, 1), *c = at<float>(args, 2);
    const uint32_t n = tensor(args, 2).shapes[0];
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            float sum = 0;
            for (uint32_t k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    }
}
// out += a
void k_accumulate(int64_t *args) {
    float *a = at<float>(args, 0), *out = at<float>(args, 1);
    for (uint64_t i = 0; i < tensor(args, 1).numel(); i++) out[i] += a[i];
}
// out[block] = block + 1000 * blocks
void k_blocks(int64_t *args) {
    int32_t *out = at<int32_t>(args, 0);
    out[get_block_idx(args)] = get_block_idx(args) + 1000 * get_block_num(args);
}
// The kernels of a cluster leave a mark each: the cube core at 0, the vector cores at 1 and 2 of their block.
void k_mark_cube(int64_t *args) {
    int32_t *out = at<int32_t>(args, 0);
    out[3 * get_block_idx(args)] += 1;
}
void k_mark_vector(int64_t *args) {
    int32_t *out = at<int32_t>(args, 0);
    out[3 * get_block_idx(args) + 1 + get_sub_block_id(args)] += 1;
    const uint64_t number = 2 * get_block_idx(args) + get_sub_block_id(args);
    tell("TSTORE", PTO_FIELD_GLOBAL, PTO_FIELD_UNIFIED, 1 + number, 1024);
}
#ifndef PTO_FIELD_AICORE
// The cube core of a block and its vector core answer each other through the state that they share.
static volatile int32_t *shared_state() { return static_cast<volatile int32_t *>(pto_sim_get_pipe_shared_state(7, 64)); }
static void await(const volatile int32_t *word, int32_t value) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        sched_yield();
    }
}
void k_ping(int64_t *args) {
    volatile int32_t *state = shared_state();
    for (int32_t turn = 1; turn < 40; turn += 2) {
        __atomic_store_n(&state[0], turn, __ATOMIC_RELEASE);
        await(&state[0], turn + 1);
    }
    at<int32_t>(args, 0)[get_block_idx(args)] = state[0];
}
void k_pong(int64_t *) {
    volatile int32_t *state = shared_state();
    for (int32_t turn = 1; turn < 40; turn += 2) {
        await(&state[0], turn);
        __atomic_store_n(&state[0], turn + 1, __ATOMIC_RELEASE);
    }
}
#endif
// All blocks meet: each waits until every other one has begun.
void k_meet(int64_t *args) {
    int32_t *counter = at<int32_t>(args, 0);
    __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < get_block_num(args)) {
        sched_yield();
    }
}
// The words that raise flag `flag` with a mode, and the pipe whose instructions come before.
static uint64_t flag_word(uint64_t mode, uint64_t flag) { return 1 | mode << 4 | flag << 8; }
#ifdef PTO_FIELD_AICORE
constexpr pipe_t FLAG_PIPE = PIPE_S;
#else
constexpr int FLAG_PIPE = 0;
#endif
// Ten turns: the cube core of a block adds the turn to its sum and raises a flag for its vector cores, which take the sum over and raise another one for it.
void k_lead(int64_t *args) {
    int32_t *sum = &at<int32_t>(args, 0)[3 * get_block_idx(args)];
    for (int32_t turn = 1; turn <= 10; turn++) {
        st_dev(ld_dev(sum) + turn, sum);
        ffts_cross_core_sync(FLAG_PIPE, flag_word(2, 1));
        wait_flag_dev(2);
#ifndef PTO_FIELD_AICORE
        // The same with the flags of a5, one vector core after the other.
        set_intra_block(0, 5);
        wait_intra_block(0, 6);
        set_intra_block(0, 5 + 16);
        wait_intra_block(0, 6 + 16);
#endif
    }
}
void k_follow(int64_t *args) {
    int32_t *sum = &at<int32_t>(args, 0)[3 * get_block_idx(args)], *own = sum + 1 + get_sub_block_id(args);
    for (int32_t turn = 1; turn <= 10; turn++) {
        wait_flag_dev(1);
        // A turn that was missed shows.
        *own = ld_dev(sum) == *own + turn ? *own + turn : -1;
        ffts_cross_core_sync(FLAG_PIPE, flag_word(2, 2));
#ifndef PTO_FIELD_AICORE
        wait_intra_block(0, 5);
        set_intra_block(0, 6);
#endif
    }
}
#ifndef PTO_FIELD_AICORE
// All vector cores of the task meet, and count who has been there.
void k_all_meet(int64_t *args) {
    int32_t *counts = at<int32_t>(args, 0);
    const int32_t block = get_block_idx(args), blocks = get_block_num(args);
    counts[block] = 1;
    ffts_cross_core_sync(0, flag_word(0, 3));
    wait_flag_dev(3);
    int32_t here = 0;
    for (int32_t at = 0; at < blocks; at++) here += counts[at];
    counts[blocks + block] = here;
}
void k_lonely(int64_t *) { wait_flag_dev(4); }
#endif
// Two tasks that wait for each other: each raises its own word and waits for the other one's, for 3 s at most.
void k_handshake(int64_t *args) {
    int32_t *counts = at<int32_t>(args, 0);
    const int64_t own = args[1];
    const uint64_t begin = get_sys_cnt();
    __atomic_store_n(&counts[own], 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&counts[1 - own], __ATOMIC_ACQUIRE) == 0) {
        sched_yield();
        if (get_sys_cnt() - begin > 3u * 50000000u) return;
    }
    counts[2 + own] = 1;
}
// The same through the functions of the prelude, and without an end of its own. The scalar says with which.
void k_handshake_by_prelude(int64_t *args) {
    int32_t *counts = at<int32_t>(args, 0);
    const int64_t own = args[1] & 1, with = args[1] >> 1;
    st_dev(1, &counts[own]);
    if (with == 0) {
        while (ld_dev(&counts[1 - own]) == 0) sched_yield();
    } else {
        while (__atomic_load_n(&counts[1 - own], __ATOMIC_RELAXED) == 0) dcci(&counts[1 - own], 0);
    }
    counts[2 + own] = 1;
}
// Reads the same elements for 3 s through ld_dev, and waits for no other kernel: it counts them in another word.
void k_reads_for_long(int64_t *args) {
    int32_t *counts = at<int32_t>(args, 0);
    const uint64_t begin = get_sys_cnt();
    int32_t sum = 0;
    for (int32_t turn = 0; get_sys_cnt() - begin < 3u * 50000000u; turn++) {
        for (int at = 0; at < 64; at++) sum += ld_dev(&counts[at]);
        st_dev(turn, &counts[63]);
    }
    counts[0] = 1;
}
// out[i] = the scalar words as they are
void k_words(int64_t *args) {
    uint64_t *out = at<uint64_t>(args, 0);
    const uint64_t count = tensor(args, 0).numel();
    for (uint64_t i = 0; i < count; i++) out[i] = static_cast<uint64_t>(args[1 + i]);
}
// out = the descriptor of a
void k_describe(int64_t *args) {
    uint64_t *out = at<uint64_t>(args, 1);
    const ChipTensor &a = tensor(args, 0);
    out[0] = a.start_offset, out[1] = a.ndims, out[2] = a.shapes[0], out[3] = a.strides[0];
    out[4] = static_cast<uint64_t>(a.dtype), out[5] = a.is_contiguous, out[6] = a.extent_elem_cache, out[7] = a.numel();
}
enum class Notify { AtomicAdd, Set };
// Notifies the counter, and completes when it has reached the scalar.
void k_notify(int64_t *args) {
    send_notification(at<int32_t>(args, 0), 1, Notify::AtomicAdd);
}
void k_await(int64_t *args) {
    AsyncCtx ctx = get_async_ctx(args);
    save_expected_notification_counter(ctx, at<int32_t>(args, 0), static_cast<uint32_t>(args[1]));
}
void k_await_too_much(int64_t *args) {
    AsyncCtx ctx = get_async_ctx(args);
    // The last one is refused before any of these addresses, of which none can be read, is looked at.
    for (uintptr_t i = 0; i < 100; i++) save_expected_notification_counter(ctx, reinterpret_cast<int32_t *>(4096 + 64 * i), 0);
}
// x[i] = a small number that depends on i and the scalar
void k_pattern(int64_t *args) {
    float *x = at<float>(args, 0);
    for (uint64_t i = 0; i < tensor(args, 0).numel(); i++) x[i] = static_cast<float>((i * 7 + static_cast<uint64_t>(args[1])) % 13) / 13.0f - 0.5f;
}
// scores = q k^T: 16 heads, 16 tokens, 16 wide
void k_scores(int64_t *args) {
    float *q = at<float>(args, 0), *k = at<float>(args, 1), *out = at<float>(args, 2);
    for (int head = 0; head < 16; head++) {
        for (int token = 0; token < 16; token++) {
            float sum = 0;
            for (int i = 0; i < 16; i++) sum += q[16 * head + i] * k[16 * token + i];
            out[16 * head + token] = sum;
        }
    }
}
// weights, the largest score and the sum of the weights of each head
void k_soften(int64_t *args) {
    float *scores = at<float>(args, 0), *weights = at<float>(args, 1), *largest = at<float>(args, 2), *sum = at<float>(args, 3);
    const float scale = scalar_f32(args[4]);
    for (int head = 0; head < 16; head++) {
        float most = scores[16 * head] * scale, total = 0;
        for (int token = 1; token < 16; token++) most = scores[16 * head + token] * scale > most ? scores[16 * head + token] * scale : most;
        for (int token = 0; token < 16; token++) total += weights[16 * head + token] = __builtin_expf(scores[16 * head + token] * scale - most);
        largest[head] = most, sum[head] = total;
    }
}
// out = weights v
void k_weigh(int64_t *args) {
    float *weights = at<float>(args, 0), *v = at<float>(args, 1), *out = at<float>(args, 2);
    for (int head = 0; head < 16; head++) {
        for (int i = 0; i < 16; i++) {
            float sum = 0;
            for (int token = 0; token < 16; token++) sum += weights[16 * head + token] * v[16 * token + i];
            out[16 * head + i] = sum;
        }
    }
}
// What a page makes of a sequence: the state is rescaled to the larger score; the last page writes the quotient.
void k_update(int64_t *args) {
    float *largest = at<float>(args, 0), *sum = at<float>(args, 1), *values = at<float>(args, 2);
    float *most = at<float>(args, 3), *total = at<float>(args, 4), *held = at<float>(args, 5), *out = at<float>(args, 6);
    const bool is_first = args[7] != 0, is_last = args[8] != 0;
    for (int head = 0; head < 16; head++) {
        const float now = is_first || largest[head] > most[head] ? largest[head] : most[head];
        const float old = is_first ? 0.0f : __builtin_expf(most[head] - now), fresh = __builtin_expf(largest[head] - now);
        most[head] = now;
        total[head] = (is_first ? 0.0f : total[head] * old) + sum[head] * fresh;
        for (int i = 0; i < 16; i++) {
            float &value = held[16 * head + i];
            value = (is_first ? 0.0f : value * old) + values[16 * head + i] * fresh;
            if (is_last) out[16 * head + i] = value / total[head];
        }
    }
}
// out = a + block on the block's tile of 32
void k_tile_of_block(int64_t *args) {
    float *a = at<float>(args, 0), *out = at<float>(args, 1);
    const int block = get_block_idx(args);
    for (int i = 32 * block; i < 32 * block + 32; i++) out[i] = a[i] + static_cast<float>(block);
}
// Writes where nothing is.
void k_crash(int64_t *) {
    volatile int *nowhere = nullptr;
    *nowhere = 1;
}
// Takes a while.
void k_slow(int64_t *args) {
    volatile float *x = at<float>(args, 0);
    for (int i = 0; i < 2000000; i++) x[0] = x[0] + 1.0f;
}
}

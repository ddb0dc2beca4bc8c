// Kernels of the test programs: plain C++, one function each.
#include "intrinsic.h"
#include "pto_async_kernel_api.h"
#include "tensor.h"

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

float scalar_f32(int64_t word) { return from_u64<float>(static_cast<uint64_t>(word)); }

}  // namespace

extern "C" {

// out = a + b
void k_add(int64_t *args) {
    float *a = at<float>(args, 0), *b = at<float>(args, 1), *out = at<float>(args, 2);
    for (uint64_t i = 0; i < tensor(args, 2).numel(); i++) out[i] = a[i] + b[i];
}
// out = a * b
void k_mul(int64_t *args) {
    float *a = at<float>(args, 0), *b = at<float>(args, 1), *out = at<float>(args, 2);
    for (uint64_t i = 0; i < tensor(args, 2).numel(); i++) out[i] = a[i] * b[i];
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
}
// All blocks meet: each waits until every other one has begun.
void k_meet(int64_t *args) {
    int32_t *counter = at<int32_t>(args, 0);
    __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < get_block_num(args)) {
        __asm__ __volatile__("" ::: "memory");
    }
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
    for (int i = 0; i < 100; i++) save_expected_notification_counter(ctx, at<int32_t>(args, 0), 0);
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

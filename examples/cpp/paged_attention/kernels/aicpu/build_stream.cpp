// The graph program with tensors, for tensormap_and_ringbuffer: which task waits for which follows from what they read and
// write, and what a block needs in between is a tensor of its scope. Words as in ../graph.h; the scratch is not used.
#include "pto_stream.hpp"

enum { SCORES = 0, SOFTMAX = 1, WEIGHTED_SUM = 2, UPDATE = 3 };

extern "C" int build_graph_aicpu(Runtime *runtime) {
    if (runtime->orch_argc != 13) {
        return 1;
    }
    const uint64_t *words = runtime->orch_args;
    const auto word = [words](int index) { return static_cast<uint32_t>(words[index]); };
    const uint32_t batch = word(7), heads = word(8), kv_heads = word(9), dim = word(10), size = word(11), row = word(12);
    const uint32_t f32 = PTO_ELEMENT_TYPE_F32, i32 = PTO_ELEMENT_TYPE_I32;
    const pto::Tensor query = pto::dense(words[0], f32, {batch, heads, dim});
    const pto::Tensor keys = pto::dense(words[1], f32, {batch * row, size, kv_heads, dim});
    const pto::Tensor values = pto::dense(words[2], f32, {batch * row, size, kv_heads, dim});
    const pto::Tensor table = pto::dense(words[3], i32, {batch, row});
    const pto::Tensor lengths = pto::dense(words[4], i32, {batch});
    const pto::Tensor out = pto::dense(words[5], f32, {batch, heads, dim});
    pto::Stream stream(runtime);
    for (uint32_t b = 0; b < batch; b++) {
        const uint32_t length = static_cast<uint32_t>(stream.get(lengths, {b}));
        const pto::Tensor own_query = query.slice(0, b, 1), own_out = out.slice(0, b, 1);
        pto::Scope sequence(stream);
        // Maximum and sum of every head over the blocks so far.
        const pto::Tensor state = stream.alloc(f32, {2, heads});
        const uint32_t blocks = (length + size - 1) / size;
        for (uint32_t j = 0; j < blocks && stream.status() == 0; j++) {
            const uint32_t cached = static_cast<uint32_t>(stream.get(table, {b, j}));
            const uint32_t valid = length - j * size < size ? length - j * size : size;
            const auto shape = [&](uint64_t n) { return pto::scalar(n); };
            pto::Scope block(stream);
            const pto::Tensor scores = stream.alloc(f32, {heads, size});
            const pto::Tensor maxima = stream.alloc(f32, {2, heads});
            const pto::Tensor partial = stream.alloc(f32, {heads, dim});
            stream.submit(SCORES, CoreType::AIC,
                          {pto::in(own_query), pto::in(keys.slice(0, cached, 1)), pto::out(scores), shape(heads), shape(kv_heads),
                           shape(dim), shape(size), shape(valid)});
            stream.submit(SOFTMAX, CoreType::AIV, {pto::inout(scores), pto::out(maxima), shape(heads), shape(size), shape(valid)});
            stream.submit(WEIGHTED_SUM, CoreType::AIC,
                          {pto::in(scores), pto::in(values.slice(0, cached, 1)), pto::out(partial), shape(heads), shape(kv_heads),
                           shape(dim), shape(size), shape(valid)});
            const uint64_t first = j == 0, last = j + 1 == blocks;
            stream.submit(UPDATE, CoreType::AIV,
                          {pto::in(maxima), pto::in(partial), pto::inout(state), pto::inout(own_out), shape(heads), shape(dim),
                           shape(first), shape(last)});
        }
    }
    return stream.status();
}

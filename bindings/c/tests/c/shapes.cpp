// What pto_stream.hpp makes of tasks with shapes and of records, against a table of functions that only looks.
#include <cstdio>
#include <cstdlib>

#include "pto_stream.hpp"

#define CHECK(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                    \
        }                                                                    \
    } while (0)

static pto_stream_task last;
static int64_t tasks;
static bool recording;

static int64_t submit(void *, const pto_stream_task *task, const pto_stream_arg *args, uint32_t count, const int64_t *, uint32_t) {
    last = *task;
    CHECK(count == 2 && args[0].kind == PTO_ARG_KIND_INOUT);
    CHECK(args[1].kind == (recording ? PTO_ARG_KIND_BOUND_SCALAR : PTO_ARG_KIND_SCALAR));
    return tasks++;
}

static int begin_recording(void *, const pto_stream_tensor *shapes, uint32_t count, pto_stream_tensor *bound) {
    CHECK(count == 2 && shapes[1].base == 0x2000);
    recording = true;
    for (uint32_t i = 0; i < count; i++) {
        bound[i] = shapes[i];
        bound[i].base = 7 + i;
    }
    return 0;
}

static int end_recording(void *, pto_stream_recording *record) {
    recording = false;
    *record = {1, 2, 3, 0};
    return 0;
}

static int replay(void *, const pto_stream_recording *record, const pto_stream_tensor *tensors, uint32_t count,
                  const uint64_t *scalars, uint32_t scalar_count) {
    CHECK(record->tasks == 3 && count == 2 && tensors[0].base == 0x2000 && tensors[1].base == 0x1000);
    CHECK(scalar_count == 1 && scalars[0] == 42);
    return 0;
}

int main() {
    pto_stream_api api = {};
    api.struct_size = sizeof api;
    api.version = PTO_STREAM_API_VERSION;
    api.submit = submit;
    api.begin_recording = begin_recording;
    api.end_recording = end_recording;
    api.replay = replay;
    // Large, and nothing of it but the table is looked at.
    Runtime *runtime = static_cast<Runtime *>(std::calloc(1, sizeof(Runtime)));
    runtime->pto_stream = &api;

    pto::Stream stream(runtime);
    const pto::Tensor x = pto::dense(0x1000, PTO_ELEMENT_TYPE_F32, {8}), y = pto::dense(0x2000, PTO_ELEMENT_TYPE_F32, {8});
    const auto twice = [&](const pto::Tensor &tensor, const pto::Arg &word) {
        const pto::Task task = pto::Task(5, CoreType::AIC).mix({6, 7}).blocks(9).sync_start().priority(PTO_PRIORITY_HIGH);
        stream.submit(task.when(tensor, {3}, PTO_COMPARISON_LESS, 11), {pto::inout(tensor), word});
    };
    twice(x, pto::scalar(1));
    CHECK(last.struct_size == sizeof last && last.func_id == 5 && last.core_type == 0);
    CHECK(last.vector_count == 2 && last.vectors[0] == 6 && last.vectors[1] == 7);
    CHECK(last.blocks == 9 && last.start == PTO_START_MODE_SYNC && last.priority == PTO_STREAM_PRIORITY(PTO_PRIORITY_HIGH));
    CHECK(last.has_predicate == 1 && last.comparison == PTO_COMPARISON_LESS && last.value == 11);
    CHECK(last.index_rank == 1 && last.index[0] == 3 && last.element_of.base == 0x1000);
    stream.submit(5, CoreType::AIV, {pto::inout(x), pto::scalar(1)});
    CHECK(last.blocks == 0 && last.priority == 0 && last.has_predicate == 0 && last.core_type == 1);
    stream.submit(pto::Task(5, CoreType::AIC).mix({1, 2, 3}), {pto::inout(x), pto::scalar(1)});
    CHECK(last.vector_count == 3);
    const pto::Tensor third = x.step(0, 3), first = x.step(0, UINT32_MAX);
    CHECK(third.shape[0] == 3 && third.strides[0] == 3 && first.shape[0] == 1 && x.step(0, 0).bytes == 0);
    const pto::Tensor shapes[] = {x, y}, others[] = {y, x};
    const pto_stream_recording record = stream.record(shapes, [&](const pto::Tensor(&bound)[2]) {
        CHECK(bound[0].base == 7 && bound[1].base == 8);
        twice(bound[1], pto::bound_scalar(0));
    });
    CHECK(last.element_of.base == 8);
    stream.replay(record, others, {42});
    CHECK(stream.status() == 0 && tasks == 4);
    std::free(runtime);
    return 0;
}

/* A streaming builder program in C: tasks with tensors, scopes, tensors of the heap, elements; and what is refused. */
#include "check.h"

#include "tensors.h"

enum { AIV = 1, N = 64, ADD = 0 };

static pto_device *the_device;

/* out[i] = in[i] + step, of unsigned numbers. Words: in, out, step, n. */
static void add(int64_t *args) {
    const uint32_t *in = (const uint32_t *)args[0];
    uint32_t *out = (uint32_t *)args[1];
    for (int64_t i = 0; i < args[3]; i++) {
        out[i] = in[i] + (uint32_t)args[2];
    }
}

static pto_stream_arg scalar(uint64_t value) {
    return word(PTO_ARG_KIND_SCALAR, value);
}

static int32_t add_step(pto_builder *builder, pto_stream_tensor in, pto_stream_tensor out, uint64_t step, int64_t *number) {
    const pto_stream_task task = {.struct_size = sizeof task, .func_id = ADD, .core_type = AIV};
    const pto_stream_arg args[] = {argument(PTO_ARG_KIND_IN, in), argument(PTO_ARG_KIND_OUT, out), scalar(step),
                                   scalar(in.shape[0])};
    return pto_builder_submit(builder, &task, args, 4, NULL, 0, number);
}

/* x = x + 1 + 2, through a tensor of the heap, `rounds` times: more tasks than the window has slots. Words: x, rounds. */
static int32_t sums(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count, index = 5;
    uint64_t word;
    OK(pto_builder_words(builder, &words, &count));
    CHECK(count == 2 && user == NULL);
    const pto_stream_tensor x = whole(words[0], N);
    for (uint64_t round = 0; round < words[1]; round++) {
        const uint32_t shape[] = {N};
        pto_stream_scope scope;
        pto_stream_tensor between;
        int64_t number = -1;
        OK(pto_builder_open_scope(builder, PTO_DEPENDENCY_MODE_DERIVED, &scope));
        OK(pto_builder_alloc_tensor(builder, PTO_ELEMENT_TYPE_U32, shape, 1, &between));
        OK(add_step(builder, x, between, 1, NULL));
        OK(add_step(builder, between, x, 2, &number));
        CHECK(number == (int64_t)(2 * round + 1));
        OK(pto_builder_close_scope(builder, &scope));
    }
    OK(pto_builder_get(builder, &x, &index, 1, &word));
    CHECK(word == 3 * words[1]);
    OK(pto_builder_set(builder, &x, &index, 1, 1000));
    OK(pto_builder_get(builder, &x, &index, 1, &word));
    CHECK(word == 1000);
    /* Unpublished, with an edge that no tensor says. */
    const pto_stream_task task = {.struct_size = sizeof task, .func_id = ADD, .core_type = AIV};
    const pto_stream_arg args[] = {argument(PTO_ARG_KIND_NO_DEP, x), argument(PTO_ARG_KIND_NO_DEP, x), scalar(0), scalar(0)};
    int64_t first, second;
    OK(pto_builder_add_tensor_task(builder, &task, args, 4, NULL, 0, &first));
    OK(pto_builder_publish(builder, (int32_t)first));
    OK(pto_builder_add_tensor_task(builder, &task, args, 4, &first, 1, &second));
    OK(pto_builder_add_edge(builder, (int32_t)first, (int32_t)second));
    OK(pto_builder_publish(builder, (int32_t)second));
    return 0;
}

static int32_t wrong_view(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    pto_stream_tensor x = whole(words[0], N), outside = x;
    outside.offset = 1;
    FAILS(PTO_FAULT_STREAM_VIEW_RANGE, add_step(builder, x, outside, 1, NULL));
    /* The first failure stays. */
    FAILS(PTO_FAULT_STREAM_VIEW_RANGE, add_step(builder, x, x, 1, NULL));
    return 0;
}

static int32_t wrong_struct(pto_builder *builder, void *user) {
    const pto_stream_task task = {.struct_size = 3};
    (void)user;
    FAILS(PTO_FAULT_BUILD_FOREIGN_STRUCT, pto_builder_submit(builder, &task, NULL, 0, NULL, 0, NULL));
    return 0;
}

static int32_t not_streaming(pto_builder *builder, void *user) {
    pto_stream_scope scope;
    (void)user;
    FAILS(PTO_FAULT_BUILD_NOT_STREAMING, pto_builder_open_scope(builder, 0, &scope));
    return 0;
}

int main(void) {
    pto_device_options options;
    OK(pto_device_options_init(&options));
    options.aic = 4;
    options.aiv = 8;
    options.gm_bytes = 512 << 20;
    OK(pto_device_open("a2a3sim", &options, &the_device));
    OK(pto_register_kernel_function(the_device, ADD, AIV, "add", add));
    OK(pto_register_builder(the_device, "sums", sums, NULL));
    OK(pto_register_builder(the_device, "wrong_view", wrong_view, NULL));
    OK(pto_register_builder(the_device, "wrong_struct", wrong_struct, NULL));
    OK(pto_register_builder(the_device, "not_streaming", not_streaming, NULL));
    uint32_t values[N] = {0};
    uint64_t words[2] = {0, 300};
    OK(pto_device_malloc(the_device, sizeof values, &words[0]));
    OK(pto_copy_to_device(the_device, words[0], values, sizeof values));
    pto_run_options run;
    pto_run_report report;
    OK(pto_run_options_init(&run));
    run.window = 64;
    run.heap_bytes = 4096;
    OK(pto_run_stream(the_device, "sums", words, 2, &run, &report));
    CHECK(report.tasks == 602);
    OK(pto_copy_from_device(the_device, values, words[0], sizeof values));
    for (int i = 0; i < N; i++) {
        CHECK(values[i] == (i == 5 ? 1000 : 900));
    }
    run.window = 60;
    FAILS(PTO_FAULT_STREAM_WINDOW_SIZE, pto_run_stream(the_device, "sums", words, 2, &run, NULL));
    FAILS(PTO_FAULT_STREAM_VIEW_RANGE, pto_run_stream(the_device, "wrong_view", words, 2, NULL, NULL));
    FAILS(PTO_FAULT_BUILD_FOREIGN_STRUCT, pto_run_stream(the_device, "wrong_struct", words, 2, NULL, NULL));
    FAILS(PTO_FAULT_BUILD_NOT_STREAMING, pto_run_builder(the_device, "not_streaming", words, 2, NULL, NULL));
    pto_stream_scope scope = {0, 0, 0};
    FAILS(PTO_ERROR_OUTSIDE_BUILDER, pto_builder_open_scope(NULL, 0, &scope));
    FAILS(PTO_ERROR_OUTSIDE_BUILDER, pto_builder_close_scope((pto_builder *)the_device, &scope));
    OK(pto_device_close(the_device));
    return 0;
}

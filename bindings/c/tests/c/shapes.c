/* Shapes of work and records in C: kernels of one cluster, blocks, blocks that start at once, predicates, priorities; a layer
 * of them recorded once and replayed; and what is refused. */
#include "check.h"

#include "tensors.h"

enum { AIC = 0, AIV = 1, CUBE = 0, VECTOR = 1, STORE = 2, CELLS = 12, LAYERS = 5 };

static pto_device *the_device;

/* Cell 3 * block + column of a table: adds a value. Words: table, value, context. */
static void mark(int64_t *args, uint64_t column) {
    uint32_t *cells = (uint32_t *)args[0];
    const uint64_t block = (uint64_t)args[2] & 0xFFFFFF;
    cells[3 * block + column] += (uint32_t)args[1];
}

static void on_cube(int64_t *args) { mark(args, 0); }

static void on_vector(int64_t *args) { mark(args, 1 + ((uint64_t)args[2] >> 24 & 0xFF)); }

/* Words: flag, value. */
static void store(int64_t *args) { *(uint32_t *)args[0] = (uint32_t)args[1]; }

/* A layer on a table and a flag: a MIX task of 4 blocks, one of 2 blocks at once; one that runs, and one that does not. */
static int layer(pto_builder *builder, pto_stream_tensor cells, pto_stream_tensor flag, pto_stream_arg value) {
    const pto_stream_arg args[] = {argument(PTO_ARG_KIND_INOUT, cells), value};
    pto_stream_task task = {.struct_size = sizeof task, .func_id = CUBE, .core_type = AIC};
    int64_t number = -1;
    task.vector_count = 2;
    task.vectors[0] = task.vectors[1] = VECTOR;
    task.blocks = 4;
    OK(pto_builder_submit(builder, &task, args, 2, NULL, 0, NULL));
    task.blocks = 2;
    task.start = PTO_START_MODE_SYNC;
    task.priority = PTO_STREAM_PRIORITY(PTO_PRIORITY_URGENT);
    OK(pto_builder_submit(builder, &task, args, 2, NULL, 0, NULL));
    const pto_stream_task set = {.struct_size = sizeof set, .func_id = STORE, .core_type = AIV};
    const pto_stream_arg set_args[] = {argument(PTO_ARG_KIND_OUT, flag), word(PTO_ARG_KIND_SCALAR, 7)};
    OK(pto_builder_submit(builder, &set, set_args, 2, NULL, 0, &number));
    for (uint64_t limit = 6; limit <= 7; limit++) {
        const pto_stream_task when = {.struct_size = sizeof when,
                                      .func_id = VECTOR,
                                      .core_type = AIV,
                                      .has_predicate = 1,
                                      .comparison = PTO_COMPARISON_GREATER,
                                      .index = {0},
                                      .index_rank = 1,
                                      .value = limit,
                                      .element_of = flag};
        OK(pto_builder_submit(builder, &when, args, 2, &number, 1, NULL));
    }
    return 0;
}

/* Words: cells of two tables, a flag, whether layers are recorded. */
static int32_t layers(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    const pto_stream_tensor tables[] = {whole(words[0], CELLS), whole(words[0] + 4 * CELLS, CELLS)};
    const pto_stream_tensor flag = whole(words[1], 1);
    pto_stream_recording record = {0, 0, 0, 0};
    if (words[2]) {
        const pto_stream_tensor shapes[] = {tables[0], flag};
        pto_stream_tensor bound[2];
        OK(pto_builder_begin_recording(builder, shapes, 2, bound));
        CHECK(layer(builder, bound[0], bound[1], word(PTO_ARG_KIND_BOUND_SCALAR, 0)) == 0);
        OK(pto_builder_end_recording(builder, &record));
        CHECK(record.tasks == 5);
    }
    for (uint64_t number = 0; number < LAYERS; number++) {
        const pto_stream_tensor bound[] = {tables[number % 2], flag};
        if (words[2]) {
            const uint64_t value = 1 + number;
            OK(pto_builder_replay(builder, &record, bound, 2, &value, 1));
        } else {
            CHECK(layer(builder, bound[0], bound[1], word(PTO_ARG_KIND_SCALAR, 1 + number)) == 0);
        }
    }
    /* Replayed tasks have numbers: the next task has the one after them. */
    const pto_stream_task task = {.struct_size = sizeof task, .func_id = STORE, .core_type = AIV};
    const pto_stream_arg args[] = {argument(PTO_ARG_KIND_OUT, flag), word(PTO_ARG_KIND_SCALAR, 1)};
    int64_t number = -1;
    OK(pto_builder_submit(builder, &task, args, 2, NULL, 0, &number));
    CHECK(number == 5 * LAYERS);
    OK(pto_builder_submit(builder, &task, args, 2, &number, 1, NULL));
    return 0;
}

static int32_t wrong(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    const pto_stream_arg args[] = {argument(PTO_ARG_KIND_INOUT, whole(words[0], CELLS)), word(PTO_ARG_KIND_SCALAR, 1)};
    pto_stream_task task = {.struct_size = sizeof task, .func_id = VECTOR, .core_type = AIV};
    pto_stream_recording none = {0, 0, 0, 0};
    switch (words[2]) {
        case 0:
            task.blocks = 9;
            task.start = PTO_START_MODE_SYNC;
            FAILS(PTO_FAULT_STREAM_SYNC_BLOCKS, pto_builder_submit(builder, &task, args, 2, NULL, 0, NULL));
            break;
        case 1:
            task.vector_count = 3;
            FAILS(PTO_FAULT_STREAM_MIX, pto_builder_submit(builder, &task, args, 2, NULL, 0, NULL));
            break;
        case 2:
            task.priority = 9;
            FAILS(PTO_FAULT_BUILD_FOREIGN_STRUCT, pto_builder_submit(builder, &task, args, 2, NULL, 0, NULL));
            break;
        case 3:
            task.has_predicate = 1;
            task.index_rank = 2;
            task.element_of = whole(words[1], 1);
            FAILS(PTO_FAULT_STREAM_VIEW_RANK, pto_builder_submit(builder, &task, args, 2, NULL, 0, NULL));
            break;
        case 4:
            FAILS(PTO_FAULT_STREAM_RECORDING_UNKNOWN, pto_builder_replay(builder, &none, NULL, 0, NULL, 0));
            break;
        default:
            FAILS(PTO_FAULT_STREAM_NOT_RECORDING, pto_builder_end_recording(builder, &none));
            break;
    }
    return 0;
}

int main(void) {
    static const uint32_t faults[] = {PTO_FAULT_STREAM_SYNC_BLOCKS,    PTO_FAULT_STREAM_MIX,
                                      PTO_FAULT_BUILD_FOREIGN_STRUCT,  PTO_FAULT_STREAM_VIEW_RANK,
                                      PTO_FAULT_STREAM_RECORDING_UNKNOWN, PTO_FAULT_STREAM_NOT_RECORDING};
    pto_device_options options;
    OK(pto_device_options_init(&options));
    options.aic = 4;
    options.aiv = 8;
    options.gm_bytes = 512 << 20;
    OK(pto_device_open("a2a3sim", &options, &the_device));
    OK(pto_register_kernel_function(the_device, CUBE, AIC, "on_cube", on_cube));
    OK(pto_register_kernel_function(the_device, VECTOR, AIV, "on_vector", on_vector));
    OK(pto_register_kernel_function(the_device, STORE, AIV, "store", store));
    OK(pto_register_builder(the_device, "layers", layers, NULL));
    OK(pto_register_builder(the_device, "wrong", wrong, NULL));
    uint64_t words[3] = {0, 0, 0};
    uint32_t cells[2 * CELLS];
    OK(pto_device_malloc(the_device, sizeof cells, &words[0]));
    OK(pto_device_malloc(the_device, 64, &words[1]));
    pto_run_options run;
    OK(pto_run_options_init(&run));
    run.window = 64;
    for (words[2] = 0; words[2] < 2; words[2]++) {
        pto_run_report report;
        memset(cells, 0, sizeof cells);
        OK(pto_copy_to_device(the_device, words[0], cells, sizeof cells));
        OK(pto_run_stream(the_device, "layers", words, 3, &run, &report));
        CHECK(report.tasks == 5 * LAYERS + 2);
        OK(pto_copy_from_device(the_device, cells, words[0], sizeof cells));
        for (int i = 0; i < 2 * CELLS; i++) {
            /* Layers 1, 3, 5 are on the first table, 2 and 4 on the second one. */
            const uint32_t sum = i < CELLS ? 9 : 6, block = i % CELLS / 3;
            const uint32_t times = block < 2 ? 2 : 1, once = i % CELLS == 1 ? 1 : 0;
            CHECK(cells[i] == sum * (times + once));
        }
    }
    for (words[2] = 0; words[2] < sizeof faults / sizeof faults[0]; words[2]++) {
        FAILS((int32_t)faults[words[2]], pto_run_stream(the_device, "wrong", words, 3, NULL, NULL));
    }
    OK(pto_device_close(the_device));
    return 0;
}

/* Ranges in C: tasks without tensors in every kind of run, tasks with tensors in a streaming one; and what is refused. */
#include "check.h"

#include "tensors.h"

enum { AIV = 1, ADD = 0, STEP = 1, WIDTH = 100, ROWS = 5 };

static pto_device *the_device;

/* to = 1 + the sum of `count` numbers that stand side by side. Words: from, count, to. */
static void add(int64_t *args) {
    const uint64_t *from = (const uint64_t *)args[0];
    uint64_t sum = 1;
    for (int64_t i = 0; i < args[1]; i++) {
        sum += from[i];
    }
    *(uint64_t *)args[2] = sum;
}

/* x[i] = x[i] + step, of unsigned numbers. Words: x, step, n. */
static void step(int64_t *args) {
    uint32_t *x = (uint32_t *)args[0];
    for (int64_t i = 0; i < args[2]; i++) {
        x[i] += (uint32_t)args[1];
    }
}

static pto_range_wait window(int64_t first, int32_t from, uint32_t width) {
    return (pto_range_wait){.kind = PTO_RANGE_WAIT_WINDOW, .count = WIDTH, .first = first, .from = from, .width = width, .stride = 1};
}

/* Rows of sums of the three neighbours above, and one sum of the last row. Words: rows of WIDTH numbers, followed by the sum. */
static int32_t rows(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    int64_t above = -1, row = -1;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    for (uint64_t number = 0; number < ROWS; number++) {
        const uint64_t to = words[0] + 8 * WIDTH * number;
        uint64_t places[WIDTH], counts[WIDTH];
        for (uint64_t i = 0; i < WIDTH; i++) {
            const uint64_t low = i == 0 ? 0 : i - 1, high = i + 2 > WIDTH ? WIDTH : i + 2;
            places[i] = number == 0 ? to : to - 8 * WIDTH + 8 * low;
            counts[i] = number == 0 ? 0 : high - low;
        }
        const uint64_t args[] = {0, 0, to};
        const pto_stream_variation varies[] = {{.arg = 0, .count = WIDTH, .words = places}, {.arg = 1, .count = WIDTH, .words = counts},
                                               {.arg = 2, .step = 8}};
        const pto_range_wait waits[] = {window(above, -1, 3)};
        const pto_task_range range = {.struct_size = sizeof range, .func_id = ADD, .core_type = AIV, .tasks = WIDTH, .args = args,
                                      .variations = varies, .waits = waits, .arg_count = 3, .variation_count = 3,
                                      .wait_count = number == 0 ? 0 : 1};
        OK(pto_builder_submit_range(builder, &range, &row));
        CHECK(row == (int64_t)(WIDTH * number));
        above = row;
    }
    const uint64_t last = words[0] + 8 * WIDTH * (ROWS - 1), args[] = {last, WIDTH, last + 8 * WIDTH};
    const pto_range_wait all = {.kind = PTO_RANGE_WAIT_ALL, .count = WIDTH, .first = above};
    const pto_task_range one = {.struct_size = sizeof one, .func_id = ADD, .core_type = AIV, .tasks = 1, .args = args, .waits = &all,
                                .arg_count = 3, .wait_count = 1};
    OK(pto_builder_submit_range(builder, &one, NULL));
    return 0;
}

/* Waits of every kind, and a wait without producers: each task of the second range reads what the producers that it waits for have written.
 * Words: four numbers, followed by three sums. */
static int32_t listed(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    int64_t first;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    const uint64_t args[] = {words[0], 0, words[0]};
    const pto_stream_variation moves = {.arg = 2, .step = 8};
    pto_task_range range = {.struct_size = sizeof range, .func_id = ADD, .core_type = AIV, .tasks = 4, .args = args, .variations = &moves,
                            .arg_count = 3, .variation_count = 1};
    OK(pto_builder_submit_range(builder, &range, &first));
    const uint64_t sums[] = {words[0], 0, words[0] + 32}, from[] = {words[0], words[0] + 16, words[0] + 16}, counts[] = {2, 0, 2};
    const pto_stream_variation varies[] = {{.arg = 0, .count = 3, .words = from}, {.arg = 1, .count = 3, .words = counts},
                                           {.arg = 2, .step = 8}};
    const int64_t numbers[] = {first, first + 1, first + 2, first + 3};
    const uint32_t ends[] = {2, 2, 4};
    const pto_range_wait waits[] = {{.kind = PTO_RANGE_WAIT_LISTED, .count = 4, .producers = numbers, .ends = ends},
                                    {.kind = PTO_RANGE_WAIT_ALL}};
    range.tasks = 3;
    range.args = sums;
    range.variations = varies;
    range.variation_count = 3;
    range.waits = waits;
    range.wait_count = 2;
    OK(pto_builder_submit_range(builder, &range, NULL));
    return 0;
}

/* Ranges on tensors: each task adds to a tile of its own. Words: x, of 64 numbers; with another word, a range of no tasks follows. */
static int32_t tiles(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t count;
    int64_t first;
    (void)user;
    OK(pto_builder_words(builder, &words, &count));
    pto_stream_tensor tile = whole(words[0], 64);
    tile.shape[0] = 8;
    const pto_stream_task task = {.struct_size = sizeof task, .func_id = STEP, .core_type = AIV};
    const pto_stream_arg args[] = {argument(PTO_ARG_KIND_INOUT, tile), word(PTO_ARG_KIND_SCALAR, 1), word(PTO_ARG_KIND_SCALAR, 8)};
    const pto_stream_variation varies[] = {{.arg = 0, .step = 32}, {.arg = 1, .step = 1}};
    OK(pto_builder_submit_tensor_range(builder, &task, args, 3, NULL, 0, 8, varies, 2, &first));
    CHECK(first == 0);
    OK(pto_builder_submit_tensor_range(builder, &task, args, 3, &first, 1, 8, varies, 2, NULL));
    if (count == 2) {
        FAILS(PTO_FAULT_BUILD_RANGE_LENGTH, pto_builder_submit_tensor_range(builder, &task, args, 3, NULL, 0, 0, varies, 2, NULL));
    }
    return 0;
}

/* What is wrong with a range. */
typedef struct {
    int32_t fault;
    pto_task_range range;
} wrong_range;

static int32_t wrong(pto_builder *builder, void *user) {
    const wrong_range *what = user;
    const uint64_t none[] = {0, 0, 0};
    pto_task_range good = {.struct_size = sizeof good, .func_id = ADD, .core_type = AIV, .tasks = 1, .args = none, .arg_count = 3};
    OK(pto_builder_submit_range(builder, &good, NULL));
    FAILS(what->fault, pto_builder_submit_range(builder, &what->range, NULL));
    /* The first failure stays. */
    FAILS(what->fault, pto_builder_submit_range(builder, &good, NULL));
    return 0;
}

static void refused(int32_t fault, pto_task_range range) {
    wrong_range what = {fault, range};
    OK(pto_register_builder(the_device, "wrong", wrong, &what));
    FAILS(fault, pto_run_builder(the_device, "wrong", NULL, 0, NULL, NULL));
    OK(pto_unregister_builder(the_device, "wrong"));
}

static uint64_t sum(const uint64_t *from, uint64_t count) {
    uint64_t sum = 1;
    for (uint64_t i = 0; i < count; i++) {
        sum += from[i];
    }
    return sum;
}

int main(void) {
    pto_device_options options;
    OK(pto_device_options_init(&options));
    /* Fewer clusters than AICPU instances where there are more. */
    options.aic = 2;
    options.aiv = 4;
    options.gm_bytes = 512 << 20;
    OK(pto_device_open("a2a3sim", &options, &the_device));
    OK(pto_register_kernel_function(the_device, ADD, AIV, "add", add));
    OK(pto_register_kernel_function(the_device, STEP, AIV, "step", step));
    OK(pto_register_builder(the_device, "rows", rows, NULL));
    OK(pto_register_builder(the_device, "listed", listed, NULL));
    OK(pto_register_builder(the_device, "tiles", tiles, NULL));

    uint64_t expected[ROWS * WIDTH + 1], values[ROWS * WIDTH + 1], address;
    for (uint64_t i = 0; i < ROWS * WIDTH; i++) {
        const uint64_t at = i % WIDTH, low = at == 0 ? 0 : at - 1, high = at + 2 > WIDTH ? WIDTH : at + 2;
        expected[i] = i < WIDTH ? 1 : sum(expected + (i - at) - WIDTH + low, high - low);
    }
    expected[ROWS * WIDTH] = sum(expected + (ROWS - 1) * WIDTH, WIDTH);
    OK(pto_device_malloc(the_device, sizeof values, &address));
    pto_run_report report;
    for (int way = 0; way < 3; way++) {
        pto_run_options run;
        OK(pto_run_options_init(&run));
        run.build_mode = way == 0 ? 0 : 1;
        memset(values, 0, sizeof values);
        OK(pto_copy_to_device(the_device, address, values, sizeof values));
        if (way < 2) {
            OK(pto_run_builder(the_device, "rows", &address, 1, &run, &report));
        } else {
            OK(pto_run_stream(the_device, "rows", &address, 1, NULL, &report));
        }
        CHECK(report.tasks == ROWS * WIDTH + 1);
        /* As many edges as there are neighbours above, and those of the sum. */
        CHECK(way > 0 || report.edges == (ROWS - 1) * (3 * WIDTH - 2) + WIDTH);
        OK(pto_copy_from_device(the_device, values, address, sizeof values));
        CHECK(memcmp(values, expected, sizeof values) == 0);
        memset(values, 0, sizeof values);
        OK(pto_copy_to_device(the_device, address, values, sizeof values));
        if (way < 2) {
            OK(pto_run_builder(the_device, "listed", &address, 1, &run, &report));
            CHECK(report.tasks == 7 && (way > 0 || report.edges == 4));
        } else {
            OK(pto_run_stream(the_device, "listed", &address, 1, NULL, &report));
        }
        OK(pto_copy_from_device(the_device, values, address, sizeof values));
        const uint64_t sums[] = {1, 1, 1, 1, 3, 1, 3};
        CHECK(memcmp(values, sums, sizeof sums) == 0);
    }
    uint32_t x[64] = {0};
    OK(pto_copy_to_device(the_device, address, x, sizeof x));
    OK(pto_run_stream(the_device, "tiles", &address, 1, NULL, &report));
    CHECK(report.tasks == 16);
    OK(pto_copy_from_device(the_device, x, address, sizeof x));
    for (uint32_t i = 0; i < 64; i++) {
        CHECK(x[i] == 2 * (1 + i / 8));
    }
    const uint64_t more[] = {address, 0};
    FAILS(PTO_FAULT_BUILD_RANGE_LENGTH, pto_run_stream(the_device, "tiles", more, 2, NULL, NULL));

    const uint64_t args[32] = {0};
    const pto_task_range good = {.struct_size = sizeof good, .func_id = ADD, .core_type = AIV, .tasks = 2, .args = args, .arg_count = 3};
    pto_task_range range = good;
    range.struct_size = 8;
    refused(PTO_FAULT_BUILD_FOREIGN_STRUCT, range);
    range = good;
    range.reserved = 1;
    refused(PTO_FAULT_BUILD_FOREIGN_STRUCT, range);
    range = good;
    range.tasks = 0;
    refused(PTO_FAULT_BUILD_RANGE_LENGTH, range);
    range.tasks = PTO_RANGE_TASKS + 1;
    refused(PTO_FAULT_BUILD_RANGE_LENGTH, range);
    range = good;
    range.args = NULL;
    refused(PTO_FAULT_BUILD_NULL_POINTER, range);
    range = good;
    range.arg_count = 32;
    refused(PTO_FAULT_BUILD_CHAIN_LIMIT, range);
    range.arg_count = 129;
    refused(PTO_FAULT_BUILD_TOO_MANY_ARGS, range);
    range = good;
    range.core_type = 7;
    refused(PTO_FAULT_BUILD_UNKNOWN_KIND, range);
    const pto_stream_variation far = {.arg = 3, .step = 1}, few = {.arg = 0, .count = 1, .words = args};
    range = good;
    range.variation_count = 1;
    refused(PTO_FAULT_BUILD_NULL_POINTER, range);
    range.variations = &far;
    refused(PTO_FAULT_BUILD_CHAIN_VARIES, range);
    range.variations = &few;
    refused(PTO_FAULT_BUILD_CHAIN_VARIES, range);
    const uint32_t short_ends[] = {0, 0}, ends[] = {1, 1};
    const pto_range_wait unknown = {.kind = PTO_RANGE_WAIT_ALL, .count = 2}, odd = {.kind = 3, .count = 1},
                         endless = {.kind = PTO_RANGE_WAIT_LISTED, .count = 1},
                         uneven = {.kind = PTO_RANGE_WAIT_LISTED, .count = 1, .ends = short_ends},
                         many = {.kind = PTO_RANGE_WAIT_LISTED, .count = PTO_RANGE_PRODUCERS + 1, .first = 0, .ends = ends},
                         negative = {.kind = PTO_RANGE_WAIT_ALL, .count = 1, .first = -1};
    range = good;
    range.wait_count = 1;
    refused(PTO_FAULT_BUILD_NULL_POINTER, range);
    range.waits = &unknown;
    refused(PTO_FAULT_BUILD_UNKNOWN_TASK, range);
    range.waits = &negative;
    refused(PTO_FAULT_BUILD_UNKNOWN_TASK, range);
    range.waits = &odd;
    refused(PTO_FAULT_BUILD_FOREIGN_STRUCT, range);
    range.waits = &endless;
    refused(PTO_FAULT_BUILD_NULL_POINTER, range);
    range.waits = &uneven;
    refused(PTO_FAULT_BUILD_RANGE_LENGTH, range);
    range.waits = &many;
    refused(PTO_FAULT_BUILD_UNKNOWN_TASK, range);
    refused(PTO_FAULT_BUILD_NULL_POINTER, (pto_task_range){.struct_size = sizeof good, .tasks = 1, .wait_count = 1});
    range.wait_count = PTO_RANGE_WAITS + 1;
    const pto_range_wait nine[PTO_RANGE_WAITS + 1] = {{.kind = 0}};
    range.waits = nine;
    refused(PTO_FAULT_BUILD_RANGE_LENGTH, range);
    FAILS(PTO_ERROR_OUTSIDE_BUILDER, pto_builder_submit_range(NULL, &good, NULL));
    OK(pto_device_close(the_device));
    return 0;
}

/* A builder program in C, its faults, logs, a cancelled run, and calls from where they do not belong. */
#include "check.h"
#include "pto_abi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { AIV = 1, WIDTH = 50 };

static void count(int64_t *args) { atomic_fetch_add((_Atomic uint32_t *)args[0], 1); }

static atomic_int spins;
static void spin(int64_t *args) {
    (void)args;
    atomic_fetch_add(&spins, 1);
    usleep(20000);
}

static pto_device *the_device;
static pto_builder *stale;

/* A fork: one task, then WIDTH that wait for it. Words: the counter. */
static int32_t fork_out(pto_builder *builder, void *user) {
    const uint64_t *words;
    uint32_t number, value = 1;
    int32_t first;
    OK(pto_builder_words(builder, &words, &number));
    CHECK(number == 1 && user == &the_device);
    OK(pto_builder_read_u32(builder, words[0], &value));
    CHECK(value == 0);
    OK(pto_builder_add_task(builder, 0, AIV, words, 1, &first));
    OK(pto_builder_publish(builder, first));
    for (int i = 0; i < WIDTH; i++) {
        int32_t task;
        OK(pto_builder_add_task(builder, 0, AIV, words, 1, &task));
        OK(pto_builder_add_edge(builder, first, task));
        OK(pto_builder_publish(builder, task));
    }
    /* Memory works in a builder; what needs the device whole does not, and does not hang. */
    uint64_t address;
    OK(pto_device_malloc(the_device, 64, &address));
    OK(pto_device_free(the_device, address));
    FAILS(PTO_ERROR_BUSY, pto_unregister_kernel(the_device, 0));
    FAILS(PTO_ERROR_BUSY, pto_run_builder(the_device, "fork", words, 1, NULL, NULL));
    stale = builder;
    return 0;
}

/* Frees a block of the caller's in the middle of the run: it is not allocated again, and not the caller's any more. */
typedef struct { uint64_t freed; int32_t answer; } frees;
static int32_t frees_memory(pto_builder *builder, void *user) {
    frees *what = user;
    uint64_t other, held;
    (void)builder;
    OK(pto_device_free(the_device, what->freed));
    FAILS(PTO_ERROR_DOUBLE_FREE, pto_device_free(the_device, what->freed));
    FAILS(PTO_ERROR_COPY_OUT_OF_RANGE, pto_copy_from_device(the_device, &held, what->freed, sizeof held));
    OK(pto_device_malloc(the_device, 64, &other));
    CHECK(other != what->freed);
    OK(pto_device_free(the_device, other));
    return what->answer;
}

/* The smallest block that fits is the one that was freed: the block after it keeps its hole apart. */
static void memory_that_is_freed_during_a_run(pto_device *device, int32_t answer, int32_t status) {
    frees what = {0, answer};
    uint64_t next, again;
    OK(pto_device_malloc(device, 64, &what.freed));
    OK(pto_device_malloc(device, 64, &next));
    OK(pto_register_builder(device, "frees_memory", frees_memory, &what));
    CHECK(pto_run_builder(device, "frees_memory", NULL, 0, NULL, NULL) == status);
    OK(pto_device_malloc(device, 64, &again));
    CHECK(again == what.freed);
    OK(pto_device_free(device, again));
    OK(pto_device_free(device, next));
    OK(pto_unregister_builder(device, "frees_memory"));
}

static int32_t gives_up(pto_builder *builder, void *user) {
    (void)builder;
    (void)user;
    return 42;
}

static int32_t wrong_edge(pto_builder *builder, void *user) {
    int32_t task = 0;
    (void)user;
    FAILS(PTO_FAULT_BUILD_UNKNOWN_TASK, pto_builder_add_edge(builder, 0, 1));
    FAILS(PTO_FAULT_BUILD_UNKNOWN_TASK, pto_builder_add_task(builder, 0, AIV, NULL, 0, &task));
    return 0;
}

static int32_t wrong_kind(pto_builder *builder, void *user) {
    int32_t task = 0;
    (void)user;
    FAILS(PTO_FAULT_BUILD_UNKNOWN_KIND, pto_builder_add_task(builder, 0, 5, NULL, 0, &task));
    return 0;
}

static int32_t many_spins(pto_builder *builder, void *user) {
    (void)user;
    for (int i = 0; i < 1000; i++) {
        int32_t task, status = pto_builder_add_task(builder, 1, AIV, NULL, 0, &task);
        if (status == 0) {
            status = pto_builder_publish(builder, task);
        }
        if (status != 0) {
            CHECK(status == PTO_FAULT_RUN_CANCELLED);
            return 0;
        }
    }
    return 0;
}

static atomic_int messages;
static void logged(void *user, uint32_t level, uint32_t instance, uint64_t time_ns, const char *text) {
    (void)instance;
    (void)time_ns;
    CHECK(user == &messages && level <= 5 && text[0] != 0);
    atomic_fetch_add(&messages, 1);
}

static void *cancel(void *control) {
    while (atomic_load(&spins) == 0) {
        usleep(1000);
    }
    pto_run_progress progress;
    OK(pto_control_progress(control, &progress));
    CHECK(progress.running == 1 && progress.completed <= progress.added);
    OK(pto_control_cancel(control));
    return NULL;
}

int main(void) {
    pto_device *device = the_device = open_device();
    uint64_t counter;
    uint32_t value = 0;
    pto_run_report report;
    OK(pto_set_log_callback(logged, &messages, 4));
    OK(pto_device_malloc(device, 64, &counter));
    OK(pto_copy_to_device(device, counter, &value, sizeof value));
    OK(pto_register_kernel_function(device, 0, AIV, "count", count));
    OK(pto_register_kernel_function(device, 1, AIV, "spin", spin));
    OK(pto_register_builder(device, "fork", fork_out, &the_device));
    OK(pto_register_builder(device, "gives_up", gives_up, NULL));
    OK(pto_register_builder(device, "wrong_edge", wrong_edge, NULL));
    OK(pto_register_builder(device, "wrong_kind", wrong_kind, NULL));
    OK(pto_register_builder(device, "many_spins", many_spins, NULL));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_register_builder(device, "null", NULL, NULL));
    for (uint32_t mode = 0; mode < 2; mode++) {
        pto_run_options options;
        OK(pto_run_options_init(&options));
        options.build_mode = mode;
        value = 0;
        OK(pto_copy_to_device(device, counter, &value, sizeof value));
        OK(pto_run_builder(device, "fork", &counter, 1, &options, &report));
        OK(pto_copy_from_device(device, &value, counter, sizeof value));
        CHECK(value == WIDTH + 1 && report.tasks == WIDTH + 1 && report.edges == WIDTH);
        FAILS(PTO_ERROR_OUTSIDE_BUILDER, pto_builder_publish(stale, 0));
    }
    CHECK(atomic_load(&messages) > 0);
    FAILS(PTO_FAULT_BUILD_FAILED, pto_run_builder(device, "gives_up", NULL, 0, NULL, NULL));
    FAILS(PTO_FAULT_BUILD_UNKNOWN_TASK, pto_run_builder(device, "wrong_edge", NULL, 0, NULL, NULL));
    FAILS(PTO_FAULT_BUILD_UNKNOWN_KIND, pto_run_builder(device, "wrong_kind", NULL, 0, NULL, NULL));

    memory_that_is_freed_during_a_run(device, 0, 0);
    memory_that_is_freed_during_a_run(device, 42, PTO_FAULT_BUILD_FAILED);

    pto_control *control;
    pthread_t thread;
    pto_run_options options;
    OK(pto_run_options_init(&options));
    OK(pto_control_create(&control));
    options.control = control;
    CHECK(pthread_create(&thread, NULL, cancel, control) == 0);
    FAILS(PTO_FAULT_RUN_CANCELLED, pto_run_builder(device, "many_spins", NULL, 0, &options, NULL));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&spins) < 1000);
    FAILS(PTO_FAULT_RUN_CANCELLED, pto_run_builder(device, "many_spins", NULL, 0, &options, NULL));
    OK(pto_control_destroy(control));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_run_builder(device, "many_spins", NULL, 0, &options, NULL));

    /* The device works on. */
    value = 0;
    OK(pto_copy_to_device(device, counter, &value, sizeof value));
    OK(pto_run_builder(device, "fork", &counter, 1, NULL, &report));
    OK(pto_unregister_builder(device, "fork"));
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_unregister_builder(device, "fork"));
    OK(pto_set_log_callback(NULL, NULL, 0));
    OK(pto_device_close(device));
    return 0;
}

/* Several threads, one device and several devices, handles closed under the feet of others. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 20, N = 64, AIV = 1 };
static atomic_int has_begun, may_end;

/* A kernel that goes on until it may end. */
static void held(int64_t *args) {
    (void)args;
    atomic_store(&has_begun, 1);
    while (!atomic_load(&may_end)) {
        sched_yield();
    }
}

static void add_one(int64_t *args) {
    uint32_t *values = (uint32_t *)args[0];
    for (int64_t i = 0; i < args[1]; i++) {
        values[i]++;
    }
}

/* Memory, a graph and runs, on a device that others use too. */
static void *use(void *shared) {
    pto_device *device = shared;
    uint32_t values[N] = {0};
    uint64_t address;
    pto_graph *graph;
    OK(pto_device_malloc(device, sizeof values, &address));
    OK(pto_copy_to_device(device, address, values, sizeof values));
    OK(pto_graph_create(&graph));
    const uint64_t words[] = {address, N};
    int32_t before = -1;
    for (int i = 0; i < 10; i++) {
        int32_t task;
        OK(pto_graph_add_task(graph, 0, AIV, words, 2, &task));
        if (before >= 0) {
            OK(pto_graph_add_edge(graph, before, task));
        }
        before = task;
    }
    for (int round = 0; round < ROUNDS; round++) {
        pto_run_report report;
        OK(pto_run_graph(device, graph, NULL, &report));
        CHECK(report.tasks == 10);
    }
    OK(pto_copy_from_device(device, values, address, sizeof values));
    for (int i = 0; i < N; i++) {
        CHECK(values[i] == 10 * ROUNDS);
    }
    /* The error of this thread is not that of another. */
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t at = address + 8 * (uint64_t)(round + 1);
        FAILS(PTO_ERROR_FOREIGN_POINTER, pto_device_free(device, at));
        pto_error error;
        char expected[32];
        OK(pto_last_error(&error));
        snprintf(expected, sizeof expected, "%#llx", (unsigned long long)at);
        CHECK(strstr(error.message, expected) != NULL);
    }
    OK(pto_graph_destroy(graph));
    OK(pto_device_free(device, address));
    return NULL;
}

static void *use_own(void *unused) {
    (void)unused;
    pto_device *device = open_device();
    OK(pto_register_kernel_function(device, 0, AIV, "add_one", add_one));
    use(device);
    OK(pto_device_close(device));
    return NULL;
}

/* Runs until the handle is closed by another thread. */
static void *use_until_closed(void *shared) {
    pto_device *device = shared;
    for (;;) {
        uint64_t address;
        const int32_t status = pto_device_malloc(device, 64, &address);
        if (status != 0) {
            CHECK(status == PTO_ERROR_INVALID_HANDLE);
            return NULL;
        }
    }
}

static void with_threads(void *(*body)(void *), void *shared, void (*meanwhile)(void *)) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, body, shared) == 0);
    }
    if (meanwhile != NULL) {
        meanwhile(shared);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

static void *run_held(void *device) {
    pto_graph *graph;
    int32_t task;
    OK(pto_graph_create(&graph));
    OK(pto_graph_add_task(graph, 1, AIV, NULL, 0, &task));
    OK(pto_run_graph(device, graph, NULL, NULL));
    OK(pto_graph_destroy(graph));
    return NULL;
}

static void *use_until_end(void *device) {
    while (!atomic_load(&may_end)) {
        uint64_t address;
        OK(pto_device_malloc(device, 64, &address));
        OK(pto_device_free(device, address));
    }
    return NULL;
}

/* A session that cannot have the device leaves it to the calls of others, at every moment. */
static void try_sessions(void *device) {
    pthread_t runs;
    CHECK(pthread_create(&runs, NULL, run_held, device) == 0);
    while (!atomic_load(&has_begun)) {
        sched_yield();
    }
    for (int i = 0; i < 20000; i++) {
        pto_session *session = NULL;
        FAILS(PTO_ERROR_BUSY, pto_session_open(device, 0, &session));
    }
    atomic_store(&may_end, 1);
    CHECK(pthread_join(runs, NULL) == 0);
}

static void close_device(void *device) { OK(pto_device_close(device)); }

int main(void) {
    pto_device *device = open_device();
    OK(pto_register_kernel_function(device, 0, AIV, "add_one", add_one));
    with_threads(use, device, NULL);
    with_threads(use_own, NULL, NULL);
    OK(pto_register_kernel_function(device, 1, AIV, "held", held));
    with_threads(use_until_end, device, try_sessions);
    with_threads(use_until_closed, device, close_device);
    return 0;
}

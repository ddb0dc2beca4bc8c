/* Two kernels, one waits for the other: y = 2 * x, then y = y + 1. */
#include <stdio.h>

#include "pto_runtime.h"

static void twice(int64_t *args) {
    const float *x = (const float *)args[0];
    float *y = (float *)args[1];
    for (int64_t i = 0; i < args[2]; i++) {
        y[i] = 2 * x[i];
    }
}

static void plus_one(int64_t *args) {
    float *y = (float *)args[0];
    for (int64_t i = 0; i < args[1]; i++) {
        y[i] += 1;
    }
}

static int failed(const char *what) {
    pto_error error;
    pto_last_error(&error);
    fprintf(stderr, "%s: %s (%s)\nwhat to do: %s\n", what, error.message, error.name, error.remedy);
    return 1;
}

int main(void) {
    enum { N = 1000, AIV = 1 };
    float x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
    }

    pto_device *device;
    if (pto_device_open("a2a3sim", NULL, &device) != 0) {
        return failed("open");
    }
    uint64_t dev_x, dev_y;
    if (pto_device_malloc(device, sizeof x, &dev_x) != 0 || pto_device_malloc(device, sizeof y, &dev_y) != 0 ||
        pto_copy_to_device(device, dev_x, x, sizeof x) != 0) {
        return failed("memory");
    }
    if (pto_register_kernel_function(device, 0, AIV, "twice", twice) != 0 ||
        pto_register_kernel_function(device, 1, AIV, "plus_one", plus_one) != 0) {
        return failed("kernels");
    }

    pto_graph *graph;
    int32_t first, second;
    const uint64_t words[] = {dev_x, dev_y, N}, more[] = {dev_y, N};
    if (pto_graph_create(&graph) != 0 || pto_graph_add_task(graph, 0, AIV, words, 3, &first) != 0 ||
        pto_graph_add_task(graph, 1, AIV, more, 2, &second) != 0 || pto_graph_add_edge(graph, first, second) != 0) {
        return failed("graph");
    }

    pto_run_report report;
    if (pto_run_graph(device, graph, NULL, &report) != 0) {
        return failed("run");
    }
    if (pto_copy_from_device(device, y, dev_y, sizeof y) != 0) {
        return failed("result");
    }
    printf("%d tasks, y[10] = %g\n", (int)report.tasks, (double)y[10]);
    pto_graph_destroy(graph);
    pto_device_close(device);
    return y[10] == 21 ? 0 : 1;
}

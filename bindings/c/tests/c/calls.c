/* Calls of library kernels that the kernels cannot take are refused, in C and in C++, and the device goes on. */
#include "check.h"
#include "pto_abi.h"

enum { EXP = 3, EMPTY_AIV = 14, UNKNOWN = 900, AIC = 0, AIV = 1 };

/* Runs a graph of one task; the status. */
static int32_t run(pto_device *device, int32_t func, int32_t kind, const uint64_t *words, uint32_t count) {
    pto_graph *graph = NULL;
    int32_t task = -1;
    OK(pto_graph_create(&graph));
    OK(pto_graph_add_task(graph, func, kind, words, count, &task));
    int32_t status = pto_run_graph(device, graph, NULL, NULL);
    OK(pto_graph_destroy(graph));
    return status;
}

static void refused(pto_device *device, const uint64_t *words, uint32_t count, const char *says) {
    pto_error error;
    FAILS(PTO_ERROR_KERNEL_CALL, run(device, EXP, AIV, words, count));
    OK(pto_last_error(&error));
    CHECK(strstr(error.message, "task 0: exp") != NULL && strstr(error.message, says) != NULL);
}

int main(void) {
    pto_device *device = open_device();
    float ones[4] = {0}, back[4] = {0};
    uint64_t a = 0, out = 0;
    OK(pto_register_library(device));
    OK(pto_device_malloc(device, sizeof ones, &a));
    OK(pto_device_malloc(device, sizeof ones, &out));
    OK(pto_copy_to_device(device, a, ones, sizeof ones));
    const uint64_t right[] = {a, out, 4}, more[] = {a, out, 4, 7}, null[] = {0, out, 4}, none[] = {a, 64, 4};
    const uint64_t five[] = {a, out, 5}, huge[] = {a, out, 500000000};
    refused(device, right, 2, "takes 3 arguments (a, out, n), and the task has 2");
    refused(device, NULL, 0, "takes 3 arguments");
    refused(device, more, 4, "and the task has 4");
    refused(device, null, 3, "argument 0, a, is an address, and 0x0 lies in no allocation");
    refused(device, none, 3, "argument 1, out, is an address");
    refused(device, five, 3, "argument 0, a, reaches to byte 20");
    refused(device, huge, 3, "argument 0, a, reaches to byte 2000000000");
    FAILS(PTO_ERROR_KERNEL_CALL, run(device, EXP, AIC, right, 3));
    FAILS(PTO_ERROR_KERNEL_CALL, run(device, EMPTY_AIV, AIC, NULL, 0));
    FAILS(PTO_FAULT_BUILD_KERNEL_MISSING, run(device, UNKNOWN, AIV, NULL, 0));
    OK(run(device, EXP, AIV, right, 3));
    OK(pto_copy_from_device(device, back, out, sizeof back));
    CHECK(back[0] == 1 && back[3] == 1);
    OK(pto_device_free(device, a));
    refused(device, right, 3, "argument 0, a, is an address");
    OK(pto_device_close(device));
    return 0;
}

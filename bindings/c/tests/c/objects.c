/* Kernels as files: shared and relocatable, by other names, and what cannot be loaded.
 * Arguments: kernel.so kernel.o other.so constructor.o. */
#include "check.h"

#include <unistd.h>

enum { AIV = 1 };

static char *bytes_of(const char *path, uint64_t *bytes) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    *bytes = (uint64_t)ftell(file);
    char *content = malloc(*bytes);
    rewind(file);
    CHECK(content != NULL && fread(content, 1, *bytes, file) == *bytes);
    fclose(file);
    return content;
}

static int64_t result_of(pto_device *device, int32_t func_id, int64_t value) {
    uint64_t address;
    int64_t result = 0;
    int32_t task;
    pto_graph *graph;
    OK(pto_device_malloc(device, 64, &address));
    OK(pto_graph_create(&graph));
    const uint64_t words[] = {address, (uint64_t)value};
    OK(pto_graph_add_task(graph, func_id, AIV, words, 2, &task));
    OK(pto_run_graph(device, graph, NULL, NULL));
    OK(pto_copy_from_device(device, &result, address, sizeof result));
    OK(pto_graph_destroy(graph));
    OK(pto_device_free(device, address));
    return result;
}

int main(int argc, char **argv) {
    CHECK(argc == 5);
    pto_device *device = open_device();
    uint64_t bytes;
    char *object = bytes_of(argv[2], &bytes);
    OK(pto_register_kernel_file(device, 0, AIV, "shared", argv[1], NULL));
    OK(pto_register_kernel_object(device, 1, AIV, "relocatable", object, bytes, NULL));
    OK(pto_register_kernel_file(device, 2, AIV, "other", argv[3], "kernel_entry"));
    OK(pto_register_kernel_file(device, 3, AIV, "negative", argv[1], "other_entry"));
    OK(pto_register_kernel_object(device, 4, AIV, "negative", object, bytes, "other_entry"));
    /* 10 * factor + 7 + (5 + 1), and the variables of each object are its own. */
    CHECK(result_of(device, 0, 10) == 30 + 7 + 6);
    CHECK(result_of(device, 0, 10) == 30 + 7 + 8);
    CHECK(result_of(device, 1, 10) == 30 + 7 + 6);
    CHECK(result_of(device, 2, 10) == 40 + 7 + 6);
    CHECK(result_of(device, 3, 10) == -10 && result_of(device, 4, 10) == -10);
    FAILS(PTO_ERROR_SYMBOL_MISSING, pto_register_kernel_file(device, 5, AIV, "k", argv[1], "no_such"));
    FAILS(PTO_ERROR_SYMBOL_MISSING, pto_register_kernel_file(device, 5, AIV, "k", argv[2], "no_such"));
    FAILS(PTO_ERROR_OBJECT_RELOCATION, pto_register_kernel_file(device, 5, AIV, "k", argv[4], NULL));
    /* An object that is cut off, or has bytes changed, is an error or a kernel, never a crash while it is loaded. */
    for (uint64_t kept = 0; kept < bytes; kept += 97) {
        if (pto_register_kernel_object(device, 6, AIV, "cut", object, kept, NULL) == 0) {
            OK(pto_unregister_kernel(device, 6));
        }
    }
    for (uint64_t at = 18; at < bytes; at += 53) {
        const char held = object[at];
        object[at] = (char)(held ^ 0x5a);
        if (pto_register_kernel_object(device, 6, AIV, "damaged", object, bytes, NULL) == 0) {
            OK(pto_unregister_kernel(device, 6));
        }
        object[at] = held;
    }
    free(object);
    /* A part of a shared object: the system's loader would end the program with SIGBUS. */
    object = bytes_of(argv[1], &bytes);
    for (uint64_t kept = 0; kept < bytes; kept += 397) {
        FAILS(PTO_ERROR_LOAD_FAILED, pto_register_kernel_object(device, 6, AIV, "cut", object, kept, NULL));
    }
    char path[] = "/tmp/pto-cut-XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0 && write(file, object, bytes / 2) == (ssize_t)(bytes / 2) && close(file) == 0);
    FAILS(PTO_ERROR_LOAD_FAILED, pto_register_kernel_file(device, 6, AIV, "cut", path, NULL));
    CHECK(unlink(path) == 0);
    free(object);
    OK(pto_device_close(device));
    return 0;
}

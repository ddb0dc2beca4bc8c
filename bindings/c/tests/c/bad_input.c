/* Every way to misuse the interface is an error with a name, and the next call works. */
#include "check.h"
#include "pto_abi.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static void nothing(int64_t *args) { (void)args; }

static void handles(void) {
    pto_device *device = open_device();
    pto_graph *graph = NULL;
    pto_device_description description;
    uint64_t address, on_stack = 0;
    OK(pto_graph_create(&graph));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_device_describe(NULL, &description));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_device_malloc((pto_device *)graph, 64, &address));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_graph_destroy((pto_graph *)device));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_device_malloc((pto_device *)(void *)&on_stack, 64, &address));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_device_malloc((pto_device *)(uintptr_t)1, 64, &address));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_control_cancel((pto_control *)device));
    FAILS(PTO_ERROR_OUTSIDE_BUILDER, pto_builder_publish((pto_builder *)device, 0));
    FAILS(PTO_ERROR_OUTSIDE_BUILDER, pto_builder_publish(NULL, 0));
    OK(pto_graph_destroy(graph));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_graph_destroy(graph));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_graph_add_edge(graph, 0, 1));
    OK(pto_device_close(device));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_device_close(device));
    FAILS(PTO_ERROR_INVALID_HANDLE, pto_device_free(device, 64));
    /* A new handle is never one that was closed. */
    pto_device *other = open_device();
    CHECK(other != device);
    OK(pto_device_close(other));
}

static void opening(void) {
    pto_device *device = NULL;
    pto_device_options options;
    OK(pto_device_options_init(&options));
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_device_open("a2a3", NULL, &device));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_device_open(NULL, NULL, &device));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_device_open("a2a3sim", &options, NULL));
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_device_open("a2a3\xff", &options, &device));
    options.hosting = 7;
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_device_open("a2a3sim", &options, &device));
    options.hosting = 0;
    options.aic = options.aiv = 0;
    FAILS(PTO_ERROR_WORKERS, pto_device_open("a2a3sim", &options, &device));
    options.aiv = 1;
    options.gm_bytes = UINT64_MAX;
    FAILS(PTO_ERROR_MAP_GM, pto_device_open("a2a3sim", &options, &device));
    options.size = 4;
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_device_open("a2a3sim", &options, &device));
    CHECK(device == NULL);
}

static void memory(void) {
    pto_device *device = open_device();
    uint64_t address = 0;
    char bytes[64] = {0};
    FAILS(PTO_ERROR_ZERO_SIZE, pto_device_malloc(device, 0, &address));
    FAILS(PTO_ERROR_OUT_OF_MEMORY, pto_device_malloc(device, UINT64_MAX, &address));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_device_malloc(device, 64, NULL));
    OK(pto_device_malloc(device, 64, &address));
    FAILS(PTO_ERROR_COPY_OUT_OF_RANGE, pto_copy_to_device(device, address + 1, bytes, 64));
    FAILS(PTO_ERROR_COPY_OUT_OF_RANGE, pto_copy_from_device(device, bytes, 64, 64));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_copy_to_device(device, address, NULL, 64));
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_copy_to_device(device, address, bytes, UINT64_MAX));
    FAILS(PTO_ERROR_FOREIGN_POINTER, pto_device_free(device, address + 8));
    OK(pto_device_free(device, address));
    FAILS(PTO_ERROR_DOUBLE_FREE, pto_device_free(device, address));
    OK(pto_device_close(device));
}

static void kernels(void) {
    pto_device *device = open_device();
    FAILS(PTO_FAULT_BUILD_UNKNOWN_FUNC, pto_register_kernel_function(device, -1, 0, "k", nothing));
    FAILS(PTO_FAULT_BUILD_UNKNOWN_FUNC, pto_register_kernel_function(device, 1024, 0, "k", nothing));
    FAILS(PTO_FAULT_BUILD_UNKNOWN_KIND, pto_register_kernel_function(device, 0, 2, "k", nothing));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_register_kernel_function(device, 0, 0, "k", NULL));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_register_kernel_function(device, 0, 0, NULL, nothing));
    OK(pto_register_kernel_function(device, 0, 0, "k", nothing));
    FAILS(PTO_ERROR_DUPLICATE_FUNC_ID, pto_register_kernel_function(device, 0, 0, "k", nothing));
    FAILS(PTO_ERROR_UNKNOWN_KERNEL, pto_register_library_kernel(device, 5, "no_such"));
    FAILS(PTO_ERROR_FUNC_ID_NOT_REGISTERED, pto_unregister_kernel(device, 7));
    FAILS(PTO_ERROR_LOAD_FAILED, pto_register_kernel_file(device, 8, 0, "k", "/no/such.so", NULL));
    FAILS(PTO_ERROR_LOAD_FAILED, pto_register_kernel_object(device, 8, 0, "k", "no object", 9, NULL));
    OK(pto_unregister_kernel(device, 0));
    OK(pto_device_close(device));
}

static void graphs(void) {
    pto_device *device = open_device();
    pto_graph *graph = NULL;
    int32_t task = -1, other = -1;
    uint64_t words[129] = {0};
    pto_run_options options;
    OK(pto_run_options_init(&options));
    OK(pto_register_kernel_function(device, 0, 1, "nothing", nothing));
    OK(pto_graph_create(&graph));
    FAILS(PTO_FAULT_BUILD_TOO_MANY_ARGS, pto_graph_add_task(graph, 0, 1, words, 129, &task));
    FAILS(PTO_ERROR_NULL_ARGUMENT, pto_graph_add_task(graph, 0, 1, NULL, 1, &task));
    FAILS(PTO_FAULT_BUILD_UNKNOWN_TASK, pto_graph_add_edge(graph, 0, 1));
    OK(pto_graph_add_task(graph, 0, 1, NULL, 0, &task));
    OK(pto_graph_add_task(graph, 0, 1, NULL, 0, &other));
    CHECK(task == 0 && other == 1);
    FAILS(PTO_FAULT_BUILD_SELF_EDGE, pto_graph_add_edge(graph, task, task));
    OK(pto_graph_add_edge(graph, task, other));
    OK(pto_run_graph(device, graph, &options, NULL));
    OK(pto_graph_add_edge(graph, other, task));
    FAILS(PTO_FAULT_GRAPH_CYCLE, pto_run_graph(device, graph, &options, NULL));
    OK(pto_graph_destroy(graph));
    OK(pto_graph_create(&graph));
    OK(pto_graph_add_task(graph, 99, 1, NULL, 0, &task));
    FAILS(PTO_FAULT_BUILD_KERNEL_MISSING, pto_run_graph(device, graph, NULL, NULL));
    options.build_mode = 9;
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_run_graph(device, graph, &options, NULL));
    OK(pto_run_options_init(&options));
    FAILS(PTO_FAULT_RUNTIME_ORCH_ARGC, pto_run_builder(device, "b", words, 129, &options, NULL));
    FAILS(PTO_FAULT_BUILD_NO_BUILDER, pto_run_builder(device, "b", words, 1, &options, NULL));
    options.tasks = UINT32_MAX;
    FAILS(PTO_ERROR_CAPACITY, pto_run_builder(device, "b", words, 1, &options, NULL));
    OK(pto_graph_destroy(graph));
    OK(pto_device_close(device));
}

static void errors(void) {
    pto_error error;
    pto_clear_error();
    OK(pto_last_error(&error));
    CHECK(error.code == 0 && error.name[0] == 0 && error.message[0] == 0);
    CHECK(pto_last_error(NULL) == PTO_ERROR_NULL_ARGUMENT);
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_set_log_callback(NULL, NULL, 6));
    CHECK(strcmp(pto_error_name(PTO_ERROR_BUSY), "BUSY") == 0);
    CHECK(strcmp(pto_error_name(PTO_FAULT_GRAPH_CYCLE), "GRAPH_CYCLE") == 0);
    CHECK(pto_error_remedy(PTO_FAULT_GRAPH_CYCLE)[0] != 0 && pto_error_sentence(PTO_ERROR_BUSY)[0] != 0);
    CHECK(pto_error_name(12345)[0] == 0);
    pto_library_versions versions;
    OK(pto_versions(&versions));
    CHECK(versions.interface == PTO_INTERFACE_VERSION && versions.abi_major == PTO_ABI_MAJOR);
    CHECK(versions.layout_hash == PTO_LAYOUT_HASH && pto_release()[0] != 0);
}

static void images(void) {
    uint32_t count = 7, generation = 0;
    pto_flashed_image list[2];
    const char *paths[] = {"/dev/null"};
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_flashed("toaster", list, 2, &count));
    OK(pto_flashed("qemu", list, 2, &count));
    CHECK(count == 0);
    FAILS(PTO_ERROR_IMAGE, pto_flash("qemu", paths, 1, &generation));
    FAILS(PTO_ERROR_STORE, pto_rollback("qemu", NULL));
    pto_device *device = NULL;
    FAILS(PTO_ERROR_IMAGE, pto_device_open("qemu", NULL, &device));
}

static const char TWICE[] =
    "workload twice {\n  schedule round_robin workers 1 window 8192 stall\n  tensor X : f32[32, 32]\n  tensor Y : f32[32, 32]\n"
    "  kernel double(x: in f32[32, 32], y: out f32[32, 32]) {\n    %0 = load x : f32[32, 32]\n    %1 = add %0, %0 : f32[32, 32]\n"
    "    store y, %1\n  }\n  do parallel i in dense 1 {\n    double[i](x = X, y = Y)\n  }\n}";

/* A file that cannot be written is an error, and the previous one stays. */
static void files(void) {
    pto_program *program = NULL, *read = NULL;
    char path[] = "/tmp/pto-file-XXXXXX";
    const int file = mkstemp(path);
    struct rlimit limit;
    CHECK(file >= 0 && close(file) == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const struct rlimit small = {16, limit.rlim_max};
    OK(pto_program_of_text(TWICE, &program));
    OK(pto_program_save(program, path));
    FAILS(PTO_ERROR_PROGRAM, pto_program_save(program, "/dev/full"));
    FAILS(PTO_ERROR_PROGRAM, pto_program_save(program, "/no/such/folder/file"));
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &small) == 0);
    FAILS(PTO_ERROR_PROGRAM, pto_program_save(program, path));
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    OK(pto_program_read(path, &read));
    CHECK(unlink(path) == 0);

    pto_device *device = open_device();
    pto_graph *graph = NULL;
    pto_run_options options;
    int32_t task;
    OK(pto_register_kernel_function(device, 0, 1, "k", nothing));
    OK(pto_graph_create(&graph));
    OK(pto_graph_add_task(graph, 0, 1, NULL, 0, &task));
    OK(pto_run_options_init(&options));
    options.trace_file = "/dev/full";
    FAILS(PTO_ERROR_INVALID_ARGUMENT, pto_run_graph(device, graph, &options, NULL));
    OK(pto_graph_destroy(graph));
    OK(pto_device_close(device));
    OK(pto_program_destroy(program));
    OK(pto_program_destroy(read));
}

int main(void) {
    files();
    handles();
    opening();
    memory();
    kernels();
    graphs();
    errors();
    images();
    return 0;
}

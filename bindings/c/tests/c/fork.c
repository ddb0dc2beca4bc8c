/* A child of fork: what its parent opened is refused, what it opens itself works, and it ends as it should. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AIV = 1, NOP = 14 };

/* What only threads of the parent have looks like a leak in the child. */
static int is_child;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return is_child; }

static void nothing(int64_t *args) { (void)args; }

static pto_graph *graph_of_one(void) {
    pto_graph *graph;
    int32_t task;
    OK(pto_graph_create(&graph));
    OK(pto_graph_add_task(graph, 0, AIV, NULL, 0, &task));
    return graph;
}

static pto_device *open_with_kernel(void) {
    pto_device *device = open_device();
    OK(pto_register_kernel_function(device, 0, AIV, "nothing", nothing));
    return device;
}

/* Looks for a handle again and again. */
static atomic_int is_over;
static void *looks(void *none) {
    while (!is_over) {
        pto_graph_destroy((pto_graph *)none);
    }
    return NULL;
}

/* Another thread is in a call when the process forks: the child does not wait for that call. */
static void fork_beside_calls(pto_device *device) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, looks, NULL) == 0);
    for (int i = 0; i < 200; i++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(60);
            _exit(pto_device_close(device) == (int32_t)PTO_ERROR_OTHER_PROCESS ? 7 : 1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    is_over = 1;
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) {
    pto_device *device = open_with_kernel(), *of_session = open_device();
    pto_graph *graph = graph_of_one();
    pto_session *session;
    pto_kernel_stream *stream;
    pto_event *event;
    OK(pto_run_graph(device, graph, NULL, NULL));
    OK(pto_session_open(of_session, 0, &session));
    OK(pto_kernel_stream_open(session, &stream));
    OK(pto_event_open(session, &event));
    OK(pto_kernel_stream_launch(stream, NOP, 1, NULL, 0));
    OK(pto_kernel_stream_synchronize(stream, UINT64_MAX));
    const pid_t parent = getpid(), child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        is_child = 1;
        uint64_t address;
        uint32_t is_complete;
        pto_error error;
        char says[64];
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_run_graph(device, graph, NULL, NULL));
        snprintf(says, sizeof says, "opened in process %d", (int)parent);
        CHECK(pto_last_error(&error) == 0 && strstr(error.message, says) != NULL);
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_device_malloc(device, 64, &address));
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_kernel_stream_launch(stream, NOP, 1, NULL, 0));
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_kernel_stream_synchronize(stream, UINT64_MAX));
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_event_query(event, &is_complete));
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_session_synchronize(session));
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_kernel_stream_close(stream));
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_session_close(session));
        FAILS(PTO_ERROR_OTHER_PROCESS, pto_device_close(device));
        pto_device *own = open_with_kernel();
        OK(pto_run_graph(own, graph, NULL, NULL));
        OK(pto_device_close(own));
        OK(pto_graph_destroy(graph));
        exit(7);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    OK(pto_run_graph(device, graph, NULL, NULL));
    OK(pto_kernel_stream_launch(stream, NOP, 1, NULL, 0));
    OK(pto_kernel_stream_synchronize(stream, UINT64_MAX));
    OK(pto_event_close(event));
    OK(pto_kernel_stream_close(stream));
    OK(pto_session_close(session));
    fork_beside_calls(device);
    OK(pto_device_close(device));
    OK(pto_graph_destroy(graph));
    return 0;
}

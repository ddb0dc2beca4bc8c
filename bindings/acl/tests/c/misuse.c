/* A program that breaks rules: one for each word of its arguments. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "pto_acl.h"

static void slow(void *argument) {
    (void)argument;
    usleep(50000);
}

/* Each rule is broken in a function of its own: the report names it. */
__attribute__((noinline)) void uses_dead_stream(aclrtStream stream) {
    aclrtDestroyStream(stream);
    aclrtSynchronizeStream(stream);
}

__attribute__((noinline)) void frees_twice(void *memory) {
    aclrtFree(memory);
    aclrtFree(memory);
}

__attribute__((noinline)) void changes_source(aclrtStream stream, void *device) {
    char *host;
    aclrtMallocHost((void **)&host, 4096);
    memset(host, 1, 4096);
    aclrtLaunchHostFunc(stream, slow, NULL);
    aclrtMemcpyAsync(device, 4096, host, 4096, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    host[17] = 2;
    aclrtSynchronizeStream(stream);
    aclrtFreeHost(host);
}

__attribute__((noinline)) void leaks(void) {
    aclrtEvent event;
    for (int i = 0; i < 3; i++) aclrtCreateEvent(&event);
}

/* Two streams write the same bytes, and nothing orders them. */
__attribute__((noinline)) void races(aclrtStream stream, aclrtStream second, void *memory) {
    for (int i = 0; i < 3; i++) {
        aclrtMemsetAsync(memory, 4096, 1, 4096, stream);
        aclrtMemsetAsync((char *)memory + 64, 64, 2, 64, second);
        aclrtSynchronizeDevice();
    }
}

/* The host reads what a stream still writes. */
__attribute__((noinline)) void reads_early(aclrtStream stream, void *memory) {
    char bytes[64];
    aclrtMemsetAsync(memory, 4096, 1, 4096, stream);
    aclrtMemcpy(bytes, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST);
}

__attribute__((noinline)) void frees_early(aclrtStream stream) {
    void *other;
    aclrtMalloc(&other, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMemsetAsync(other, 4096, 1, 4096, stream);
    aclrtFree(other);
}

/* A kernel has the memory, and no thread has waited for it. */
static void nothing(int64_t *arguments) { (void)arguments; }

__attribute__((noinline)) void frees_under_kernel(aclrtStream stream) {
    void *other;
    aclrtFuncHandle function;
    aclrtMalloc(&other, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    ptoAclKernelFromFunction("nothing", nothing, 1, &function);
    uint64_t words[1] = {(uint64_t)other};
    aclrtLaunchHostFunc(stream, slow, NULL);
    ptoAclLaunch(function, 1, words, 1, stream);
    aclrtFree(other);
}

__attribute__((noinline)) void uses_no_handle(void) { aclrtSynchronizeStream((aclrtStream)0x1238); }

__attribute__((noinline)) void destroys_twice(void) {
    aclrtEvent event;
    aclrtCreateEvent(&event);
    aclrtDestroyEvent(event);
    aclrtDestroyEvent(event);
}

/* A stream waits for a record that comes after its own wait. */
__attribute__((noinline)) void waits_for_itself(aclrtStream stream) {
    aclrtEvent event;
    aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC);
    aclrtStreamWaitEvent(stream, event);
    aclrtRecordEvent(event, stream);
    aclrtSynchronizeStream(stream);
    aclrtDestroyEvent(event);
}

/* Everything that orders two streams, and the streams with the host: no rule is broken. */
static void is_ordered(aclrtStream stream, aclrtStream second, void *memory) {
    aclrtEvent event;
    aclrtNotify notify;
    aclmdlRI graph;
    aclrtStreamStatus status;
    char bytes[64], *half = (char *)memory + 2048;
    void *other;
    aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
    aclrtCreateNotify(&notify, 0);
    aclrtMalloc(&other, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    for (int i = 0; i < 3; i++) {
        /* Other bytes of the same block; two that only read. */
        aclrtMemsetAsync(memory, 2048, 1, 2048, stream);
        aclrtMemsetAsync(half, 2048, 2, 2048, second);
        aclrtSynchronizeDevice();
        aclrtMemcpyAsync(other, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
        aclrtMemcpyAsync((char *)other + 64, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, second);
        /* An event, a notify. */
        aclrtRecordEvent(event, second);
        aclrtStreamWaitEvent(stream, event);
        aclrtMemsetAsync(memory, 4096, 3, 4096, stream);
        aclrtRecordNotify(notify, stream);
        aclrtWaitAndResetNotify(notify, second, 0);
        aclrtMemsetAsync(memory, 4096, 4, 4096, second);
        /* The host waits for the event after it, and reads. */
        aclrtRecordEvent(event, second);
        aclrtSynchronizeEvent(event);
        aclrtMemcpy(bytes, 64, memory, 64, ACL_MEMCPY_DEVICE_TO_HOST);
        aclrtMemsetAsync(memory, 4096, 5, 4096, stream);
        do aclrtStreamQuery(stream, &status);
        while (status != ACL_STREAM_STATUS_COMPLETE);
        aclrtMemset(memory, 4096, 6, 4096);
    }
    /* A captured graph with two streams. */
    aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
    aclrtMemsetAsync(memory, 4096, 1, 4096, stream);
    aclrtRecordEvent(event, stream);
    aclrtStreamWaitEvent(second, event);
    aclrtMemsetAsync(memory, 4096, 2, 4096, second);
    aclrtRecordEvent(event, second);
    aclrtStreamWaitEvent(stream, event);
    aclrtMemsetAsync(memory, 4096, 3, 4096, stream);
    aclmdlRICaptureEnd(stream, &graph);
    for (int i = 0; i < 3; i++) aclmdlRIExecuteAsync(graph, stream);
    aclrtSynchronizeStream(stream);
    aclmdlRIDestroy(graph);
    aclrtFree(other);
    aclrtDestroyNotify(notify);
    aclrtDestroyEvent(event);
}

int main(int count, char **arguments) {
    aclrtStream stream, second;
    aclrtContext context;
    void *memory;
    aclInit(NULL);
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "handle") == 0) {
            aclrtCreateStream(&second);
            uses_dead_stream(second);
        }
        if (strcmp(arguments[i], "free") == 0) {
            void *other;
            aclrtMalloc(&other, 64, ACL_MEM_MALLOC_HUGE_FIRST);
            frees_twice(other);
        }
        if (strcmp(arguments[i], "kernel") == 0) frees_under_kernel(stream);
        if (strcmp(arguments[i], "never") == 0) uses_no_handle();
        if (strcmp(arguments[i], "twice") == 0) destroys_twice();
        if (strcmp(arguments[i], "wait") == 0) waits_for_itself(stream);
        if (strcmp(arguments[i], "early") == 0) reads_early(stream, memory);
        if (strcmp(arguments[i], "release") == 0) frees_early(stream);
        if (strcmp(arguments[i], "race") == 0 || strcmp(arguments[i], "order") == 0) {
            aclrtCreateStream(&second);
            if (arguments[i][0] == 'r') races(stream, second, memory);
            else is_ordered(stream, second, memory);
            aclrtDestroyStream(second);
        }
        if (strcmp(arguments[i], "copy") == 0) changes_source(stream, memory);
        if (strcmp(arguments[i], "leak") == 0) leaks();
        if (strcmp(arguments[i], "context") == 0) {
            aclrtCreateContext(&context, 0);
            aclrtLaunchHostFunc(stream, slow, NULL);
            aclrtDestroyContext(context);
            aclrtSetDevice(0);
        }
        if (strcmp(arguments[i], "reset") == 0) {
            aclrtResetDevice(1);
        }
        if (strcmp(arguments[i], "fail") == 0) {
            void *none;
            printf("%d ", aclrtMalloc(&none, 64, ACL_MEM_MALLOC_HUGE_FIRST));
        }
    }
    aclrtSynchronizeStream(stream);
    aclrtFree(memory);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    printf("over\n");
    return 0;
}

/* A program that breaks rules: one for each word of its arguments. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"

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
    aclrtFree(memory);
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    printf("over\n");
    return 0;
}

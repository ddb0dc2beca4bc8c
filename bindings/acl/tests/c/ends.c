/* Ways in which a process ends, or goes on: `ends WAY`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"

static void slow(void *argument) {
    (void)argument;
    usleep(300000);
}

static int use(void) {
    aclrtStream stream;
    void *memory;
    return aclInit(NULL) || aclrtSetDevice(0) || aclrtCreateStream(&stream) ||
           aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST) || aclrtMemsetAsync(memory, 4096, 1, 4096, stream) ||
           aclrtSynchronizeStream(stream);
}

/* Everything goes in an order that nobody would choose; 200 times. */
static int cycles(void) {
    size_t before = 0, now, total;
    for (int i = 0; i < 200; i++) {
        aclrtContext context;
        aclrtStream stream;
        aclrtEvent event;
        void *memory;
        if (aclrtSetDevice(0) || aclrtCreateContext(&context, 0) || aclrtCreateStream(&stream) ||
            aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC) || aclrtMalloc(&memory, 1 << 16, ACL_MEM_MALLOC_HUGE_FIRST) ||
            aclrtMemsetAsync(memory, 1 << 16, 1, 1 << 16, stream) || aclrtRecordEvent(event, stream) ||
            aclrtDestroyContext(context) || aclrtDestroyEvent(event) || aclrtResetDeviceForce(0))
            return 1;
        if (aclrtSetDevice(0) || aclrtGetMemInfo(ACL_HBM_MEM, &now, &total) || aclrtResetDevice(0)) return 1;
        if (i > 0 && now != before) return 1;
        before = now;
    }
    return 0;
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "return";
    if (strcmp(way, "count") == 0) {
        uint32_t devices = 99;
        int32_t first = -1;
        aclError code = aclrtGetDeviceCount(&devices);
        if (devices > 0) code |= aclrtGetPhyDevIdByLogicDevId(2, &first);
        printf("%d %u %d\n", code, devices, first);
        return 0;
    }
    aclrtStream stream;
    int status = 0;
    if (strcmp(way, "cycles") == 0) {
        if (aclInit(NULL) || cycles()) return 1;
    } else if (use()) {
        return 1;
    }
    if (strcmp(way, "fork") == 0) {
        /* The child is told that it has no device; it neither crashes nor hangs. */
        pid_t child = fork();
        if (child == 0) {
            void *memory;
            /* What asks no device works. */
            int knows = aclDataTypeSize(ACL_FLOAT) == 4 && aclrtGetSocName() && strncmp(aclrtGetSocName(), "Ascend", 6) == 0;
            _exit(knows && aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 507000 ? 0 : 1);
        }
        waitpid(child, &status, 0);
        if (status != 0 || aclrtSynchronizeDevice() != 0) return 1;
    }
    if (strcmp(way, "busy") == 0 && (aclrtCreateStream(&stream) || aclrtLaunchHostFunc(stream, slow, NULL))) return 1;
    if (strcmp(way, "reset") == 0 && (aclrtResetDevice(0) || aclFinalize())) return 1;
    printf("%s: ok\n", way);
    fflush(stdout);
    if (strcmp(way, "_exit") == 0) _exit(0);
    return 0;
}

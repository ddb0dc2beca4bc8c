/* Ways in which a process ends, or goes on: `ends WAY`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "acl/acl_prof.h"

static void slow(void *argument) {
    (void)argument;
    usleep(300000);
}

static void slow_a_little(void *argument) {
    (void)argument;
    usleep(200);
}

static int use(void) {
    aclrtStream stream;
    void *memory;
    return aclInit(NULL) || aclrtSetDevice(0) || aclrtCreateStream(&stream) ||
           aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST) || aclrtMemsetAsync(memory, 4096, 1, 4096, stream) ||
           aclrtSynchronizeStream(stream);
}

/* Everything is destroyed in an unusual order; 200 times. */
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

/* One object of each kind, in use by commands that have not begun; then all of them are destroyed, in 100 orders. What a call says then is not looked at: it
   neither crashes nor hangs, and the device has its memory back. */
static int any_order(void) {
    enum { KINDS = 14 };
    size_t before = 0, now, total;
    unsigned seed = 1;
    for (int round = 0; round < 100; round++) {
        aclrtContext context;
        aclrtStream stream, other;
        aclrtEvent old, event;
        aclrtNotify notify;
        aclmdlRI graph;
        aclrtDrvMemHandle physical;
        aclrtPhysicalMemProp property;
        void *memory, *pinned, *addresses, *stamp;
        int order[KINDS];
        memset(&property, 0, sizeof property);
        property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        if (aclrtSetDevice(0) || aclrtCreateContext(&context, 0) || aclrtCreateStream(&stream) || aclrtCreateStream(&other) ||
            aclrtCreateEvent(&old) || aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC) || aclrtCreateNotify(&notify, 0) ||
            aclrtMalloc(&memory, 1 << 16, ACL_MEM_MALLOC_HUGE_FIRST) || aclrtMallocHost(&pinned, 1 << 16) ||
            aclrtReserveMemAddress(&addresses, 2 << 20, 0, NULL, 0) || aclrtMallocPhysical(&physical, 2 << 20, &property, 0) ||
            aclrtMapMem(addresses, 2 << 20, 0, physical, 0))
            return 1;
        aclmdlDesc *description = aclmdlCreateDesc();
        aclmdlDataset *set = aclmdlCreateDataset();
        aclDataBuffer *buffer = aclCreateDataBuffer(memory, 64);
        stamp = aclprofCreateStamp();
        if (aclmdlRICaptureBegin(other, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) || aclrtMemsetAsync(memory, 1 << 16, 2, 1 << 16, other) ||
            aclmdlRICaptureEnd(other, &graph) || aclmdlAddDatasetBuffer(set, buffer))
            return 2;
        if (aclrtLaunchHostFunc(stream, slow_a_little, NULL) || aclrtMemcpyAsync(memory, 4096, pinned, 4096, ACL_MEMCPY_HOST_TO_DEVICE, stream) ||
            aclrtRecordEvent(event, stream) || aclrtStreamWaitEvent(other, event) || aclmdlRIExecuteAsync(graph, other) ||
            aclrtRecordNotify(notify, other) || aclrtRecordEvent(old, other))
            return 3;
        for (int i = 0; i < KINDS; i++) {
            int from = (seed = seed * 1103515245u + 12345u) / 65536 % (unsigned)(i + 1);
            order[i] = order[from];
            order[from] = i;
        }
        for (int i = 0; i < KINDS; i++) {
            switch (order[i]) {
                case 0: aclrtDestroyContext(context); break;
                case 1: aclrtDestroyStream(stream); break;
                case 2: aclrtDestroyStreamForce(other); break;
                case 3: aclrtDestroyEvent(old); break;
                case 4: aclrtDestroyEvent(event); break;
                case 5: aclrtDestroyNotify(notify); break;
                case 6: aclmdlRIDestroy(graph); break;
                case 7: aclrtFreePhysical(physical); break;
                case 8: aclrtUnmapMem(addresses); break;
                case 9: aclrtReleaseMemAddress(addresses); break;
                case 10: aclmdlDestroyDesc(description); break;
                case 11: aclmdlDestroyDataset(set), aclDestroyDataBuffer(buffer); break;
                case 12: aclprofDestroyStamp(stamp); break;
                /* What still reads and writes memory is waited for, as any program has to. */
                case 13: aclrtSetDevice(0), aclrtSynchronizeDevice(), aclrtFree(memory), aclrtFreeHost(pinned); break;
            }
        }
        /* What could not be destroyed without a current context, or before another object, goes here. */
        aclrtSetDevice(0);
        aclrtUnmapMem(addresses);
        aclrtReleaseMemAddress(addresses);
        aclrtFreePhysical(physical);
        aclrtDestroyContext(context);
        aclrtResetDeviceForce(0);
        if (aclrtSetDevice(0) || aclrtGetMemInfo(ACL_HBM_MEM, &now, &total) || aclrtResetDevice(0)) return 4;
        if (round > 0 && now != before) return 5;
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
    } else if (strcmp(way, "any") == 0) {
        if (aclInit(NULL) || (status = any_order())) return 10 + status;
    } else if (use()) {
        return 1;
    }
    if (strcmp(way, "fork") == 0) {
        /* The child gets an error, as it has no device; it neither crashes nor hangs. */
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

/* The pattern of a server for language models: weights that go to the host while the server sleeps and come back to the same addresses, blocks of a cache
   that are swapped in batches, a worker thread with a context of its own. */
#include <pthread.h>

#include "client.h"

enum { SEGMENTS = 3, BLOCKS = 8, BLOCK = 4096 };

static size_t granule;
static aclrtPhysicalMemProp property;

/* Weights at addresses that stay, with memory mapped at them only while it is needed. */
struct segment {
    char *address, *saved;
    aclrtDrvMemHandle memory;
};

static void wake(struct segment *segment) {
    OK(aclrtMallocPhysical(&segment->memory, granule, &property, 0));
    OK(aclrtMapMem(segment->address, granule, 0, segment->memory, 0));
    if (segment->saved) OK(aclrtMemcpy(segment->address, granule, segment->saved, granule, ACL_MEMCPY_HOST_TO_DEVICE));
    free(segment->saved);
    segment->saved = NULL;
}

static void sleep_now(struct segment *segment, int keeps) {
    if (keeps) {
        segment->saved = malloc(granule);
        OK(aclrtMemcpy(segment->saved, granule, segment->address, granule, ACL_MEMCPY_DEVICE_TO_HOST));
    }
    OK(aclrtUnmapMem(segment->address));
    OK(aclrtFreePhysical(segment->memory));
}

static void sleeps_and_wakes(aclrtStream stream) {
    struct segment segments[SEGMENTS];
    char *row = malloc(granule);
    memset(segments, 0, sizeof segments);
    for (int i = 0; i < SEGMENTS; i++) {
        OK(aclrtReserveMemAddress((void **)&segments[i].address, granule, 0, NULL, 1));
        wake(&segments[i]);
        memset(row, 10 + i, granule);
        OK(aclrtMemcpyAsync(segments[i].address, granule, row, granule, ACL_MEMCPY_HOST_TO_DEVICE, stream));
        OK(aclrtSynchronizeStream(stream));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SEGMENTS; i++) sleep_now(&segments[i], 1);
        for (int i = SEGMENTS - 1; i >= 0; i--) wake(&segments[i]);
        for (int i = 0; i < SEGMENTS; i++) {
            OK(aclrtMemcpy(row, granule, segments[i].address, granule, ACL_MEMCPY_DEVICE_TO_HOST));
            HOLDS(row[0] == 10 + i && row[granule - 1] == 10 + i);
        }
    }
    for (int i = 0; i < SEGMENTS; i++) {
        sleep_now(&segments[i], 0);
        OK(aclrtReleaseMemAddress(segments[i].address));
    }
    free(row);
}

static void done(void *argument) { ++*(volatile int *)argument; }

static void *worker(void *argument) {
    aclrtContext context, now;
    aclrtStream stream;
    int32_t device = -1;
    volatile int calls = 0;
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtSetCurrentContext(context));
    OK(aclrtGetCurrentContext(&now));
    HOLDS(now == context && now != argument);
    OK(aclrtGetDevice(&device));
    IS(0, device);
    OK(aclrtCreateStream(&stream));
    OK(aclrtLaunchHostFunc(stream, done, (void *)&calls));
    OK(aclrtSynchronizeStream(stream));
    IS(1, calls);
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyContext(context));
    return NULL;
}

/* Blocks go out to the host in one order, and come in again in another one. */
static void swaps(aclrtStream stream) {
    char *cache, *host, byte;
    void *here[BLOCKS], *there[BLOCKS];
    size_t sizes[BLOCKS], firsts[1] = {0}, failed = SIZE_MAX;
    aclrtMemcpyBatchAttr out, in;
    memset(&out, 0, sizeof out);
    out.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    out.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    memset(&in, 0, sizeof in);
    in.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    in.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    OK(aclrtMalloc((void **)&cache, BLOCKS * BLOCK, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost((void **)&host, BLOCKS * BLOCK));
    for (int i = 0; i < BLOCKS; i++) {
        memset(host, 1 + i, BLOCK);
        OK(aclrtMemcpy(cache + i * BLOCK, BLOCK, host, BLOCK, ACL_MEMCPY_HOST_TO_DEVICE));
        here[i] = cache + i * BLOCK;
        there[i] = host + (BLOCKS - 1 - i) * BLOCK;
        sizes[i] = BLOCK;
    }
    OK(aclrtMemcpyBatchAsync(there, sizes, here, sizes, BLOCKS, &out, firsts, 1, &failed, stream));
    OK(aclrtSynchronizeStream(stream));
    for (int i = 0; i < BLOCKS; i++) {
        IS(BLOCKS - i, host[i * BLOCK]);
        there[i] = host + i * BLOCK;
    }
    OK(aclrtMemcpyBatchAsync(here, sizes, there, sizes, BLOCKS, &in, firsts, 1, &failed, stream));
    OK(aclrtSynchronizeStream(stream));
    for (int i = 0; i < BLOCKS; i++) {
        OK(aclrtMemcpy(&byte, 1, cache + i * BLOCK, 1, ACL_MEMCPY_DEVICE_TO_HOST));
        IS(BLOCKS - i, byte);
    }
    OK(aclrtFreeHost(host));
    OK(aclrtFree(cache));
}

int main(void) {
    aclrtStream stream;
    aclrtContext primary;
    pthread_t thread;
    int64_t cores = 0, also = 0;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtGetCurrentContext(&primary));
    HOLDS(strncmp(aclrtGetSocName(), "Ascend", 6) == 0 && aclFloat16ToFloat(0x7C00) > 3e38f);
    OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &cores));
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &also));
    HOLDS(cores > 0 && cores == also);
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    OK(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule));
    OK(aclrtCreateStream(&stream));
    sleeps_and_wakes(stream);
    swaps(stream);
    pthread_create(&thread, NULL, worker, primary);
    pthread_join(thread, NULL);
    OK(aclrtDestroyStream(stream));
    HOLDS(aclGetRecentErrMsg() == NULL);
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    printf("vllm-ascend: ok\n");
    return 0;
}

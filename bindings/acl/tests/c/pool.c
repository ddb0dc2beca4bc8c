/* The pattern of a backend for language models, with the 38 functions that one calls: a pool in virtual memory, streams and events, a graph
   that is captured once and executed many times. It ends without aclFinalize, as that backend does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "pto_acl.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        aclError code_ = (call);                                                                   \
        if (code_ != ACL_SUCCESS) {                                                                \
            const char *why_ = aclGetRecentErrMsg();                                               \
            printf("%s:%d: %s: %d: %s\n", __FILE__, __LINE__, #call, code_, why_ ? why_ : "none"); \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define NEED(condition)                                             \
    do {                                                            \
        if (!(condition)) {                                         \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
            exit(1);                                                \
        }                                                           \
    } while (0)

enum { COUNT = 4096, STEPS = 50 };

/* (target, left, right, count): target = left + right */
static void add(int64_t *args) {
    float *target = (float *)args[0];
    const float *left = (const float *)args[1], *right = (const float *)args[2];
    for (int64_t i = 0; i < args[3]; i++) target[i] = left[i] + right[i];
}

/* A pool that grows: addresses are reserved once, physical memory is mapped after the mapped part. */
struct pool {
    char *base;
    size_t mapped, used, granule;
    aclrtDrvMemHandle handles[64];
    size_t sizes[64];
    int count;
};

static void open_pool(struct pool *pool) {
    aclrtPhysicalMemProp property = {0};
    memset(pool, 0, sizeof *pool);
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    TRY(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &pool->granule));
    TRY(aclrtReserveMemAddress((void **)&pool->base, (size_t)32 << 30, 0, NULL, 1));
}

static void *take(struct pool *pool, size_t bytes) {
    aclrtPhysicalMemProp property = {0};
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    bytes = (bytes + 127) / 128 * 128;
    if (pool->used + bytes > pool->mapped) {
        size_t more = (bytes + pool->granule - 1) / pool->granule * pool->granule;
        TRY(aclrtMallocPhysical(&pool->handles[pool->count], more, &property, 0));
        TRY(aclrtMapMem(pool->base + pool->mapped, more, 0, pool->handles[pool->count], 0));
        pool->sizes[pool->count++] = more;
        pool->mapped += more;
    }
    pool->used += bytes;
    return pool->base + pool->used - bytes;
}

static void close_pool(struct pool *pool) {
    size_t at = 0;
    for (int i = 0; i < pool->count; at += pool->sizes[i++]) {
        TRY(aclrtUnmapMem(pool->base + at));
        TRY(aclrtFreePhysical(pool->handles[i]));
    }
    TRY(aclrtReleaseMemAddress(pool->base));
}

static void launch(aclrtFuncHandle function, aclrtStream stream, float *target, float *left, float *right) {
    uint64_t words[] = {(uintptr_t)target, (uintptr_t)left, (uintptr_t)right, COUNT};
    TRY(ptoAclLaunch(function, 1, words, 4, stream));
}

int main(void) {
    struct pool pool;
    uint32_t devices;
    int32_t device, can = 0;
    size_t free_bytes, total;
    aclrtStream copies, kernels;
    aclrtEvent arrived, computed;
    aclrtFuncHandle function;
    aclmdlRI graph;
    float *host, *a, *b, *sum, *plain, *peer;
    const size_t bytes = COUNT * sizeof(float);
    TRY(aclInit(NULL));
    TRY(aclrtGetDeviceCount(&devices));
    TRY(aclrtSetDevice(0));
    TRY(aclrtGetDevice(&device));
    NEED(device == 0 && strncmp(aclrtGetSocName(), "Ascend", 6) == 0);
    TRY(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
    TRY(ptoAclKernelFromFunction("add", add, 1, &function));
    TRY(aclrtCreateStream(&copies));
    TRY(aclrtCreateStream(&kernels));
    TRY(aclrtCreateEventWithFlag(&arrived, ACL_EVENT_SYNC));
    TRY(aclrtCreateEvent(&computed));
    TRY(aclrtMallocHost((void **)&host, bytes));
    TRY(aclrtMalloc((void **)&plain, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    open_pool(&pool);
    a = take(&pool, bytes), b = take(&pool, 3 << 20), sum = take(&pool, bytes);
    /* Streams and events. */
    for (int i = 0; i < COUNT; i++) host[i] = (float)i;
    TRY(aclrtMemcpyAsync(a, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE, copies));
    TRY(aclrtMemcpyAsync(b, bytes, a, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, copies));
    TRY(aclrtRecordEvent(arrived, copies));
    TRY(aclrtStreamWaitEvent(kernels, arrived));
    launch(function, kernels, sum, a, b);
    TRY(aclrtRecordEvent(computed, kernels));
    TRY(aclrtSynchronizeEvent(computed));
    TRY(aclrtMemcpy(host, bytes, sum, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    NEED(host[1] == 2 && host[COUNT - 1] == 2 * (COUNT - 1));
    /* A graph: sum = sum + a, then a copy. */
    TRY(aclmdlRICaptureBegin(kernels, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    launch(function, kernels, sum, sum, a);
    TRY(aclrtMemcpyAsync(plain, bytes, sum, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, kernels));
    TRY(aclmdlRICaptureEnd(kernels, &graph));
    for (int i = 0; i < STEPS; i++) TRY(aclmdlRIExecuteAsync(graph, kernels));
    TRY(aclrtSynchronizeStream(kernels));
    TRY(aclrtMemcpy(host, bytes, plain, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    NEED(host[1] == 2 + STEPS && host[COUNT - 1] == (2.0f + STEPS) * (COUNT - 1));
    TRY(aclmdlRIDestroy(graph));
    /* The other device. */
    if (devices > 1) TRY(aclrtDeviceCanAccessPeer(&can, 0, 1));
    if (can) {
        TRY(aclrtDeviceEnablePeerAccess(1, 0));
        TRY(aclrtSetDevice(1));
        TRY(aclrtMalloc((void **)&peer, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
        TRY(aclrtMemset(peer, bytes, 0, bytes));
        TRY(aclrtMemcpy(peer, bytes, sum, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
        TRY(aclrtMemcpy(host, bytes, peer, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
        NEED(host[2] == 2 * (2.0f + STEPS));
        TRY(aclrtFree(peer));
        TRY(aclrtSynchronizeDevice());
        TRY(aclrtResetDevice(1));
        TRY(aclrtSetDevice(0));
    }
    TRY(aclrtDestroyEvent(arrived));
    TRY(aclrtDestroyEvent(computed));
    close_pool(&pool);
    TRY(aclrtFree(plain));
    TRY(aclrtFreeHost(host));
    TRY(aclrtDestroyStream(copies));
    TRY(aclrtDestroyStream(kernels));
    TRY(aclrtResetDevice(0));
    printf("pool: ok\n");
    return 0;
}

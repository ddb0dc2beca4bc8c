/* Random calls in an order that makes sense more often than not, from three threads: `storm SEED CALLS [free]`. Handles are live, stale, of another kind
   or none; sizes are 0, right or huge; streams are captured, devices are reset, and functions that a stream calls make calls themselves.

   One thread makes a call at a time, and the seed says which, so that a seed repeats what it did. With `free` the threads run as they like. A call that
   waits for ever, crashes, or meets an error of the library itself is a defect; so is memory that a reset does not give back. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "pto_acl.h"

enum { THREADS = 3, KEPT = 12, BYTES = 4096, PAGES = 8, HOST = 1 << 16, DEPTH = 2 };

typedef enum { STREAM, EVENT, NOTIFY, CONTEXT, GRAPH, PHYSICAL, BINARY, ARGUMENTS, KINDS } Kind;

static void *kept[KINDS][KEPT];
static void *blocks[KEPT], *pinned[KEPT], *reserved[KEPT];
static aclrtFuncHandle kernel;
static size_t granule;
static _Alignas(4096) unsigned char host[HOST];
static aclrtPhysicalMemProp property;
static const char TILES[] = "kernel add(x: inout f32[8, 16], s: f32) {\n  %0 = load x : f32[8, 16]\n  %1 = scalar s : f32\n"
                            "  %2 = add %0, %1 by one : f32[8, 16]\n  store x, %2\n}\n";

static uint64_t seed;
static int is_free, is_virtual;
static long left;
static pthread_mutex_t baton = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static int turn;
static __thread uint64_t state;
static __thread int depth;
static __thread const char *now = "nothing";

static uint64_t below(uint64_t most) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % most;
}

static void crashed(int number) {
    static const char before[] = "storm: crashed in ";
    (void)!write(2, before, sizeof before - 1);
    (void)!write(2, now, strlen(now));
    (void)!write(2, "\n", 1);
    _exit(100 + number % 20);
}

/* Mostly one of its kind, live or stale; sometimes null, of another kind, or no handle. */
static void *any(Kind kind) {
    static void *const none[] = {NULL, (void *)0x1238, (void *)UINTPTR_MAX, (void *)0x5A00000000000000, host};
    switch (below(16)) {
        case 0: return none[below(sizeof none / sizeof *none)];
        case 1: return kept[below(KINDS)][below(KEPT)];
        default: return kept[kind][below(KEPT)];
    }
}

static void keep(Kind kind, void *made) { kept[kind][below(KEPT)] = made; }

/* An address of a device or of the host, live or stale, with an offset now and then. */
static char *address(void) {
    char *const from[] = {blocks[below(KEPT)], blocks[below(KEPT)], pinned[below(KEPT)], reserved[below(KEPT)], (char *)host};
    char *at = from[below(5)];
    if (at == NULL && below(4)) return (char *)host;
    return below(4) ? at : at + 8 * below(64);
}

/* Memory of the host is read and written as C does: it has to be there. Stale pinned memory is not. */
static char *address_of_device(void) {
    char *const from[] = {blocks[below(KEPT)], blocks[below(KEPT)], reserved[below(KEPT)]};
    char *at = from[below(3)];
    return below(4) || at == NULL ? at : at + 8 * below(64);
}

static char *address_of_host(void) { return (char *)host + 8 * below(HOST / 16); }

static size_t size(void) {
    static const size_t sizes[] = {0, 1, 7, 8, 64, 100, 4096, 8192, SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 62};
    return below(3) ? 8 * below(64) : sizes[below(sizeof sizes / sizeof *sizes)];
}

/* As many bytes as the host has there, or so many that no memory has them. */
static size_t size_of_host(void) {
    const size_t bytes = size();
    return bytes > HOST / 2 && bytes < (size_t)1 << 48 ? 64 : bytes;
}

static uint64_t word(void) { return (uint64_t)(below(2) ? address_of_device() : (char *)below(100)); }

static void idle(int64_t *words) { (void)words; }

static void one_call(void);

/* A function that a stream calls, and that makes calls itself. */
static void calls_back(void *argument) {
    (void)argument;
    if (depth >= DEPTH) return;
    depth++;
    for (int i = 0; i < 3; i++) one_call();
    depth--;
}

/* The calls that wait, or take what other threads work on. A function of a stream makes none of them: it would wait for itself. */
static void big_call(void) {
    void *made = NULL;
    switch (below(14)) {
        case 0: now = "aclrtSynchronizeStream", aclrtSynchronizeStream(any(STREAM)); break;
        case 1: now = "aclrtSynchronizeStreamWithTimeout", aclrtSynchronizeStreamWithTimeout(any(STREAM), (int32_t)below(5) - 1); break;
        /* One that was reset and is recorded no more is waited for without an end, which only virtual time shows. */
        case 2: now = "aclrtSynchronizeEvent", is_virtual ? aclrtSynchronizeEvent(any(EVENT)) : aclrtSynchronizeEventWithTimeout(any(EVENT), 1 + (int32_t)below(5)); break;
        case 3: now = "aclrtSynchronizeDeviceWithTimeout", aclrtSynchronizeDeviceWithTimeout(1 + (int32_t)below(5)); break;
        case 4: now = "aclrtDestroyStream", aclrtDestroyStream(any(STREAM)); break;
        case 5: now = "aclrtDestroyStreamForce", aclrtDestroyStreamForce(any(STREAM)); break;
        case 6: now = "aclrtDestroyContext", below(8) ? 0 : aclrtDestroyContext(any(CONTEXT)); break;
        case 7: now = "aclrtResetDevice", below(8) ? 0 : aclrtResetDevice((int32_t)below(3)); break;
        case 8: now = "aclrtResetDeviceForce", below(16) ? 0 : aclrtResetDeviceForce((int32_t)below(3)); break;
        case 9: now = "aclrtFreeWithDevSync", aclrtFreeWithDevSync(address_of_device()); break;
        case 10: now = "aclFinalize", below(8) ? 0 : aclFinalize(); break;
        case 11: now = "aclmdlRIExecute", aclmdlRIExecute(any(GRAPH), 5); break;
        case 12: now = "aclrtProcessReport", aclrtProcessReport(1); break;
        default: now = "aclrtStreamAbort", aclrtStreamAbort(any(STREAM)); break;
    }
    (void)made;
}

static void make(void) {
    void *made = NULL;
    const uint64_t slot = below(KEPT);
    switch (below(14)) {
        case 0: now = "aclrtCreateStream"; if (aclrtCreateStream(&made) == 0) keep(STREAM, made); break;
        case 1: now = "aclrtCreateEvent"; if (aclrtCreateEvent(&made) == 0) keep(EVENT, made); break;
        case 2: now = "aclrtCreateEventWithFlag"; if (aclrtCreateEventWithFlag(&made, (uint32_t)below(128)) == 0) keep(EVENT, made); break;
        case 3: now = "aclrtCreateEventExWithFlag"; if (aclrtCreateEventExWithFlag(&made, (uint32_t)below(128)) == 0) keep(EVENT, made); break;
        case 4: now = "aclrtCreateNotify"; if (aclrtCreateNotify(&made, 0) == 0) keep(NOTIFY, made); break;
        case 5: now = "aclrtCreateContext"; if (below(4) == 0 && aclrtCreateContext(&made, (int32_t)below(3)) == 0) keep(CONTEXT, made); break;
        case 6: now = "aclrtSetDevice", aclrtSetDevice((int32_t)below(3)); break;
        case 7: now = "aclrtMalloc"; if (blocks[slot] == NULL) aclrtMalloc(&blocks[slot], below(8) ? BYTES : size(), ACL_MEM_MALLOC_HUGE_FIRST); break;
        case 8: now = "aclrtMallocHost"; if (pinned[slot] == NULL) aclrtMallocHost(&pinned[slot], BYTES); break;
        case 9: now = "aclrtReserveMemAddress"; if (reserved[slot] == NULL) aclrtReserveMemAddress(&reserved[slot], PAGES * granule, 0, NULL, 0); break;
        case 10: now = "aclrtMallocPhysical"; if (aclrtMallocPhysical(&made, granule, &property, 0) == 0) keep(PHYSICAL, made); break;
        case 11: now = "aclrtBinaryLoadFromData"; if (aclrtBinaryLoadFromData(TILES, below(4) ? sizeof TILES - 1 : below(sizeof TILES), NULL, &made) == 0) keep(BINARY, made); break;
        case 12: now = "aclrtKernelArgsInit"; if (aclrtKernelArgsInit(kernel, &made) == 0) keep(ARGUMENTS, made); break;
        default: now = "aclInit", aclInit(NULL); break;
    }
}

static void end(void) {
    const uint64_t slot = below(KEPT);
    switch (below(12)) {
        case 0: now = "aclrtDestroyEvent", aclrtDestroyEvent(any(EVENT)); break;
        case 1: now = "aclrtDestroyNotify", aclrtDestroyNotify(any(NOTIFY)); break;
        case 2: now = "aclmdlRIDestroy", aclmdlRIDestroy(any(GRAPH)); break;
        case 3: now = "aclrtFree", aclrtFree(blocks[slot]), blocks[slot] = below(2) ? NULL : blocks[slot]; break;
        /* Nobody frees pinned memory that a stream may still use. */
        case 4: now = "aclrtFreeHost", aclrtFreeHost(below(2) ? (void *)host : (void *)0x1000); break;
        case 5: now = "aclrtReleaseMemAddress"; if (aclrtReleaseMemAddress(reserved[slot]) == 0 && below(2)) reserved[slot] = NULL; break;
        case 6: now = "aclrtFreePhysical", aclrtFreePhysical(any(PHYSICAL)); break;
        case 7: now = "aclrtUnmapMem", aclrtUnmapMem((char *)reserved[slot] + below(PAGES) * granule); break;
        case 8: now = "aclrtBinaryUnLoad", aclrtBinaryUnLoad(any(BINARY)); break;
        case 9: now = "aclrtHostUnregister", aclrtHostUnregister(below(2) ? (void *)host : pinned[slot]); break;
        case 10: now = "aclrtUnSubscribeReport", aclrtUnSubscribeReport((uint64_t)pthread_self(), any(STREAM)); break;
        default: now = "aclrtResetEvent", aclrtResetEvent(any(EVENT), any(STREAM)); break;
    }
}

static void submit(void) {
    uint64_t words[4] = {word(), word(), word(), word()};
    const aclrtStream stream = any(STREAM);
    /* A function that a stream calls would wait for its own stream. */
    const int waits_for_itself = depth > 0 && !is_virtual;
    switch (below(22)) {
        case 0: now = "aclrtRecordEvent", aclrtRecordEvent(any(EVENT), stream); break;
        case 1: now = "aclrtStreamWaitEvent", aclrtStreamWaitEvent(stream, any(EVENT)); break;
        case 2: now = "aclrtStreamWaitEventWithTimeout", aclrtStreamWaitEventWithTimeout(stream, any(EVENT), (int32_t)below(3)); break;
        case 3: now = "aclrtStreamWaitEventWithFlag", aclrtStreamWaitEventWithFlag(stream, any(EVENT), 1, (uint32_t)below(3)); break;
        case 4: now = "aclrtRecordEventWithFlag", aclrtRecordEventWithFlag(any(EVENT), stream, (uint32_t)below(3)); break;
        case 5: now = "aclrtRecordNotify", aclrtRecordNotify(any(NOTIFY), stream); break;
        case 6: now = "aclrtWaitAndResetNotify", aclrtWaitAndResetNotify(any(NOTIFY), stream, is_virtual && below(4) == 0 ? 0 : 1); break;
        case 7: now = "aclrtValueWrite", aclrtValueWrite(address_of_device(), below(3), 0, stream); break;
        case 8: now = "aclrtValueWait"; if (is_virtual) aclrtValueWait(address_of_device(), below(3), (uint32_t)below(5), stream); break;
        case 9: now = "aclrtMemsetAsync", aclrtMemsetAsync(address_of_device(), size(), 1, size(), stream); break;
        case 10: now = "aclrtMemcpyAsync D2D", aclrtMemcpyAsync(address_of_device(), size(), address_of_device(), size(), ACL_MEMCPY_DEVICE_TO_DEVICE, stream); break;
        case 11: now = "aclrtMemcpyAsync H2D"; if (!waits_for_itself) aclrtMemcpyAsync(address_of_device(), size(), address_of_host(), size_of_host(), ACL_MEMCPY_HOST_TO_DEVICE, stream); break;
        case 12: now = "aclrtMemcpyAsync D2H"; if (!waits_for_itself) aclrtMemcpyAsync(address_of_host(), size_of_host(), address_of_device(), size_of_host(), ACL_MEMCPY_DEVICE_TO_HOST, stream); break;
        case 13: now = "aclrtReduceAsync", aclrtReduceAsync(address_of_device(), address_of_device(), size(), (aclrtReduceKind)(9 + below(5)), (aclDataType)below(12), stream, NULL); break;
        case 14: now = "aclrtLaunchHostFunc", aclrtLaunchHostFunc(stream, calls_back, NULL); break;
        case 15: now = "ptoAclLaunch", ptoAclLaunch(kernel, (uint32_t)below(4), words, (uint32_t)below(5), stream); break;
        case 16: now = "aclrtLaunchKernel", aclrtLaunchKernel(kernel, (uint32_t)below(4), address_of_device(), 8 * below(5), stream); break;
        case 17: now = "aclrtLaunchKernelWithHostArgs", aclrtLaunchKernelWithHostArgs(kernel, (uint32_t)below(4), stream, NULL, words, 8 * below(5), NULL, 0); break;
        case 18: now = "aclrtLaunchKernelWithConfig", aclrtLaunchKernelWithConfig(kernel, 1, stream, NULL, any(ARGUMENTS), NULL); break;
        case 19: now = "aclmdlRIExecuteAsync", aclmdlRIExecuteAsync(any(GRAPH), stream); break;
        case 20: now = "aclrtMemcpy2dAsync", aclrtMemcpy2dAsync(address_of_device(), 64, address_of_device(), 64, size(), below(4), ACL_MEMCPY_DEVICE_TO_DEVICE, stream); break;
        default: {
            aclrtFuncHandle function = NULL;
            now = "a tile kernel", aclrtBinaryGetFunction(any(BINARY), "add", &function);
            aclrtLaunchKernelWithHostArgs(function, (uint32_t)below(3), stream, NULL, words, 16, NULL, 0);
        }
    }
}

static void ask(void) {
    aclrtStreamStatus status;
    aclrtEventRecordedStatus recorded;
    aclrtEventWaitStatus waited;
    aclmdlRICaptureStatus captured;
    aclrtPtrAttributes attributes;
    aclmdlRICaptureMode mode = (aclmdlRICaptureMode)below(4);
    void *found = NULL;
    float elapsed;
    size_t one, other;
    switch (below(16)) {
        case 0: now = "aclrtStreamQuery", aclrtStreamQuery(any(STREAM), &status); break;
        case 1: now = "aclrtQueryEventStatus", aclrtQueryEventStatus(any(EVENT), &recorded); break;
        case 2: now = "aclrtQueryEventWaitStatus", aclrtQueryEventWaitStatus(any(EVENT), &waited); break;
        case 3: now = "aclmdlRICaptureGetInfo", aclmdlRICaptureGetInfo(any(STREAM), &captured, NULL); break;
        case 4: now = "aclrtEventElapsedTime", aclrtEventElapsedTime(&elapsed, any(EVENT), any(EVENT)); break;
        case 5: now = "aclrtPointerGetAttributes", aclrtPointerGetAttributes(address(), &attributes); break;
        case 6: now = "aclrtMemGetAddressRange", aclrtMemGetAddressRange(address(), &found, &one); break;
        case 7: now = "aclrtGetMemInfo", aclrtGetMemInfo(ACL_HBM_MEM, &one, &other); break;
        case 8: now = "aclrtSetCurrentContext", aclrtSetCurrentContext(any(CONTEXT)); break;
        case 9: now = "aclrtMemcpy", aclrtMemcpy(address_of_host(), size_of_host(), address_of_device(), size_of_host(), ACL_MEMCPY_DEVICE_TO_HOST); break;
        case 10: now = "aclrtMemset", aclrtMemset(address_of_device(), size(), 1, size()); break;
        case 11: now = "aclrtMapMem", aclrtMapMem((char *)reserved[below(KEPT)] + below(PAGES) * granule, granule, 0, any(PHYSICAL), 0); break;
        case 12: now = "aclrtHostRegisterV2", aclrtHostRegisterV2(below(2) ? (void *)host : pinned[below(KEPT)], BYTES, ACL_HOST_REG_MAPPED); break;
        case 13: now = "aclrtSubscribeReport", aclrtSubscribeReport((uint64_t)pthread_self(), any(STREAM)); break;
        case 14: now = "aclmdlRICaptureThreadExchangeMode", aclmdlRICaptureThreadExchangeMode(&mode); break;
        default: now = "aclGetRecentErrMsg", (void)aclGetRecentErrMsg(); break;
    }
}

static void capture(void) {
    void *graph = NULL;
    if (below(2)) {
        now = "aclmdlRICaptureBegin", aclmdlRICaptureBegin(any(STREAM), (aclmdlRICaptureMode)below(4));
        return;
    }
    /* Most captures end soon: while one is on, much is refused. */
    for (int i = 0; i < KEPT; i++) {
        now = "aclmdlRICaptureEnd";
        if (aclmdlRICaptureEnd(kept[STREAM][i], &graph) == 0) keep(GRAPH, graph);
    }
}

static void one_call(void) {
    const uint64_t sort = below(100);
    if (sort < 18) make();
    else if (sort < 28) end();
    else if (sort < 62) submit();
    else if (sort < 82) ask();
    else if (sort < 86) capture();
    else if (depth == 0) big_call();
}

/* A thread and its successor: when one ends in the middle, what it has begun is left. */
static void *calls(void *argument) {
    const int own = (int)(intptr_t)argument;
    state = seed * 2654435769u + (uint64_t)own * 40503u + 88172645463325252u;
    for (long round = 0;; round++) {
        if (!is_free) {
            pthread_mutex_lock(&baton);
            while (turn != own && left > 0) pthread_cond_wait(&passed, &baton);
            pthread_mutex_unlock(&baton);
        }
        if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) < 0) break;
        one_call();
        if (!is_free) {
            pthread_mutex_lock(&baton);
            turn = (int)below(THREADS);
            pthread_cond_broadcast(&passed);
            pthread_mutex_unlock(&baton);
        }
    }
    pthread_mutex_lock(&baton);
    pthread_cond_broadcast(&passed);
    pthread_mutex_unlock(&baton);
    return NULL;
}

/* Forced resets of every device. */
static void reset_all(void) {
    for (int device = 0; device < 3; device++) {
        aclrtSetDevice(device);
        aclrtResetDeviceForce(device);
    }
}

int main(int count, char **arguments) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    pthread_t threads[THREADS];
    size_t before[3], after, total;
    aclrtStream stream;
    if (count < 3) return 2;
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], crashed);
    seed = strtoull(arguments[1], NULL, 10), left = atol(arguments[2]);
    is_free = count > 3, is_virtual = getenv("PTO_ACL_SEED") != NULL;
    property.memAttr = ACL_HBM_MEM_HUGE;
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    aclInit(NULL);
    /* On a device that has a clock of its own, a wait without an end is no error. */
    if (!is_virtual && aclrtSetOpWaitTimeout(1)) return 2;
    if (ptoAclKernelFromFunction("idle", idle, 1, &kernel) || aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granule)) return 2;
    for (int device = 0; device < 3; device++) {
        if (aclrtSetDevice(device) || aclrtGetMemInfo(ACL_HBM_MEM, &before[device], &total)) return 2;
    }
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, calls, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    now = "the resets at the end", reset_all();
    for (int device = 0; device < 3; device++) {
        aclError code = aclrtSetDevice(device);
        if (code == 0) code = aclrtGetMemInfo(ACL_HBM_MEM, &after, &total);
        if (code == 0 && after != before[device]) return printf("device %d has %zu of %zu bytes free\n", device, after, before[device]), 1;
        if (code == 0) code = aclrtMalloc(&blocks[0], BYTES, ACL_MEM_MALLOC_HUGE_FIRST);
        if (code == 0) code = aclrtMemset(blocks[0], BYTES, 1, BYTES);
        if (code == 0) code = aclrtCreateStream(&stream);
        if (code == 0) code = aclrtMemsetAsync(blocks[0], BYTES, 1, BYTES, stream);
        if (code == 0) code = aclrtSynchronizeStream(stream);
        if (code == 0) code = aclrtFree(blocks[0]);
        if (code) {
            const char *why = aclGetRecentErrMsg();
            return printf("device %d does not work any more: %d, %s\n", device, code, why ? why : "no message"), 1;
        }
    }
    printf("storm: ok\n");
    fflush(stdout);
    _exit(0);
}

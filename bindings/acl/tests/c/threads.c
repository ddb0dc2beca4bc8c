/* Threads of a program that use one library at once: each makes and destroys what the others look at meanwhile. A handle that its owner has just
   destroyed gets an error; everything else succeeds, and the commands of the streams are done. `threads COUNT ROUNDS`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/acl_prof.h"

enum { MOST = 16, WORDS = 64, GONE = 107017 };

static int threads, rounds;
static _Atomic(uintptr_t) events[MOST], streams[MOST], buffers[MOST];
static atomic_int failures, called;

static void fails(int line, const char *call, int code) {
    const char *text = aclGetRecentErrMsg();
    fprintf(stderr, "line %d: %s: %d: %s\n", line, call, code, text ? text : "no message");
    atomic_fetch_add(&failures, 1);
}

#define OK(call)                                            \
    do {                                                    \
        int code_ = (call);                                 \
        if (code_ != 0) fails(__LINE__, #call, code_);      \
    } while (0)
/* The object may be gone. */
#define MAY(call)                                                             \
    do {                                                                      \
        int code_ = (call);                                                   \
        if (code_ != 0 && code_ != GONE) fails(__LINE__, #call, code_);       \
    } while (0)

static void tell(void *argument) {
    (void)argument;
    atomic_fetch_add(&called, 1);
}

static void round_of(int own, int other, aclrtNotify notify) {
    aclrtStream stream, second;
    aclrtEvent event;
    aclrtEventRecordedStatus recorded;
    aclrtStreamStatus status;
    uint32_t *device, *pinned;
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&second));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtMalloc((void **)&device, 4 * WORDS, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost((void **)&pinned, 4 * WORDS));
    aclDataBuffer *buffer = aclCreateDataBuffer(device, 4 * WORDS);
    atomic_store(&events[own], (uintptr_t)event);
    atomic_store(&streams[own], (uintptr_t)stream);
    atomic_store(&buffers[own], (uintptr_t)buffer);
    OK(aclrtMemsetAsync(device, 4 * WORDS, own + 1, 4 * WORDS, stream));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamWaitEvent(second, event));
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtWaitAndResetNotify(notify, second, 0));
    OK(aclrtLaunchHostFunc(second, tell, NULL));
    OK(aclrtMemcpyAsync(pinned, 4 * WORDS, device, 4 * WORDS, ACL_MEMCPY_DEVICE_TO_HOST, second));
    uintptr_t found = atomic_load(&events[other]);
    if (found) MAY(aclrtQueryEventStatus((aclrtEvent)found, &recorded));
    found = atomic_load(&streams[other]);
    if (found) MAY(aclrtStreamQuery((aclrtStream)found, &status));
    found = atomic_load(&buffers[other]);
    if (found) (void)aclGetDataBufferSizeV2((aclDataBuffer *)found), (void)aclGetRecentErrMsg();
    OK(aclrtSynchronizeStream(second));
    for (int word = 0; word < WORDS; word++)
        if (pinned[word] != 0x01010101u * (unsigned)(own + 1)) fails(__LINE__, "the words that were filled", (int)pinned[word]);
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyStream(second));
    OK(aclDestroyDataBuffer(buffer));
    OK(aclrtFree(device));
    OK(aclrtFreeHost(pinned));
}

static void *work(void *argument) {
    int own = (int)(intptr_t)argument;
    aclrtNotify notify;
    aclrtContext context;
    OK(aclrtSetDevice(0));
    OK(aclrtCreateNotify(&notify, 0));
    for (int round = 0; round < rounds; round++) {
        /* Every other round in a context of its own. */
        int is_own = round % 2;
        if (is_own) OK(aclrtCreateContext(&context, 0));
        round_of(own, (own + 1) % threads, notify);
        if (is_own) {
            OK(aclrtDestroyContext(context));
            OK(aclrtSetDevice(0));
            OK(aclrtResetDevice(0));
        }
        if (aclrtStreamQuery((aclrtStream)0x1238, NULL) == 0) fails(__LINE__, "a bad argument", 0);
    }
    OK(aclrtDestroyNotify(notify));
    OK(aclrtResetDevice(0));
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t handles[MOST];
    threads = count > 1 ? atoi(arguments[1]) : 4, rounds = count > 2 ? atoi(arguments[2]) : 10;
    if (threads < 2 || threads > MOST || rounds < 1) return 2;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    for (int thread = 0; thread < threads; thread++) pthread_create(&handles[thread], NULL, work, (void *)(intptr_t)thread);
    for (int thread = 0; thread < threads; thread++) pthread_join(handles[thread], NULL);
    if (atomic_load(&called) != threads * rounds) fails(__LINE__, "the functions that were called", atomic_load(&called));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    printf("threads: %d failed\n", atomic_load(&failures));
    return atomic_load(&failures) != 0;
}

/* Waits that another thread ends, and queries, in virtual time: `waits VARIANT`. The devices work only while the program waits or asks. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "pto_acl.h"

#define TRY(call)                                                                          \
    do {                                                                                   \
        aclError code_ = (call);                                                           \
        const char *why_ = code_ ? aclGetRecentErrMsg() : NULL;                            \
        if (code_) {                                                                       \
            printf("%d: %s: %d, %s\n", __LINE__, #call, code_, why_ ? why_ : "no message"); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)
#define EXPECT(wanted, call)                                                        \
    do {                                                                            \
        int code_ = (call);                                                         \
        if (code_ != (wanted)) {                                                    \
            printf("%d: %s: %d instead of %d\n", __LINE__, #call, code_, (wanted)); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

enum { BYTES = 1 << 20, TIMES = 1000000, TIMED_OUT = 107019 };

static aclrtStream stream, other;
static aclrtEvent event, later;
static aclrtNotify notify;
static char *device;
static uint64_t *word;

static void set_up(void) {
    TRY(aclInit(NULL));
    TRY(aclrtSetDevice(0));
    TRY(aclrtCreateStream(&stream));
    TRY(aclrtCreateStream(&other));
    TRY(aclrtCreateEvent(&event));
    TRY(aclrtCreateEventWithFlag(&later, ACL_EVENT_SYNC));
    TRY(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    TRY(aclrtMalloc((void **)&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(aclrtMalloc((void **)&word, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(aclrtMemset(word, 64, 0, 64));
}

/* Asks until the condition holds. */
#define POLL(ask, holds)                                       \
    do {                                                       \
        long times_ = 0;                                       \
        do {                                                   \
            ask;                                               \
        } while (!(holds) && ++times_ < TIMES);                \
        if (times_ >= TIMES) {                                 \
            printf("%d: %s for ever\n", __LINE__, #ask);       \
            exit(1);                                           \
        }                                                      \
    } while (0)

static void work(void) {
    for (int i = 0; i < 5; i++) TRY(aclrtMemsetAsync(device, BYTES, i, BYTES, stream));
}

static void polls(void) {
    aclrtEventRecordedStatus recorded;
    aclrtEventStatus old;
    aclrtEventWaitStatus waited;
    aclrtStreamStatus status;
    aclrtEvent start;
    float elapsed;
    uint64_t time, value = 0;
    int code;
    TRY(aclrtCreateEvent(&start));
    TRY(aclrtRecordEvent(start, stream));
    work();
    TRY(aclrtRecordEvent(event, stream));
    POLL(TRY(aclrtQueryEventStatus(event, &recorded)), recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    work();
    TRY(aclrtRecordEvent(event, stream));
    POLL(TRY(aclrtQueryEvent(event, &old)), old == ACL_EVENT_STATUS_COMPLETE);
    work();
    TRY(aclrtRecordEvent(event, stream));
    TRY(aclrtStreamWaitEvent(other, event));
    POLL(TRY(aclrtQueryEventWaitStatus(event, &waited)), waited == ACL_EVENT_WAIT_STATUS_COMPLETE);
    work();
    TRY(aclrtRecordEvent(event, stream));
    POLL(code = aclrtEventElapsedTime(&elapsed, start, event), code == 0);
    work();
    TRY(aclrtRecordEvent(event, stream));
    POLL(code = aclrtEventGetTimestamp(event, &time), code == 0);
    work();
    POLL(TRY(aclrtStreamQuery(stream, &status)), status == ACL_STREAM_STATUS_COMPLETE);
    /* A flag in memory of the device. */
    work();
    TRY(aclrtValueWrite(word, 7, 0, stream));
    POLL(TRY(aclrtMemcpy(&value, 8, word, 8, ACL_MEMCPY_DEVICE_TO_HOST)), value == 7);
    /* Time passes for a wait with a limit too, but a query or two do not end it. */
    TRY(aclrtWaitAndResetNotify(notify, stream, 2));
    for (int i = 0; i < 100; i++) TRY(aclrtStreamQuery(stream, &status));
    TRY(aclrtRecordNotify(notify, other));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtWaitAndResetNotify(notify, stream, 2));
    POLL(TRY(aclrtStreamQuery(stream, &status)), status == ACL_STREAM_STATUS_COMPLETE);
    EXPECT(TIMED_OUT, aclrtSynchronizeStream(stream));
}

/* An event that other processes could have too, recorded and waited for in one. */
static void shared(void) {
    aclrtEvent ipc;
    aclrtEventRecordedStatus recorded;
    TRY(aclrtCreateEventExWithFlag(&ipc, ACL_EVENT_IPC));
    for (int i = 0; i < 3; i++) {
        work();
        TRY(aclrtRecordEvent(ipc, stream));
        TRY(aclrtSynchronizeEvent(ipc));
        work();
        TRY(aclrtRecordEvent(ipc, stream));
        POLL(TRY(aclrtQueryEventStatus(ipc, &recorded)), recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE);
    }
    /* A record that its stream drops keeps no thread waiting. */
    TRY(aclrtWaitAndResetNotify(notify, stream, 0));
    TRY(aclrtRecordEvent(ipc, stream));
    TRY(aclrtQueryEventStatus(ipc, &recorded));
    EXPECT((aclError)ACL_EVENT_RECORDED_STATUS_NOT_READY, (aclError)recorded);
    TRY(aclrtStreamAbort(stream));
    TRY(aclrtSynchronizeEvent(ipc));
    TRY(aclrtDestroyEvent(ipc));
}

/* What another thread does after a while. */
static void *acts_later(void *what) {
    const uint64_t value = 5;
    usleep(150000);
    TRY(aclrtSetDevice(0));
    if (strcmp(what, "notify") == 0) TRY(aclrtRecordNotify(notify, other));
    if (strcmp(what, "event") == 0) TRY(aclrtRecordEvent(later, other));
    if (strcmp(what, "word") == 0) TRY(aclrtMemcpy(word, 8, &value, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    return NULL;
}

static void threads(void) {
    pthread_t thread;
    for (int limit = 0; limit <= 60; limit += 60) {
        pthread_create(&thread, NULL, acts_later, "notify");
        TRY(aclrtWaitAndResetNotify(notify, stream, (uint32_t)limit));
        TRY(aclrtSynchronizeStream(stream));
        pthread_join(thread, NULL);
    }
    pthread_create(&thread, NULL, acts_later, "event");
    TRY(aclrtStreamWaitEvent(stream, later));
    TRY(aclrtSynchronizeStreamWithTimeout(stream, 60000));
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, acts_later, "word");
    TRY(aclrtValueWait(word, 5, ACL_STREAM_WAIT_VALUE_EQ, stream));
    TRY(aclrtSynchronizeDevice());
    pthread_join(thread, NULL);
}

static void *waits_too(void *argument) {
    (void)argument;
    TRY(aclrtSetDevice(0));
    TRY(aclrtWaitAndResetNotify(notify, other, 0));
    EXPECT(TIMED_OUT, aclrtSynchronizeStream(other));
    return NULL;
}

static void called(void *argument) { (void)argument; }

static void *takes_no_calls(void *argument) {
    TRY(aclrtSetDevice(0));
    TRY(aclrtSubscribeReport((uint64_t)pthread_self(), stream));
    pthread_mutex_lock(argument);
    return NULL;
}

/* Nobody can end these waits: all threads wait, or sleep until another one wakes them. */
static void endless(void) {
    static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    aclrtNotify never;
    TRY(aclrtCreateNotify(&never, 0));
    TRY(aclrtWaitAndResetNotify(never, stream, 0));
    EXPECT(TIMED_OUT, aclrtSynchronizeStream(stream));
    pthread_create(&thread, NULL, waits_too, NULL);
    TRY(aclrtWaitAndResetNotify(never, stream, 0));
    EXPECT(TIMED_OUT, aclrtSynchronizeStream(stream));
    pthread_join(thread, NULL);
    /* The main thread waits for the other one, which waits for no event. */
    pthread_create(&thread, NULL, waits_too, NULL);
    pthread_join(thread, NULL);
    /* A thread that is to take calls, and does not. */
    pthread_mutex_lock(&held);
    pthread_create(&thread, NULL, takes_no_calls, &held);
    while (aclrtLaunchCallback(called, NULL, ACL_CALLBACK_BLOCK, stream) != 0) usleep(1000);
    EXPECT(TIMED_OUT, aclrtSynchronizeStream(stream));
    pthread_mutex_unlock(&held);
    pthread_join(thread, NULL);
    /* A thread that takes calls which are never made. */
    TRY(aclrtSubscribeReport((uint64_t)pthread_self(), other));
    EXPECT(507012, aclrtProcessReport(-1));
}

/* A stream of one device waits for what a stream of another one does. */
static void devices(void) {
    aclrtContext here, there;
    aclrtStream far;
    TRY(aclrtGetCurrentContext(&here));
    TRY(aclrtCreateContext(&there, 1));
    TRY(aclrtCreateStream(&far));
    TRY(aclrtRecordNotify(notify, far));
    TRY(aclrtSetCurrentContext(here));
    TRY(aclrtWaitAndResetNotify(notify, stream, 0));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtDestroyContext(there));
}

int main(int count, char **arguments) {
    static const struct { const char *name; void (*run)(void); } ways[] = {
        {"polls", polls}, {"shared", shared}, {"threads", threads}, {"endless", endless}, {"devices", devices},
    };
    if (count < 2) return 2;
    set_up();
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(arguments[1], ways[i].name) == 0) {
            ways[i].run();
            printf("%s: ok\n", arguments[1]);
            return 0;
        }
    }
    return 2;
}

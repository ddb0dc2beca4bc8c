/* Streams and events. */
#include <stdatomic.h>

#include "cases.h"

/* Whether `slow` may end: until then every wait with a limit ends by that, however busy the machine is. In virtual time it runs in the thread that
   waits, and may always. */
static atomic_int may_end = 1;

static void slow(void *argument) {
    usleep(20000);
    while (!atomic_load(&may_end)) usleep(1000);
    ++*(volatile int *)argument;
}

static int seen_states[3];
static void stream_state(aclrtStream stream, aclrtStreamState state, void *argument) {
    (void)argument;
    if (stream && state <= 2) seen_states[state]++;
}

static void *waits_for(void *argument) {
    void **arguments = argument;
    aclrtSetCurrentContext(arguments[1]);
    *(long *)arguments[2] = aclrtSynchronizeStream(arguments[0]);
    return NULL;
}

/* A wait for a stream that is aborted gets an error. In virtual time a wait that nothing can end any more does not last until then. */
static void aborted_waiter(void) {
    aclrtStream stream;
    aclrtEvent event;
    aclrtContext context;
    pthread_t thread;
    long code = -1;
    if (is_virtual) {
        IS(0, 0);
        IS(0, 0);
        return;
    }
    if (aclrtGetCurrentContext(&context) || aclrtCreateStream(&stream) || aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC) ||
        aclrtStreamWaitEvent(stream, event))
        exit(3);
    void *arguments[3] = {stream, context, &code};
    pthread_create(&thread, NULL, waits_for, arguments);
    usleep(100000);
    OK(aclrtStreamAbort(stream));
    pthread_join(thread, NULL);
    IS(107023, code);
    aclrtDestroyStream(stream);
    aclrtDestroyEvent(event);
}

void stream_cases(void) {
    aclrtStream stream, second, waits;
    aclrtStreamStatus status;
    aclrtStreamAttrValue value;
    aclrtEvent event;
    int32_t id, other, least, greatest;
    uint32_t number, flags = ACL_STREAM_FAST_LAUNCH;
    volatile int calls = 0;
    OK(aclrtRegStreamStateCallback("case", stream_state, NULL));
    IS(ARGUMENT, aclrtCreateStream(NULL));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStreamWithConfig(&second, 3, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    IS(2, seen_states[1]);
    IS(VALUE, aclrtCreateStreamWithConfig(&waits, 8, 0));
    IS(VALUE, aclrtCreateStreamWithConfig(&waits, 0, 0x8000));
    OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
    HOLDS(least >= greatest);
    OK(aclrtStreamGetId(stream, &id));
    OK(aclrtStreamGetId(second, &other));
    HOLDS(id != other);
    IS(ARGUMENT, aclrtStreamGetId(stream, NULL));
    OK(aclrtStreamGetPriority(second, &number));
    IS(3, number);
    OK(aclrtStreamGetFlags(second, &number));
    IS(3, number);
    OK(aclrtSynchronizeStream(NULL));
    OK(aclrtStreamQuery(NULL, &status));
    IS(ACL_STREAM_STATUS_COMPLETE, status);
    IS(HANDLE, aclrtSynchronizeStream(BAD));
    IS(HANDLE, aclrtStreamQuery(BAD, &status));
    IS(ARGUMENT, aclrtStreamQuery(stream, NULL));
    atomic_store(&may_end, is_virtual);
    OK(aclrtLaunchHostFunc(stream, slow, (void *)&calls));
    OK(aclrtStreamQuery(stream, &status));
    IS(ACL_STREAM_STATUS_NOT_READY, status);
    IS(is_virtual ? 0 : 507046, aclrtSynchronizeStreamWithTimeout(stream, 1));
    IS(VALUE, aclrtSynchronizeStreamWithTimeout(stream, 0));
    IS(VALUE, aclrtSynchronizeStreamWithTimeout(stream, -5));
    atomic_store(&may_end, 1);
    OK(aclrtSynchronizeStreamWithTimeout(stream, 5000));
    IS(1, calls);
    OK(aclrtLaunchHostFunc(stream, slow, (void *)&calls));
    OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
    IS(2, calls);
    OK(aclrtLaunchHostFunc(stream, slow, (void *)&calls));
    OK(aclrtSynchronizeDevice());
    IS(3, calls);
    /* Failure mode: once. */
    IS(ARGUMENT, aclrtSetStreamFailureMode(NULL, ACL_STOP_ON_FAILURE));
    IS(VALUE, aclrtSetStreamFailureMode(second, 2));
    OK(aclrtSetStreamFailureMode(second, ACL_CONTINUE_ON_FAILURE));
    IS(VALUE, aclrtSetStreamFailureMode(second, ACL_STOP_ON_FAILURE));
    /* Attributes. */
    memset(&value, 0, sizeof value);
    value.userCustomTag = 42;
    OK(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
    memset(&value, 0, sizeof value);
    OK(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
    IS(42, value.userCustomTag);
    IS(ARGUMENT, aclrtGetStreamAttribute(stream, (aclrtStreamAttr)77, &value));
    IS(ARGUMENT, aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, NULL));
    /* Abort: what has not begun is dropped, waits get an error. */
    OK(aclrtCreateStream(&waits));
    OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtStreamWaitEvent(waits, event));
    OK(aclrtLaunchHostFunc(waits, slow, (void *)&calls));
    OK(aclrtStreamQuery(waits, &status));
    IS(ACL_STREAM_STATUS_NOT_READY, status);
    OK(aclrtStreamAbort(waits));
    OK(aclrtSynchronizeStream(waits));
    IS(3, calls);
    OK(aclrtDestroyEvent(event));
    IS(ARGUMENT, aclrtStreamAbort(NULL));
    IS(ARGUMENT, aclrtDestroyStream(NULL));
    IS(ARGUMENT, aclrtDestroyStreamForce(NULL));
    OK(aclrtLaunchHostFunc(second, slow, (void *)&calls));
    OK(aclrtDestroyStream(second));
    IS(4, calls);
    IS(HANDLE, aclrtDestroyStream(second));
    IS(HANDLE, aclrtSynchronizeStream(second));
    OK(aclrtDestroyStreamForce(waits));
    OK(aclrtDestroyStream(stream));
    IS(3, seen_states[2]);
    OK(aclrtRegStreamStateCallback("case", NULL, NULL));
    aborted_waiter();
    /* Streams that the host does not wait for, whatever they still have to do. */
    static const uint32_t kinds[] = {ACL_STREAM_PERSISTENT, ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY};
    for (int i = 0; i < 3; i++) {
        OK(aclrtCreateStreamWithConfig(&stream, 0, kinds[i]));
        OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
        OK(aclrtStreamWaitEvent(stream, event));
        OK(aclrtSynchronizeStream(stream));
        OK(aclrtSynchronizeStreamWithTimeout(stream, 5));
        OK(aclrtDestroyStreamForce(stream));
        OK(aclrtDestroyEvent(event));
    }
    /* Configurations. */
    aclrtStreamConfigHandle *config = aclrtCreateStreamConfigHandle();
    HOLDS(config != NULL);
    size_t wide = flags;
    OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &wide, sizeof wide));
    number = 5;
    OK(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &number, sizeof number));
    IS(VALUE, aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &number, 3));
    IS(ARGUMENT, aclrtSetStreamConfigOpt(config, (aclrtStreamConfigAttr)9, &number, 4));
    OK(aclrtCreateStreamV2(&stream, config));
    OK(aclrtStreamGetPriority(stream, &number));
    IS(5, number);
    OK(aclrtDestroyStreamConfigHandle(config));
    IS(ARGUMENT, aclrtDestroyStreamConfigHandle(NULL));
    OK(aclrtDestroyStream(stream));
}

/* What an event means that was never recorded. */
static void sleeps(void *argument) {
    (void)argument;
    usleep(1500000);
}

/* The limit of all waits for events: that of a wait which names none. Functions of the host take no virtual time. */
static void waits_end(aclrtStream stream, aclrtStream second) {
    aclrtEvent late, never;
    OK(aclrtSetOpWaitTimeout(1));
    /* An old event that was never recorded has the limit too, and so has one that a call names. */
    OK(aclrtCreateEventWithFlag(&never, ACL_EVENT_SYNC));
    OK(aclrtStreamWaitEvent(stream, never));
    IS(107019, aclrtSynchronizeStream(stream));
    OK(aclrtStreamWaitEventWithTimeout(stream, never, 1));
    IS(107019, aclrtSynchronizeStream(stream));
    OK(aclrtDestroyEvent(never));
    OK(aclrtCreateEventExWithFlag(&late, ACL_EVENT_SYNC));
    OK(aclrtLaunchHostFunc(second, sleeps, NULL));
    OK(aclrtRecordEvent(late, second));
    OK(aclrtStreamWaitEvent(stream, late));
    IS(is_virtual ? 0 : 107019, aclrtSynchronizeStream(stream));
    OK(aclrtSetOpWaitTimeout(0));
    OK(aclrtSynchronizeStream(second));
    OK(aclrtStreamWaitEvent(stream, late));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyEvent(late));
}

static void never_recorded(aclrtStream stream) {
    aclrtEvent plain, flagged, fresh, timed;
    aclrtEventRecordedStatus status;
    aclrtStreamStatus state;
    float milliseconds;
    OK(aclrtCreateEvent(&plain));
    OK(aclrtCreateEventWithFlag(&flagged, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    OK(aclrtCreateEventExWithFlag(&fresh, ACL_EVENT_SYNC));
    OK(aclrtCreateEventWithFlag(&timed, ACL_EVENT_TIME_LINE));
    OK(aclrtQueryEventStatus(plain, &status));
    IS(ACL_EVENT_RECORDED_STATUS_NOT_READY, status);
    OK(aclrtQueryEventStatus(flagged, &status));
    IS(ACL_EVENT_RECORDED_STATUS_NOT_READY, status);
    OK(aclrtQueryEventStatus(fresh, &status));
    IS(ACL_EVENT_RECORDED_STATUS_COMPLETE, status);
    OK(aclrtSynchronizeEvent(plain));
    OK(aclrtSynchronizeEvent(flagged));
    OK(aclrtSynchronizeEvent(fresh));
    IS(VALUE, aclrtStreamWaitEvent(stream, plain));
    OK(aclrtStreamWaitEvent(stream, fresh));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtStreamWaitEvent(stream, flagged));
    OK(aclrtStreamQuery(stream, &state));
    IS(ACL_STREAM_STATUS_NOT_READY, state);
    OK(aclrtRecordEvent(flagged, NULL));
    OK(aclrtSynchronizeStream(stream));
    IS(UNSUPPORTED, aclrtStreamWaitEvent(stream, timed));
    IS(507000, aclrtEventElapsedTime(&milliseconds, plain, plain));
    OK(aclrtDestroyEvent(plain));
    OK(aclrtDestroyEvent(flagged));
    OK(aclrtDestroyEvent(fresh));
    OK(aclrtDestroyEvent(timed));
}

void event_cases(void) {
    aclrtStream stream, second;
    aclrtEvent start, end, sync, fresh;
    aclrtEventRecordedStatus status;
    aclrtEventWaitStatus waited;
    float milliseconds = -1;
    uint64_t first_us = 0, second_us = 0;
    volatile int calls = 0;
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&second));
    never_recorded(stream);
    IS(ARGUMENT, aclrtCreateEvent(NULL));
    IS(VALUE, aclrtCreateEventWithFlag(&sync, 0));
    IS(VALUE, aclrtCreateEventWithFlag(&sync, 0x800));
    OK(aclrtCreateEvent(&start));
    OK(aclrtCreateEvent(&end));
    OK(aclrtCreateEventWithFlag(&sync, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&fresh, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    IS(ARGUMENT, aclrtRecordEvent(NULL, stream));
    IS(HANDLE, aclrtRecordEvent(BAD, stream));
    IS(HANDLE, aclrtRecordEvent(stream, stream));
    IS(HANDLE, aclrtRecordEvent(start, start));
    IS(HANDLE, aclrtStreamWaitEvent(BAD, start));
    IS(ARGUMENT, aclrtStreamWaitEvent(stream, NULL));
    IS(ARGUMENT, aclrtQueryEventStatus(start, NULL));
    IS(ARGUMENT, aclrtSynchronizeEvent(NULL));
    OK(aclrtRecordEvent(start, stream));
    atomic_store(&may_end, is_virtual);
    OK(aclrtLaunchHostFunc(stream, slow, (void *)&calls));
    OK(aclrtRecordEvent(end, stream));
    OK(aclrtRecordEvent(fresh, stream));
    OK(aclrtQueryEventStatus(end, &status));
    IS(ACL_EVENT_RECORDED_STATUS_NOT_READY, status);
    IS(107006, aclrtEventElapsedTime(&milliseconds, start, end));
    IS(is_virtual ? 0 : 507047, aclrtSynchronizeEventWithTimeout(end, 1));
    IS(VALUE, aclrtSynchronizeEventWithTimeout(end, 0));
    OK(aclrtStreamWaitEvent(second, end));
    OK(aclrtQueryEventWaitStatus(end, &waited));
    IS(ACL_EVENT_WAIT_STATUS_NOT_READY, waited);
    atomic_store(&may_end, 1);
    OK(aclrtSynchronizeEvent(end));
    IS(1, calls);
    OK(aclrtSynchronizeStream(second));
    OK(aclrtQueryEventWaitStatus(end, &waited));
    IS(ACL_EVENT_WAIT_STATUS_COMPLETE, waited);
    OK(aclrtQueryEventStatus(end, &status));
    IS(ACL_EVENT_RECORDED_STATUS_COMPLETE, status);
    OK(aclrtEventElapsedTime(&milliseconds, start, end));
    HOLDS(is_virtual || (milliseconds >= 19 && milliseconds < 10000));
    IS(ARGUMENT, aclrtEventElapsedTime(NULL, start, end));
    OK(aclrtSynchronizeEvent(fresh));
    OK(aclrtEventGetTimestamp(start, &first_us));
    OK(aclrtEventGetTimestamp(fresh, &second_us));
    HOLDS(second_us >= first_us + (is_virtual ? 0 : 19000));
    OK(aclrtRecordEvent(sync, stream));
    OK(aclrtSynchronizeEvent(sync));
    IS(107006, aclrtEventGetTimestamp(sync, &first_us));
    /* Reset: old events only. */
    OK(aclrtResetEvent(sync, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtQueryEventStatus(sync, &status));
    IS(ACL_EVENT_RECORDED_STATUS_NOT_READY, status);
    IS(UNSUPPORTED, aclrtResetEvent(fresh, stream));
    OK(aclrtResetEvent(start, stream));
    /* A new event is recorded again; a wait takes the latest record. */
    OK(aclrtRecordEvent(fresh, stream));
    OK(aclrtRecordEvent(fresh, second));
    OK(aclrtStreamWaitEvent(stream, fresh));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtQueryEventStatus(fresh, &status));
    IS(ACL_EVENT_RECORDED_STATUS_COMPLETE, status);
    /* Limits of waits. */
    IS(VALUE, aclrtStreamWaitEventWithTimeout(stream, fresh, 0));
    OK(aclrtStreamWaitEventWithTimeout(stream, fresh, 5));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSetOpWaitTimeout(10));
    waits_end(stream, second);
    /* External flags are for captures. */
    IS(107029, aclrtRecordEventWithFlag(fresh, stream, ACL_EVENT_RECORD_EXTERNAL));
    IS(107029, aclrtStreamWaitEventWithFlag(stream, fresh, 0, ACL_EVENT_WAIT_EXTERNAL));
    OK(aclrtRecordEventWithFlag(fresh, stream, ACL_EVENT_RECORD_DEFAULT));
    IS(VALUE, aclrtRecordEventWithFlag(fresh, stream, 5));
    OK(aclrtStreamWaitEventWithFlag(stream, fresh, 0, ACL_EVENT_WAIT_DEFAULT));
    /* Destroying never waits. */
    OK(aclrtLaunchHostFunc(stream, slow, (void *)&calls));
    OK(aclrtRecordEvent(end, stream));
    OK(aclrtDestroyEvent(end));
    IS(HANDLE, aclrtDestroyEvent(end));
    IS(HANDLE, aclrtQueryEventStatus(end, &status));
    IS(ARGUMENT, aclrtDestroyEvent(NULL));
    OK(aclrtSynchronizeStream(stream));
    IS(2, calls);
    OK(aclrtDestroyEvent(start));
    OK(aclrtDestroyEvent(sync));
    OK(aclrtDestroyEvent(fresh));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyStream(second));
}

/* Notifies and words, captures, callbacks, limits. */
#include "cases.h"

static void count(void *argument) { ++*(volatile int *)argument; }

void notify_cases(void) {
    aclrtNotify notify;
    aclrtStream stream;
    aclrtStreamStatus status;
    uint64_t *word, value = 0;
    OK(aclrtCreateStream(&stream));
    IS(ARGUMENT, aclrtCreateNotify(NULL, 0));
    IS(ARGUMENT, aclrtCreateNotify(&notify, 9));
    OK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtStreamQuery(stream, &status));
    IS(ACL_STREAM_STATUS_NOT_READY, status);
    OK(aclrtRecordNotify(notify, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtWaitAndResetNotify(notify, stream, 1));
    IS(107019, aclrtSynchronizeStream(stream));
    OK(aclrtRecordNotify(notify, NULL));
    OK(aclrtWaitAndResetNotify(notify, stream, 5));
    OK(aclrtSynchronizeStream(stream));
    IS(ARGUMENT, aclrtRecordNotify(NULL, stream));
    IS(HANDLE, aclrtRecordNotify(BAD, stream));
    OK(aclrtDestroyNotify(notify));
    IS(HANDLE, aclrtDestroyNotify(notify));
    IS(ARGUMENT, aclrtDestroyNotify(NULL));
    /* Words. */
    OK(aclrtMalloc((void **)&word, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(word, 64, 0, 64));
    IS(VALUE, aclrtValueWrite((char *)word + 4, 1, 0, stream));
    IS(ARGUMENT, aclrtValueWrite(word, 1, 1, stream));
    IS(ARGUMENT, aclrtValueWrite(NULL, 1, 0, stream));
    IS(VALUE, aclrtValueWrite(&value, 1, 0, stream));
    IS(ARGUMENT, aclrtValueWait(word, 1, 4, stream));
    static const uint32_t tests[] = {ACL_STREAM_WAIT_VALUE_GEQ, ACL_STREAM_WAIT_VALUE_EQ, ACL_STREAM_WAIT_VALUE_AND,
                                     ACL_STREAM_WAIT_VALUE_NOR};
    for (int i = 0; i < 4; i++) {
        uint64_t written = tests[i] == ACL_STREAM_WAIT_VALUE_NOR ? 0 : 8, wanted = 8;
        OK(aclrtMemset(word, 64, tests[i] == ACL_STREAM_WAIT_VALUE_NOR ? 0xFF : 0, 8));
        OK(aclrtValueWait(word, wanted, tests[i], stream));
        OK(aclrtStreamQuery(stream, &status));
        IS(ACL_STREAM_STATUS_NOT_READY, status);
        OK(aclrtValueWrite(word, written, 0, NULL));
        OK(aclrtSynchronizeStream(stream));
    }
    /* GEQ compares with a sign. */
    OK(aclrtValueWrite(word, 0, 0, stream));
    OK(aclrtValueWait(word, (uint64_t)-1, ACL_STREAM_WAIT_VALUE_GEQ, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(&value, 8, word, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(0, value);
    OK(aclrtFree(word));
    OK(aclrtDestroyStream(stream));
}

static void *copy_elsewhere(void *argument) {
    char byte = 0;
    long *code = argument;
    aclrtSetDevice(0);
    *code = aclrtMemcpy((void *)code[1], 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE);
    aclrtResetDevice(0);
    return NULL;
}

static void *end_elsewhere(void *argument) {
    void **arguments = argument;
    aclmdlRI graph;
    aclrtSetCurrentContext(arguments[1]);
    *(long *)arguments[2] = aclmdlRICaptureEnd(arguments[0], &graph);
    return NULL;
}

static long elsewhere(void *(*run)(void *), void *argument, const long *code) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, argument);
    pthread_join(thread, NULL);
    return *code;
}

void capture_cases(void) {
    aclrtStream stream, fork, outside;
    aclrtEvent event, joined;
    aclmdlRI graph = NULL, other;
    aclmdlRICaptureStatus status;
    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    aclrtStreamStatus ready;
    aclrtContext context;
    char *device, *pinned, byte = 1;
    long code = 0;
    uint32_t id;
    volatile int calls = 0;
    OK(aclrtGetCurrentContext(&context));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&fork));
    OK(aclrtCreateStream(&outside));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&joined, ACL_EVENT_SYNC));
    OK(aclrtMalloc((void **)&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost((void **)&pinned, 4096));
    IS(107031, aclmdlRICaptureBegin(NULL, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    IS(ARGUMENT, aclmdlRICaptureBegin(stream, (aclmdlRICaptureMode)7));
    IS(107029, aclmdlRICaptureEnd(stream, &graph));
    OK(aclmdlRICaptureGetInfo(stream, &status, &other));
    IS(ACL_MODEL_RI_CAPTURE_STATUS_NONE, status);
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    IS(107027, aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclmdlRICaptureGetInfo(stream, &status, NULL));
    IS(ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, status);
    /* What a capture forbids. */
    IS(107027, aclrtSynchronizeStream(stream));
    IS(107027, aclrtSynchronizeStreamWithTimeout(stream, 10));
    IS(107027, aclrtStreamQuery(stream, &ready));
    IS(107027, aclrtDestroyStream(stream));
    IS(107027, aclrtDestroyStreamForce(stream));
    IS(107027, aclrtSynchronizeDevice());
    IS(107030, aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(107030, aclrtMemset(device, 1, 0, 1));
    IS(VALUE, aclrtMemcpyAsync(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    long with[2] = {0, (long)device};
    IS(107041, elsewhere(copy_elsewhere, with, with));
    void *arguments[3] = {stream, context, &code};
    IS(107038, elsewhere(end_elsewhere, arguments, &code));
    /* What it takes. */
    OK(aclrtMemsetAsync(device, 4096, 3, 8, stream));
    OK(aclrtLaunchHostFunc(stream, count, (void *)&calls));
    OK(aclrtRecordEvent(event, stream));
    IS(107028, aclrtSynchronizeEvent(event));
    OK(aclrtStreamWaitEvent(fork, event));
    OK(aclrtMemcpyAsync(pinned, 4096, device, 8, ACL_MEMCPY_DEVICE_TO_HOST, fork));
    IS(107027, aclrtSynchronizeStream(fork));
    OK(aclrtRecordEvent(joined, fork));
    OK(aclrtStreamWaitEvent(stream, joined));
    IS(107036, aclmdlRICaptureEnd(fork, &graph));
    OK(aclmdlRICaptureEnd(stream, &graph));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSynchronizeStream(fork));
    IS(0, calls);
    memset(pinned, 0, 8);
    OK(aclmdlRIExecuteAsync(graph, outside));
    OK(aclmdlRIExecuteAsync(graph, outside));
    OK(aclrtSynchronizeStream(outside));
    IS(2, calls);
    IS(3, pinned[7]);
    OK(aclmdlRIGetId(graph, &id));
    OK(aclmdlRIExecuteAsync(graph, NULL));
    OK(aclrtSynchronizeStream(NULL));
    IS(3, calls);
    OK(aclmdlRIDebugJsonPrint(graph, "/dev/null", ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY));
    IS(ARGUMENT, aclmdlRIDebugJsonPrint(graph, NULL, 0));
    IS(107009, aclmdlRIDebugJsonPrint(graph, "/no/such/folder/graph.json", 0));
    OK(aclmdlRIDestroy(graph));
    IS(HANDLE, aclmdlRIDestroy(graph));
    IS(HANDLE, aclmdlRIExecuteAsync(graph, stream));
    IS(ARGUMENT, aclmdlRIExecuteAsync(NULL, stream));
    /* A fork that is not joined. */
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamWaitEvent(fork, event));
    IS(107025, aclmdlRICaptureEnd(stream, &graph));
    OK(aclrtSynchronizeStream(fork));
    /* Modes. */
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    OK(aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(0, elsewhere(end_elsewhere, arguments, &code));
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    IS(0, elsewhere(copy_elsewhere, with, with));
    IS(107030, aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclmdlRICaptureThreadExchangeMode(&mode));
    IS(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL, mode);
    OK(aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclmdlRICaptureThreadExchangeMode(&mode));
    IS(ACL_MODEL_RI_CAPTURE_MODE_RELAXED, mode);
    /* An event from outside. */
    OK(aclrtRecordEvent(joined, outside));
    IS(107036, aclrtStreamWaitEvent(stream, joined));
    OK(aclrtStreamWaitEventWithFlag(stream, joined, 0, ACL_EVENT_WAIT_EXTERNAL));
    OK(aclmdlRICaptureEnd(stream, &graph));
    OK(aclmdlRIExecuteAsync(graph, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclmdlRIDestroy(graph));
    IS(ARGUMENT, aclmdlRICaptureThreadExchangeMode(NULL));
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyEvent(joined));
    OK(aclrtFree(device));
    OK(aclrtFreeHost(pinned));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyStream(fork));
    OK(aclrtDestroyStream(outside));
}

/* The thread of this ends before its capture does. */
static void *begin_elsewhere(void *argument) {
    void **arguments = argument;
    aclrtSetCurrentContext(arguments[1]);
    *(long *)arguments[2] = aclmdlRICaptureBegin(arguments[0], ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
    return NULL;
}

/* No capture is left that cannot be ended: copies and fills at once are allowed. */
static void no_capture_is_left(char *device) {
    char byte = 1;
    OK(aclrtMemset(device, 1, 0, 1));
    OK(aclrtMemcpy(device, 1, &byte, 1, ACL_MEMCPY_HOST_TO_DEVICE));
}

/* Captures that become invalid, and captures whose stream, context, device or thread goes. */
void capture_end_cases(void) {
    enum { INVALID = 507903 };
    aclrtStream stream, other, gone;
    aclrtEvent event;
    aclrtContext context, second;
    aclmdlRI graph;
    aclmdlRICaptureStatus status;
    char *device, *memory;
    long code = 0;
    uint32_t devices = 0;
    OK(aclrtGetCurrentContext(&context));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&other));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtMalloc((void **)&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    /* A wait across two captures makes both invalid: they take nothing, forbid nothing, and are over when they have been ended. */
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclmdlRICaptureBegin(other, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclrtRecordEvent(event, other));
    IS(107032, aclrtStreamWaitEvent(stream, event));
    aclrtStream both[2] = {other, stream};
    for (int i = 0; i < 2; i++) {
        OK(aclmdlRICaptureGetInfo(both[i], &status, NULL));
        IS(ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED, status);
        IS(INVALID, aclrtMemsetAsync(device, 4096, 1, 8, both[i]));
        IS(INVALID, aclrtRecordEvent(event, both[i]));
        IS(107027, aclrtSynchronizeStream(both[i]));
    }
    IS(INVALID, aclrtStreamWaitEvent(other, event));
    no_capture_is_left(device);
    for (int i = 0; i < 2; i++) {
        IS(INVALID, aclmdlRICaptureEnd(both[i], &graph));
        IS(107029, aclmdlRICaptureEnd(both[i], &graph));
        OK(aclmdlRICaptureGetInfo(both[i], &status, NULL));
        IS(ACL_MODEL_RI_CAPTURE_STATUS_NONE, status);
        OK(aclrtSynchronizeStream(both[i]));
    }
    /* The thread that began it has ended: any thread may end it. */
    void *arguments[3] = {stream, context, &code};
    IS(0, elsewhere(begin_elsewhere, arguments, &code));
    no_capture_is_left(device);
    OK(aclmdlRICaptureGetInfo(stream, &status, NULL));
    IS(ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED, status);
    IS(INVALID, aclmdlRICaptureEnd(stream, &graph));
    OK(aclrtSynchronizeStream(stream));
    /* The context of the stream that began it goes, and with it the capture and the graphs. */
    OK(aclrtCreateContext(&second, 0));
    OK(aclrtCreateStream(&gone));
    OK(aclmdlRICaptureBegin(gone, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclrtMemsetAsync(device, 4096, 1, 8, gone));
    OK(aclmdlRICaptureEnd(gone, &graph));
    OK(aclmdlRIExecuteAsync(graph, gone));
    OK(aclmdlRICaptureBegin(gone, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclrtDestroyContext(second));
    OK(aclrtSetCurrentContext(context));
    no_capture_is_left(device);
    IS(HANDLE, aclmdlRIDestroy(graph));
    /* The context of one that joined goes: the capture is invalid, and its own stream ends it. */
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtCreateContext(&second, 0));
    OK(aclrtCreateStream(&gone));
    OK(aclrtStreamWaitEvent(gone, event));
    OK(aclrtDestroyContext(second));
    OK(aclrtSetCurrentContext(context));
    no_capture_is_left(device);
    IS(INVALID, aclmdlRICaptureEnd(stream, &graph));
    /* A device is reset, with and without force. */
    OK(aclrtGetDeviceCount(&devices));
    for (int i = 0; i < 2 && devices > 1; i++) {
        OK(aclrtSetDevice(1));
        OK(aclrtCreateStream(&gone));
        OK(aclrtMalloc((void **)&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
        OK(aclmdlRICaptureBegin(gone, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        OK(aclrtMemsetAsync(memory, 64, 1, 8, gone));
        OK(aclmdlRICaptureEnd(gone, &graph));
        OK(aclmdlRICaptureBegin(gone, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
        OK(i ? aclrtResetDeviceForce(1) : aclrtResetDevice(1));
        OK(aclrtSetCurrentContext(context));
        no_capture_is_left(device);
        IS(HANDLE, aclmdlRIExecuteAsync(graph, stream));
    }
    /* The library ends and begins again. */
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclFinalize());
    OK(aclInit(NULL));
    no_capture_is_left(device);
    OK(aclmdlRICaptureGetInfo(stream, &status, NULL));
    IS(ACL_MODEL_RI_CAPTURE_STATUS_NONE, status);
    OK(aclrtDestroyEvent(event));
    OK(aclrtFree(device));
    OK(aclrtDestroyStream(stream));
    OK(aclrtDestroyStream(other));
}

static pthread_t processed_by;
static void processed(void *argument) {
    processed_by = pthread_self();
    count(argument);
}

void callback_cases(void) {
    aclrtStream stream;
    volatile int calls = 0;
    uint32_t task = 0;
    uint64_t self = (uint64_t)pthread_self();
    OK(aclrtCreateStream(&stream));
    IS(ARGUMENT, aclrtLaunchHostFunc(stream, NULL, NULL));
    IS(107012, aclrtProcessReport(1));
    IS(107015, aclrtLaunchCallback(processed, (void *)&calls, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtSubscribeReport(self, stream));
    IS(107011, aclrtSubscribeReport(self, stream));
    IS(507012, aclrtProcessReport(1));
    IS(VALUE, aclrtProcessReport(0));
    IS(ARGUMENT, aclrtLaunchCallback(NULL, NULL, ACL_CALLBACK_BLOCK, stream));
    IS(ARGUMENT, aclrtLaunchCallback(processed, NULL, (aclrtCallbackBlockType)7, stream));
    OK(aclrtLaunchCallback(processed, (void *)&calls, ACL_CALLBACK_BLOCK, stream));
    OK(aclrtLaunchCallback(processed, (void *)&calls, ACL_CALLBACK_NO_BLOCK, stream));
    OK(aclrtProcessReport(5000));
    OK(aclrtProcessReport(-1));
    OK(aclrtSynchronizeStream(stream));
    IS(2, calls);
    HOLDS(pthread_equal(processed_by, pthread_self()));
    OK(aclrtUnSubscribeReport(self, stream));
    IS(107012, aclrtUnSubscribeReport(self, stream));
    OK(aclrtSubscribeHostFunc(self, stream));
    OK(aclrtLaunchHostFunc(stream, processed, (void *)&calls));
    OK(aclrtProcessHostFunc(5000));
    OK(aclrtSynchronizeStream(stream));
    IS(3, calls);
    OK(aclrtUnSubscribeHostFunc(self, stream));
    OK(aclrtLaunchHostFunc(stream, processed, (void *)&calls));
    OK(aclrtSynchronizeStream(stream));
    IS(4, calls);
    HOLDS(is_virtual || !pthread_equal(processed_by, pthread_self()));
    OK(aclrtSetExceptionInfoCallback(NULL));
    IS(ARGUMENT, aclrtExceptionInfoCallbackRegister(NULL));
    OK(aclrtGetThreadLastTaskId(&task));
    HOLDS(task > 0);
    IS((long)UINT32_MAX, aclrtGetTaskIdFromExceptionInfo(NULL));
    OK(aclrtDestroyStream(stream));
}

void limit_cases(void) {
    uint32_t cores, value;
    uint64_t real = 0;
    aclrtStream stream;
    OK(aclrtCreateStream(&stream));
    OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &cores));
    HOLDS(cores > 1);
    IS(ARGUMENT, aclrtGetDeviceResLimit(0, (aclrtDevResLimitType)5, &cores));
    IS(DEVICE_ID, aclrtGetDeviceResLimit(99, ACL_RT_DEV_RES_CUBE_CORE, &cores));
    IS(VALUE, aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 0));
    IS(VALUE, aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, cores + 1));
    OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 2));
    OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &value));
    IS(2, value);
    OK(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, 1));
    OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &value));
    IS(1, value);
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value));
    IS(2, value);
    OK(aclrtUseStreamResInCurrentThread(stream));
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value));
    IS(1, value);
    OK(aclrtUnuseStreamResInCurrentThread(stream));
    OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &value));
    IS(2, value);
    OK(aclrtResetStreamResLimit(stream));
    OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &value));
    IS(2, value);
    OK(aclrtResetDeviceResLimit(0));
    OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, &value));
    IS(cores, value);
    OK(aclrtSetOpExecuteTimeOutV2(5000, &real));
    HOLDS(real >= 5000);
    OK(aclrtSetOpExecuteTimeOutV2(0, &real));
    HOLDS(real > 1000000);
    IS(ARGUMENT, aclrtSetOpExecuteTimeOutV2(0, NULL));
    OK(aclrtSetOpExecuteTimeOut(0));
    OK(aclrtDestroyStream(stream));
}

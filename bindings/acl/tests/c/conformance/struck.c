/* What a program sees when a fault that a user asks for strikes a command: `struck WAY CODE MODEL`. The fault is in PTO_ACL_FAIL, and strikes
   the second command that it can strike. */
#include "cases.h"
#include "pto_acl.h"

int cases, failures, is_virtual;

enum { COUNT = 3, STREAM_TIMEOUT = 507046, EVENT_TIMEOUT = 507047, AICPU_EXCEPTION = 507018, DRIVER = 507899 };

static void mark(int64_t *args) { *(volatile int64_t *)args[0] = args[1]; }

static uint32_t reports, reported_code, reported_stream;
static void exception(aclrtExceptionInfo *info) {
    reports++;
    reported_code = aclrtGetErrorCodeFromExceptionInfo(info);
    reported_stream = aclrtGetStreamIdFromExceptionInfo(info);
}

static aclrtStream stream, other;
static aclrtFuncHandle function;
static int64_t *device, marks[COUNT];

static void begin(void) {
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtCreateStream(&other));
    OK(aclrtMalloc((void **)&device, sizeof marks, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(device, sizeof marks, 0, sizeof marks));
}

static int launch(int at, aclrtStream in) {
    uint64_t words[] = {(uintptr_t)&device[at], 7};
    return ptoAclLaunch(function, 1, words, 2, in);
}

static int fill(int at, aclrtStream in) { return aclrtMemsetAsync(&device[at], 8, 7, 8, in); }

/* The command of each word: 0 nothing. */
static int done(int first, int second, int third) {
    OK(aclrtMemcpy(marks, sizeof marks, device, sizeof marks, ACL_MEMCPY_DEVICE_TO_HOST));
    return (marks[0] != 0) == first && (marks[1] != 0) == second && (marks[2] != 0) == third;
}

/* The device does what it is asked to. */
static void works(aclrtStream in) {
    OK(aclrtMemset(device, sizeof marks, 0, sizeof marks));
    for (int at = 0; at < COUNT; at++) OK(at == 1 ? launch(at, in) : fill(at, in));
    OK(aclrtSynchronizeStream(in));
    HOLDS(done(1, 1, 1));
}

/* A kernel fails: its stream reports it once, and goes on. */
static void kernel_fails(int code) {
    int32_t id;
    begin();
    OK(aclrtSetExceptionInfoCallback(exception));
    OK(aclrtStreamGetId(stream, &id));
    OK(fill(0, stream));
    OK(launch(0, stream));
    OK(launch(1, stream));
    OK(launch(2, stream));
    IS(0, aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
    IS(code, aclrtSynchronizeStream(stream));
    const char *text = aclGetRecentErrMsg();
    HOLDS(text && strstr(text, "PTO_ACL_FAIL"));
    IS(code, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    IS(1, reports);
    IS(code, reported_code);
    IS(id, reported_stream);
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtSynchronizeStream(other));
    HOLDS(done(1, 0, 1));
    works(stream);
    works(other);
}

/* As above, in a stream that stops: its context takes nothing more, and a reset makes the device usable. */
static void stream_stops(int code) {
    aclrtStreamStatus status;
    begin();
    OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    OK(launch(0, stream));
    OK(launch(1, stream));
    IS(code, aclrtSynchronizeStream(stream));
    IS(code, launch(2, stream));
    IS(code, launch(2, other));
    OK(aclrtStreamQuery(other, &status));
    HOLDS(done(1, 0, 0));
    OK(aclrtResetDeviceForce(0));
    begin();
    works(stream);
}

/* A kernel of a graph fails where the graph is executed. */
static void graph_fails(int code) {
    aclmdlRI graph;
    begin();
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(launch(0, stream));
    OK(aclmdlRICaptureEnd(stream, &graph));
    OK(aclmdlRIExecuteAsync(graph, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclmdlRIExecuteAsync(graph, stream));
    IS(code, aclrtSynchronizeStream(stream));
    OK(aclmdlRIExecuteAsync(graph, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclmdlRIDestroy(graph));
    works(stream);
}

/* A command never ends. */
static void is_stuck(void) {
    aclrtStreamStatus status;
    begin();
    for (int at = 0; at < COUNT; at++) OK(fill(at, stream));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 5));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStream(stream));
    const char *text = aclGetRecentErrMsg();
    HOLDS(text && strstr(text, "stuck because PTO_ACL_FAIL"));
    IS(STREAM_TIMEOUT, aclrtSynchronizeDevice());
    OK(aclrtStreamQuery(stream, &status));
    IS(ACL_STREAM_STATUS_NOT_READY, status);
    HOLDS(done(1, 0, 0));
}

/* Later commands wait, other streams go on, and an abort drops them. */
static void stream_is_aborted(void) {
    is_stuck();
    works(other);
    OK(aclrtStreamAbort(stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(done(1, 1, 1));
    works(stream);
    OK(aclrtSynchronizeDevice());
    OK(aclrtDestroyStream(stream));
    OK(aclrtResetDevice(0));
}

/* Everything that waits for streams ends, and a reset drops what waits. */
static void stuck_device_is_reset(int is_destroyed, int is_forced) {
    aclrtEvent event;
    is_stuck();
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(event, stream));
    OK(aclrtStreamWaitEvent(other, event));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStreamWithTimeout(other, 5));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStream(other));
    IS(EVENT_TIMEOUT, aclrtSynchronizeEvent(event));
    if (is_destroyed) {
        OK(is_forced ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream));
        OK(aclrtSynchronizeStreamWithTimeout(other, 30000));
        OK(aclrtSynchronizeStream(other));
        OK(aclrtSynchronizeEvent(event));
    }
    OK(is_forced ? aclrtResetDeviceForce(0) : aclrtResetDevice(0));
    begin();
    works(stream);
    works(other);
    OK(aclrtSynchronizeDevice());
    OK(aclrtResetDevice(0));
}

/* A notify and a word of the stuck stream: waits for them get an error, whether the wait or the write was submitted first. */
static void words_are_awaited(void) {
    aclrtNotify notify;
    aclrtEvent event;
    uint64_t *word;
    aclrtStream third, fourth;
    begin();
    OK(aclrtCreateStream(&third));
    OK(aclrtCreateStream(&fourth));
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
    OK(aclrtMalloc((void **)&word, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(word, 64, 0, 64));
    OK(aclrtWaitAndResetNotify(notify, third, 0));
    for (int at = 0; at < COUNT; at++) OK(fill(at, stream));
    OK(aclrtRecordNotify(notify, stream));
    OK(aclrtValueWrite(word, 7, 0, stream));
    OK(aclrtValueWait(word, 7, 1, other));
    OK(aclrtRecordEvent(event, other));
    OK(aclrtStreamWaitEvent(fourth, event));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStreamWithTimeout(third, 5));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStream(third));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStream(other));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStream(fourth));
    IS(EVENT_TIMEOUT, aclrtSynchronizeEvent(event));
    /* A word that is written by another stream is waited for. */
    OK(aclrtStreamAbort(third));
    OK(aclrtValueWait(word + 1, 9, 1, third));
    OK(aclrtStreamAbort(fourth));
    OK(aclrtValueWrite(word + 1, 9, 0, fourth));
    OK(aclrtSynchronizeStream(third));
    OK(aclrtStreamAbort(stream));
    OK(aclrtStreamAbort(other));
    OK(aclrtSynchronizeDevice());
    works(other);
    OK(aclrtDestroyNotify(notify));
    OK(aclrtResetDevice(0));
}

static void count_call(void *calls) { ++*(volatile int *)calls; }

/* The branch of a graph is stuck: its stream waits for it, and a reset ends both, and takes the graph. */
static void branch_is_stuck(void) {
    static volatile int calls[2];
    aclrtEvent fork, join;
    aclmdlRI graph;
    begin();
    OK(aclrtCreateEventExWithFlag(&fork, ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&join, ACL_EVENT_SYNC));
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(aclrtRecordEvent(fork, stream));
    OK(aclrtStreamWaitEvent(other, fork));
    OK(aclrtLaunchHostFunc(stream, count_call, (void *)&calls[0]));
    OK(aclrtLaunchHostFunc(other, count_call, (void *)&calls[1]));
    OK(aclrtRecordEvent(join, other));
    OK(aclrtStreamWaitEvent(stream, join));
    OK(aclmdlRICaptureEnd(stream, &graph));
    OK(aclmdlRIExecuteAsync(graph, stream));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 5));
    IS(STREAM_TIMEOUT, aclrtSynchronizeStream(stream));
    IS(0, calls[1]);
    OK(aclrtResetDevice(0));
    begin();
    IS(107017, aclmdlRIExecuteAsync(graph, stream));
    works(stream);
    IS(0, calls[1]);
}

/* A model is not unloaded while its device cannot be waited for. */
static void model_stays(const char *path) {
    uint32_t model;
    begin();
    OK(aclmdlLoadFromFile(path, &model));
    for (int at = 0; at < COUNT; at++) OK(fill(at, stream));
    IS(STREAM_TIMEOUT, aclmdlUnload(model));
    OK(aclrtStreamAbort(stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclmdlUnload(model));
    works(stream);
}

/* The device is poisoned: streams are drained without an error and nothing is done, until it is reset by force. */
static void device_is_poisoned(const char *path) {
    enum { TENSOR = 4 * 8 * 64 * 4 };
    uint32_t model;
    char *x, *y;
    static volatile int64_t seen;
    static volatile int calls;
    uint64_t words[] = {(uintptr_t)&seen, 7};
    int64_t *pinned;
    begin();
    OK(aclrtMallocHost((void **)&pinned, 8));
    *pinned = 5;
    OK(aclmdlLoadFromFile(path, &model));
    OK(aclrtMalloc((void **)&x, TENSOR, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc((void **)&y, TENSOR, ACL_MEM_MALLOC_HUGE_FIRST));
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    OK(aclmdlAddDatasetBuffer(inputs, aclCreateDataBuffer(x, TENSOR)));
    OK(aclmdlAddDatasetBuffer(outputs, aclCreateDataBuffer(y, TENSOR)));
    for (int at = 0; at < COUNT; at++) OK(fill(at, stream));
    IS(AICPU_EXCEPTION, aclrtSynchronizeStream(stream));
    OK(fill(1, other));
    OK(ptoAclLaunch(function, 1, words, 2, other));
    OK(aclrtMemcpyAsync(pinned, 8, device, 8, ACL_MEMCPY_DEVICE_TO_HOST, other));
    OK(aclrtLaunchHostFunc(other, count_call, (void *)&calls));
    OK(aclrtSynchronizeStream(other));
    OK(aclrtSynchronizeDevice());
    HOLDS(seen == 0 && *pinned == 5);
    IS(1, calls);
    marks[0] = 5;
    IS(DRIVER, aclrtMemcpy(marks, sizeof marks, device, sizeof marks, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(DRIVER, aclrtMemcpy(device, sizeof marks, marks, sizeof marks, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(DRIVER, aclrtMemset(device, sizeof marks, 1, sizeof marks));
    IS(DRIVER, aclrtMemcpy2d(marks, 8, device, 8, 8, COUNT, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(DRIVER, aclrtMemsetD32(device, sizeof marks, 1, 1));
    IS(5, marks[0]);
    /* Models and batches of copies as well. */
    void *to[] = {pinned}, *from[] = {device};
    size_t sizes[] = {8}, firsts[] = {0}, failed;
    aclrtMemcpyBatchAttr attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    IS(DRIVER, aclmdlExecute(model, inputs, outputs));
    IS(DRIVER, aclrtMemcpyBatch(to, sizes, from, sizes, 1, &attribute, firsts, 1, &failed));
    OK(aclmdlExecuteAsync(model, inputs, outputs, other));
    OK(aclrtMemcpyBatchAsync(to, sizes, from, sizes, 1, &attribute, firsts, 1, &failed, other));
    OK(aclrtSynchronizeStream(other));
    IS(5, *pinned);
    /* Not by a reset alone. */
    OK(aclrtResetDevice(0));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc((void **)&device, sizeof marks, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(DRIVER, aclrtMemset(device, sizeof marks, 0, sizeof marks));
    /* Other devices are well. */
    OK(aclrtSetDevice(1));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&device, sizeof marks, ACL_MEM_MALLOC_HUGE_FIRST));
    works(stream);
    OK(aclrtResetDeviceForce(0));
    begin();
    works(stream);
    works(other);
    OK(ptoAclLaunch(function, 1, words, 2, other));
    OK(aclrtSynchronizeStream(other));
    IS(7, seen);
    OK(aclrtFreeHost(pinned));
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "";
    int code = count > 2 ? atoi(arguments[2]) : 0;
    OK(aclInit(NULL));
    OK(ptoAclKernelFromFunction("mark", mark, 1, &function));
    if (strcmp(way, "kernel") == 0) kernel_fails(code);
    else if (strcmp(way, "stop") == 0) stream_stops(code);
    else if (strcmp(way, "graph") == 0) graph_fails(code);
    else if (strcmp(way, "abort") == 0) stream_is_aborted();
    else if (strcmp(way, "reset") == 0) stuck_device_is_reset(0, 0);
    else if (strcmp(way, "destroy") == 0) stuck_device_is_reset(1, 0);
    else if (strcmp(way, "force") == 0) stuck_device_is_reset(0, 1);
    else if (strcmp(way, "destroy-force") == 0) stuck_device_is_reset(1, 1);
    else if (strcmp(way, "branch") == 0) branch_is_stuck();
    else if (strcmp(way, "words") == 0) words_are_awaited();
    else if (strcmp(way, "unload") == 0) model_stays(arguments[3]);
    else if (strcmp(way, "poisoned") == 0) device_is_poisoned(arguments[3]);
    else HOLDS(!"a way that there is");
    printf("%d failed\n", failures);
    return failures != 0;
}

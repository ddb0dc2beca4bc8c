/* The pattern of a library of tensors, which looks every function up in libascendcl.so when it first needs it: a pool of streams, allocators of its own
   for the device and for pinned memory, events that are polled before memory is used again, graphs, a thread for reports, tensors of another process. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "client.h"

/* A function by its name, with the type that the header gives it. */
static void *entry(const char *name) {
    static void *library;
    if (!library) library = dlopen("libascendcl.so", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) printf("%s is missing\n", name), exit(1);
    return found;
}
#define CALL(name) ((__typeof__(&name))entry(#name))

enum { BYTES = 1 << 16, STREAMS = 8, SEGMENTS = 3 };

static aclrtStream streams[STREAMS];
static size_t granule = 2 << 20;

/* What the library asks when it is first used: devices, versions, capabilities. */
static void first_use(void) {
    uint32_t count = 0;
    int32_t active = -1, device = -1, logic = -1, group = 0, status = -1;
    int64_t cores = 0, capability = 0;
    uint64_t real_us = 0;
    char version[128];
    const aclCannAttr *attributes;
    size_t attribute_count = 0;
    aclrtUuid uuid;
    aclrtUtilizationInfo rates;
    aclrtErrorInfo error;
    aclrtContext context;
    OK(CALL(aclInit)(NULL));
    IS(REPEATED, CALL(aclInit)(NULL));
    OK(CALL(aclrtGetDeviceCount)(&count));
    HOLDS(count > 1);
    /* A query shows whether the device is taken, without taking it. */
    OK(CALL(aclrtGetPrimaryCtxState)(0, NULL, &active));
    IS(0, active);
    OK(CALL(aclrtSetDevice)(0));
    OK(CALL(aclrtGetPrimaryCtxState)(0, NULL, &active));
    IS(1, active);
    OK(CALL(aclrtGetDevice)(&device));
    IS(0, device);
    HOLDS(strncmp(CALL(aclrtGetSocName)(), "Ascend910", 9) == 0);
    OK(CALL(aclsysGetVersionStr)((char *)"runtime", version));
    OK(CALL(aclrtGetDeviceInfo)(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &cores));
    OK(CALL(aclGetDeviceCapability)(0, ACL_DEVICE_INFO_AI_CORE_NUM, &capability));
    HOLDS(cores > 0 && capability > 0);
    OK(CALL(aclGetCannAttributeList)(&attributes, &attribute_count));
    for (size_t i = 0; i < attribute_count; i++) OK(CALL(aclGetCannAttribute)(attributes[i], &group));
    OK(CALL(aclrtGetLogicDevIdByUserDevId)(0, &logic));
    OK(CALL(aclrtDeviceGetBareTgid)(&group));
    IS(getpid(), group);
    OK(CALL(aclrtDeviceGetUuid)(0, &uuid));
    OK(CALL(aclrtGetDeviceUtilizationRate)(0, &rates));
    OK(CALL(aclrtGetErrorVerbose)(0, &error));
    IS(ACL_RT_NO_ERROR, error.errorType);
    OK(CALL(aclrtDeviceCanAccessPeer)(&status, 0, 1));
    IS(1, status);
    OK(CALL(aclrtDeviceEnablePeerAccess)(1, 0));
    OK(CALL(aclrtSetOpWaitTimeout)(600));
    OK(CALL(aclrtSetOpExecuteTimeOut)(500));
    OK(CALL(aclrtSetOpExecuteTimeOutV2)(500000000, &real_us));
    HOLDS(real_us >= 500000000);
    OK(CALL(aclrtGetCurrentContext)(&context));
    OK(CALL(aclrtSetCurrentContext)(context));
}

/* A thousand streams would be too many: a pool is made once, for two priorities. */
static void pool_of_streams(void) {
    aclrtStreamAttrValue value;
    int32_t id, before = -1;
    uint32_t all = 0, cores = 0;
    for (int i = 0; i < STREAMS; i++) {
        const uint32_t flags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC;
        OK(i == 0 ? CALL(aclrtCreateStream)(&streams[i]) : CALL(aclrtCreateStreamWithConfig)(&streams[i], i % 2 ? 0 : 7, flags));
        OK(CALL(aclrtSetStreamFailureMode)(streams[i], ACL_STOP_ON_FAILURE));
        OK(CALL(aclrtStreamGetId)(streams[i], &id));
        HOLDS(id != before);
        before = id;
        memset(&value, 0, sizeof value);
        value.userCustomTag = (uint32_t)i;
        OK(CALL(aclrtSetStreamAttribute)(streams[i], ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value));
    }
    OK(CALL(aclrtSetStreamOverflowSwitch)(streams[1], 1));
    OK(CALL(aclrtGetStreamOverflowSwitch)(streams[1], &cores));
    IS(1, cores);
    /* Cores for one stream, for all, and for what this thread submits. */
    OK(CALL(aclrtGetDeviceResLimit)(0, ACL_RT_DEV_RES_VECTOR_CORE, &all));
    OK(CALL(aclrtSetDeviceResLimit)(0, ACL_RT_DEV_RES_VECTOR_CORE, all - 1));
    OK(CALL(aclrtSetStreamResLimit)(streams[0], ACL_RT_DEV_RES_VECTOR_CORE, 1));
    OK(CALL(aclrtGetStreamResLimit)(streams[0], ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    IS(1, cores);
    OK(CALL(aclrtUseStreamResInCurrentThread)(streams[0]));
    OK(CALL(aclrtGetResInCurrentThread)(ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    IS(1, cores);
    OK(CALL(aclrtUnuseStreamResInCurrentThread)(streams[0]));
    OK(CALL(aclrtGetResInCurrentThread)(ACL_RT_DEV_RES_VECTOR_CORE, &cores));
    IS(all - 1, cores);
    OK(CALL(aclrtResetStreamResLimit)(streams[0]));
    OK(CALL(aclrtResetDeviceResLimit)(0));
}

/* Blocks of the device: what is full frees what it keeps and asks again; a block that another stream used waits for an event of that stream. */
static void blocks(void) {
    void *kept, *block, *other, *whole;
    size_t free_bytes = 0, total = 0, entries = 0;
    aclrtEvent used;
    aclrtEventRecordedStatus status;
    aclrtMemUsageInfo usage;
    OK(CALL(aclrtMallocAlign32)(&kept, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(CALL(aclrtGetMemInfo)(ACL_HBM_MEM, &free_bytes, &total));
    IS(NO_MEMORY, CALL(aclrtMalloc)(&whole, total + 1, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(NO_MEMORY, CALL(aclrtPeekAtLastError)(ACL_RT_THREAD_LEVEL));
    IS(NO_MEMORY, CALL(aclrtGetLastError)(ACL_RT_THREAD_LEVEL));
    OK(CALL(aclrtGetLastError)(ACL_RT_THREAD_LEVEL));
    const char *text = CALL(aclGetRecentErrMsg)();
    HOLDS(text && strstr(text, "aclrtMalloc"));
    OK(CALL(aclrtFree)(kept));
    OK(CALL(aclrtMalloc)(&block, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(CALL(aclrtMalloc)(&other, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(CALL(aclrtGetMemUsageInfo)(0, &usage, 1, &entries));
    OK(CALL(aclrtMemsetAsync)(block, BYTES, 7, BYTES, streams[0]));
    OK(CALL(aclrtCreateEventExWithFlag)(&used, ACL_EVENT_SYNC));
    OK(CALL(aclrtRecordEvent)(used, streams[0]));
    OK(CALL(aclrtStreamWaitEvent)(streams[1], used));
    OK(CALL(aclrtMemcpyAsync)(other, BYTES, block, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[1]));
    OK(CALL(aclrtRecordEvent)(used, streams[1]));
    OK(CALL(aclrtQueryEventStatus)(used, &status));
    OK(CALL(aclrtSynchronizeEvent)(used));
    OK(CALL(aclrtQueryEventStatus)(used, &status));
    IS(ACL_EVENT_RECORDED_STATUS_COMPLETE, status);
    OK(CALL(aclrtMemset)(block, BYTES, 8, BYTES));
    unsigned char byte = 0;
    OK(CALL(aclrtMemcpy)(&byte, 1, (char *)other + BYTES - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(7, byte);
    OK(CALL(aclrtDestroyEvent)(used));
    OK(CALL(aclrtFree)(block));
    OK(CALL(aclrtFree)(other));
}

/* Segments that grow from one address, and are given back from the middle. */
static void growing_segments(void) {
    aclrtPhysicalMemProp property;
    aclrtDrvMemHandle memory[SEGMENTS];
    char *base, byte = 0;
    memset(&property, 0, sizeof property);
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    OK(CALL(aclrtReserveMemAddress)((void **)&base, (size_t)64 << 30, 0, NULL, 1));
    for (int i = 0; i < SEGMENTS; i++) {
        OK(CALL(aclrtMallocPhysical)(&memory[i], granule, &property, 0));
        OK(CALL(aclrtMapMem)(base + (size_t)i * granule, granule, 0, memory[i], 0));
    }
    /* A tensor over the border of two segments. */
    OK(CALL(aclrtMemset)(base + granule - 64, 128, 9, 128));
    OK(CALL(aclrtMemcpy)(&byte, 1, base + granule + 63, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(9, byte);
    OK(CALL(aclrtUnmapMem)(base + granule));
    OK(CALL(aclrtFreePhysical)(memory[1]));
    OK(CALL(aclrtMallocPhysical)(&memory[1], granule, &property, 0));
    OK(CALL(aclrtMapMem)(base + granule, granule, 0, memory[1], 0));
    OK(CALL(aclrtMemcpy)(&byte, 1, base + granule - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(9, byte);
    for (int i = 0; i < SEGMENTS; i++) {
        OK(CALL(aclrtUnmapMem)(base + (size_t)i * granule));
        OK(CALL(aclrtFreePhysical)(memory[i]));
    }
    OK(CALL(aclrtReleaseMemAddress)(base));
}

/* Pinned memory: its own, that of the program, and how each is distinguished from plain memory. */
static void pinned_memory(void *device) {
    static _Alignas(4096) char own[BYTES];
    aclrtPtrAttributes attributes;
    aclrtMallocConfig config = {NULL, 0};
    char *pinned, *also;
    void *registered;
    OK(CALL(aclrtMallocHost)((void **)&pinned, BYTES));
    OK(CALL(aclrtMallocHostWithCfg)((void **)&also, BYTES, &config));
    OK(CALL(aclrtPointerGetAttributes)(pinned, &attributes));
    IS(ACL_MEM_LOCATION_TYPE_HOST, attributes.location.type);
    OK(CALL(aclrtPointerGetAttributes)(own, &attributes));
    IS(ACL_MEM_LOCATION_TYPE_UNREGISTERED, attributes.location.type);
    OK(CALL(aclrtHostRegister)(own, BYTES, ACL_HOST_REGISTER_MAPPED, &registered));
    OK(CALL(aclrtHostUnregister)(own));
    OK(CALL(aclrtHostRegisterV2)(own, BYTES, ACL_HOST_REG_MAPPED));
    memset(own, 3, BYTES);
    OK(CALL(aclrtMemcpyAsync)(device, BYTES, own, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, streams[2]));
    OK(CALL(aclrtMemcpyAsyncWithCondition)(pinned, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, streams[2]));
    OK(CALL(aclrtSynchronizeStreamWithTimeout)(streams[2], 30000));
    IS(3, pinned[BYTES - 1]);
    OK(CALL(aclrtHostUnregister)(own));
    /* Two pieces at once, and back. */
    void *here[2] = {device, (char *)device + 4096}, *there[2] = {pinned, also};
    size_t sizes[2] = {4096, 4096}, firsts[1] = {0}, failed = SIZE_MAX;
    aclrtMemcpyBatchAttr in, out;
    memset(&in, 0, sizeof in);
    in.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    in.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    memset(&out, 0, sizeof out);
    out.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    out.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    memset(pinned, 4, 4096);
    memset(also, 5, 4096);
    OK(CALL(aclrtMemcpyBatch)(here, sizes, there, sizes, 2, &in, firsts, 1, &failed));
    memset(pinned, 0, 4096);
    memset(also, 0, 4096);
    OK(CALL(aclrtMemcpyBatchAsync)(there, sizes, here, sizes, 2, &out, firsts, 1, &failed, streams[3]));
    OK(CALL(aclrtSynchronizeStream)(streams[3]));
    HOLDS(pinned[4095] == 4 && also[4095] == 5);
    OK(CALL(aclrtFreeHost)(pinned));
    OK(CALL(aclrtFreeHost)(also));
}

/* Times between events, and old events that are used again. */
static void events(void *device) {
    aclrtEvent begun, ended, old;
    aclrtEventWaitStatus waited;
    aclrtEventStatus status;
    aclrtStreamStatus state;
    float milliseconds = -1;
    uint64_t first_us = 0, second_us = 0;
    OK(CALL(aclrtCreateEvent)(&begun));
    OK(CALL(aclrtCreateEventExWithFlag)(&ended, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
    OK(CALL(aclrtCreateEventWithFlag)(&old, ACL_EVENT_SYNC));
    OK(CALL(aclrtRecordEvent)(begun, streams[4]));
    OK(CALL(aclrtMemsetAsync)(device, BYTES, 1, BYTES, streams[4]));
    OK(CALL(aclrtRecordEvent)(ended, streams[4]));
    OK(CALL(aclrtRecordEvent)(old, streams[4]));
    OK(CALL(aclrtStreamWaitEvent)(streams[5], old));
    OK(CALL(aclrtResetEvent)(old, streams[5]));
    OK(CALL(aclrtSynchronizeStream)(streams[5]));
    OK(CALL(aclrtQueryEventWaitStatus)(old, &waited));
    IS(ACL_EVENT_WAIT_STATUS_COMPLETE, waited);
    OK(CALL(aclrtSynchronizeEvent)(ended));
    OK(CALL(aclrtEventElapsedTime)(&milliseconds, begun, ended));
    HOLDS(milliseconds >= 0);
    OK(CALL(aclrtEventGetTimestamp)(begun, &first_us));
    OK(CALL(aclrtEventGetTimestamp)(ended, &second_us));
    HOLDS(first_us <= second_us);
    OK(CALL(aclrtQueryEvent)(begun, &status));
    IS(ACL_EVENT_STATUS_COMPLETE, status);
    OK(CALL(aclrtSynchronizeStream)(streams[4]));
    OK(CALL(aclrtStreamQuery)(streams[4], &state));
    IS(ACL_STREAM_STATUS_COMPLETE, state);
    OK(CALL(aclrtDestroyEvent)(begun));
    OK(CALL(aclrtDestroyEvent)(ended));
    OK(CALL(aclrtDestroyEvent)(old));
}

static void counted(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

/* A graph of two streams, with a word that a later part of it waits for. */
static void graph(char *device) {
    aclmdlRI graph, now;
    aclmdlRICaptureStatus status;
    aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
    aclrtEvent forked, joined;
    atomic_int calls = 0;
    uint32_t id = 0;
    void *late;
    char byte = 0;
    OK(CALL(aclrtCreateEventExWithFlag)(&forked, ACL_EVENT_SYNC));
    OK(CALL(aclrtCreateEventExWithFlag)(&joined, ACL_EVENT_SYNC));
    OK(CALL(aclrtMemset)(device, BYTES, 0, BYTES));
    OK(CALL(aclmdlRICaptureBegin)(streams[0], ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    OK(CALL(aclmdlRICaptureGetInfo)(streams[0], &status, &now));
    IS(ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, status);
    /* The allocator may ask the driver while a graph is captured. */
    OK(CALL(aclmdlRICaptureThreadExchangeMode)(&mode));
    OK(CALL(aclrtMalloc)(&late, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(CALL(aclmdlRICaptureThreadExchangeMode)(&mode));
    OK(CALL(aclrtMemsetAsync)(device, 64, 1, 64, streams[0]));
    OK(CALL(aclrtRecordEvent)(forked, streams[0]));
    OK(CALL(aclrtStreamWaitEvent)(streams[1], forked));
    OK(CALL(aclrtMemcpyAsync)(device + 64, 64, device, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[1]));
    OK(CALL(aclrtValueWrite)(device + 4096, 11, 0, streams[1]));
    OK(CALL(aclrtRecordEvent)(joined, streams[1]));
    OK(CALL(aclrtStreamWaitEvent)(streams[0], joined));
    OK(CALL(aclrtValueWait)(device + 4096, 11, ACL_STREAM_WAIT_VALUE_EQ, streams[0]));
    OK(CALL(aclrtLaunchHostFunc)(streams[0], counted, &calls));
    OK(CALL(aclmdlRICaptureEnd)(streams[0], &graph));
    IS(0, calls);
    OK(CALL(aclmdlRIGetId)(graph, &id));
    OK(CALL(aclmdlRIDebugJsonPrint)(graph, "/dev/null", 0));
    for (int i = 0; i < 5; i++) OK(CALL(aclmdlRIExecuteAsync)(graph, streams[0]));
    OK(CALL(aclrtSynchronizeStream)(streams[0]));
    IS(5, calls);
    OK(CALL(aclrtMemcpy)(&byte, 1, device + 127, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(1, byte);
    OK(CALL(aclmdlRIDestroy)(graph));
    OK(CALL(aclrtFree)(late));
    OK(CALL(aclrtDestroyEvent)(forked));
    OK(CALL(aclrtDestroyEvent)(joined));
}

static atomic_int is_over, is_subscribed;

/* The thread that calls what streams report. */
static void *reports(void *context) {
    OK(CALL(aclrtSetCurrentContext)(context));
    OK(CALL(aclrtSubscribeReport)((uint64_t)pthread_self(), streams[6]));
    atomic_store(&is_subscribed, 1);
    while (!atomic_load(&is_over)) (void)CALL(aclrtProcessReport)(20);
    OK(CALL(aclrtUnSubscribeReport)((uint64_t)pthread_self(), streams[6]));
    return NULL;
}

static void callbacks(void) {
    aclrtContext context;
    pthread_t thread;
    atomic_int calls = 0;
    OK(CALL(aclrtGetCurrentContext)(&context));
    pthread_create(&thread, NULL, reports, context);
    while (!atomic_load(&is_subscribed)) usleep(1000);
    for (int i = 0; i < 3; i++) OK(CALL(aclrtLaunchCallback)(counted, &calls, ACL_CALLBACK_BLOCK, streams[6]));
    OK(CALL(aclrtSynchronizeStream)(streams[6]));
    IS(3, calls);
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
}

/* A tensor that another process has: by a key, with the event after its last use, and a segment by its handle. */
struct tensor {
    char key[65];
    aclrtIpcEventHandle event;
    uint64_t segment;
};

static int receiver(int channel) {
    struct tensor tensor;
    aclrtDrvMemHandle memory;
    aclrtEvent event;
    aclrtStream stream;
    char *shared, *segment;
    int32_t self = getpid();
    unsigned char byte = 0;
    OK(CALL(aclInit)(NULL));
    OK(CALL(aclrtSetDevice)(0));
    OK(CALL(aclrtCreateStream)(&stream));
    tell(channel, &self, sizeof self);
    hear(channel, &tensor, sizeof tensor);
    OK(CALL(aclrtIpcMemImportByKey)((void **)&shared, tensor.key, 0));
    OK(CALL(aclrtIpcOpenEventHandle)(tensor.event, &event));
    OK(CALL(aclrtStreamWaitEvent)(stream, event));
    OK(CALL(aclrtMemsetAsync)(shared + 1, BYTES - 1, 78, BYTES - 1, stream));
    OK(CALL(aclrtSynchronizeStream)(stream));
    OK(CALL(aclrtMemcpy)(&byte, 1, shared, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(77, byte);
    OK(CALL(aclrtMemImportFromShareableHandle)(tensor.segment, 0, &memory));
    OK(CALL(aclrtReserveMemAddress)((void **)&segment, granule, 0, NULL, 1));
    OK(CALL(aclrtMapMem)(segment, granule, 0, memory, 0));
    OK(CALL(aclrtMemset)(segment, granule, 79, granule));
    OK(CALL(aclrtUnmapMem)(segment));
    OK(CALL(aclrtFreePhysical)(memory));
    OK(CALL(aclrtReleaseMemAddress)(segment));
    OK(CALL(aclrtDestroyEvent)(event));
    OK(CALL(aclrtIpcMemClose)(tensor.key));
    OK(CALL(aclrtDestroyStream)(stream));
    OK(CALL(aclrtResetDevice)(0));
    OK(CALL(aclFinalize)());
    return 0;
}

static void sends(struct other other) {
    struct tensor tensor;
    aclrtPhysicalMemProp property;
    aclrtDrvMemHandle memory;
    aclrtEvent event;
    char *shared, *segment;
    int32_t process = 0;
    unsigned char byte = 0;
    memset(&tensor, 0, sizeof tensor);
    memset(&property, 0, sizeof property);
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    hear(other.channel, &process, sizeof process);
    IS(other.process, process);
    OK(CALL(aclrtMalloc)((void **)&shared, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(CALL(aclrtIpcMemGetExportKey)(shared, BYTES, tensor.key, sizeof tensor.key, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
    OK(CALL(aclrtIpcMemSetImportPid)(tensor.key, &process, 1));
    OK(CALL(aclrtCreateEventExWithFlag)(&event, ACL_EVENT_IPC));
    OK(CALL(aclrtIpcGetEventHandle)(event, &tensor.event));
    OK(CALL(aclrtMallocPhysical)(&memory, granule, &property, 0));
    OK(CALL(aclrtReserveMemAddress)((void **)&segment, granule, 0, NULL, 1));
    OK(CALL(aclrtMapMem)(segment, granule, 0, memory, 0));
    OK(CALL(aclrtMemExportToShareableHandle)(memory, ACL_MEM_HANDLE_TYPE_NONE, ACL_RT_VMM_EXPORT_FLAG_DEFAULT, &tensor.segment));
    OK(CALL(aclrtMemSetPidToShareableHandle)(tensor.segment, &process, 1));
    OK(CALL(aclrtMemsetAsync)(shared, BYTES, 77, BYTES, streams[7]));
    OK(CALL(aclrtRecordEvent)(event, streams[7]));
    OK(CALL(aclrtSynchronizeStream)(streams[7]));
    tell(other.channel, &tensor, sizeof tensor);
    end_other(other);
    OK(CALL(aclrtMemcpy)(&byte, 1, shared + BYTES - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(78, byte);
    OK(CALL(aclrtMemcpy)(&byte, 1, segment, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(79, byte);
    OK(CALL(aclrtIpcMemClose)(tensor.key));
    OK(CALL(aclrtFree)(shared));
    OK(CALL(aclrtUnmapMem)(segment));
    OK(CALL(aclrtFreePhysical)(memory));
    OK(CALL(aclrtReleaseMemAddress)(segment));
    OK(CALL(aclrtDestroyEvent)(event));
}

int main(int count, char **words) {
    const int channel = channel_of(count, words);
    if (channel >= 0) return receiver(channel);
    const struct other other = start_other(words[0]);
    aclDataBuffer *buffer;
    char *device;
    first_use();
    pool_of_streams();
    blocks();
    growing_segments();
    OK(CALL(aclrtMalloc)((void **)&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    pinned_memory(device);
    events(device);
    graph(device);
    callbacks();
    sends(other);
    buffer = CALL(aclCreateDataBuffer)(device, BYTES);
    HOLDS(buffer != NULL);
    OK(CALL(aclDestroyDataBuffer)(buffer));
    OK(CALL(aclrtFree)(device));
    OK(CALL(aclrtSynchronizeDevice)());
    OK(CALL(aclrtSynchronizeDeviceWithTimeout)(30000));
    CALL(aclAppLog)(ACL_INFO, "main", "torch_npu.c", 1, "the library ends with %d streams", STREAMS);
    for (int i = 0; i < STREAMS; i++) OK(i % 2 ? CALL(aclrtDestroyStreamForce)(streams[i]) : CALL(aclrtDestroyStream)(streams[i]));
    OK(CALL(aclrtResetDevice)(0));
    OK(CALL(aclFinalize)());
    printf("torch_npu: ok\n");
    return 0;
}

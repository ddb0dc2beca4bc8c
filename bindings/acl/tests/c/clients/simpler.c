/* The pattern of a runtime that drives its own kernels: cores and time limits are asked for and set, each run has a stream of its own and times by
   events, a fault ends in a reset by force that is believed only after a probe, and processes map memory of each other. */
#include "client.h"
#include "pto_acl.h"

enum { WORDS = 256, RUNS = 4 };

static size_t granule;
static aclrtPhysicalMemProp property;

/* (words, value): adds the value to each word. */
static void add(int64_t *args) {
    int32_t *words = (int32_t *)args[0];
    for (int i = 0; i < WORDS; i++) words[i] += (int32_t)args[1];
}

static aclrtStream stream_of_a_run(void) {
    aclrtStream stream;
    uint32_t cube = 0, vector = 0, limited = 0;
    OK(aclrtCreateStream(&stream));
    OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &cube));
    OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, &vector));
    HOLDS(cube > 1 && vector >= 2);
    OK(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, cube - 1));
    OK(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_CUBE_CORE, &limited));
    IS(cube - 1, limited);
    return stream;
}

static void run(aclrtFuncHandle function, void *memory, uint64_t value) {
    aclrtStream stream = stream_of_a_run();
    aclrtEvent begun, ended;
    uint64_t from = 0, to = 0, words[2] = {(uint64_t)memory, value};
    OK(aclrtCreateEventExWithFlag(&begun, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
    OK(aclrtCreateEventExWithFlag(&ended, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
    OK(aclrtRecordEvent(begun, stream));
    OK(ptoAclLaunch(function, 1, words, 2, stream));
    OK(aclrtRecordEvent(ended, stream));
    OK(aclrtSynchronizeEvent(ended));
    OK(aclrtSynchronizeStreamWithTimeout(stream, 50000));
    OK(aclrtEventGetTimestamp(begun, &from));
    OK(aclrtEventGetTimestamp(ended, &to));
    HOLDS(from <= to);
    OK(aclrtDestroyEvent(begun));
    OK(aclrtDestroyEvent(ended));
    OK(aclrtDestroyStream(stream));
}

/* A kernel fails: what the stream says, and the way back to a device that works. */
static void fault_and_recovery(void) {
    aclrtStream stream = stream_of_a_run();
    void *probe;
    int32_t device;
    char byte = 1;
    OK(ptoAclLaunchException(stream, 0));
    IS(507015, aclrtSynchronizeStreamWithTimeout(stream, 50000));
    const char *text = aclGetRecentErrMsg();
    HOLDS(text && strstr(text, "507015"));
    HOLDS(aclrtSynchronizeDeviceWithTimeout(2000) != 507046);
    OK(aclrtResetDeviceForce(0));
    IS(107002, aclrtGetDevice(&device));
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc(&probe, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(probe, 64, 0, 64));
    OK(aclrtMemcpy(&byte, 1, probe, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(0, byte);
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyStream(stream));
    OK(aclrtFree(probe));
}

static void set_up(void) {
    uint64_t real_us = 0;
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    OK(aclrtSetOpExecuteTimeOutV2(45000000, &real_us));
    HOLDS(real_us >= 45000000);
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    OK(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule));
}

static void *mapped(aclrtDrvMemHandle memory) {
    void *address;
    aclrtMemAccessDesc access;
    memset(&access, 0, sizeof access);
    access.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
    access.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    OK(aclrtReserveMemAddress(&address, granule, 0, NULL, 1));
    OK(aclrtMapMem(address, granule, 0, memory, 0));
    OK(aclrtMemSetAccess(address, granule, &access, 1));
    return address;
}

static void unmap(void *address, aclrtDrvMemHandle memory) {
    OK(aclrtUnmapMem(address));
    OK(aclrtFreePhysical(memory));
    OK(aclrtReleaseMemAddress(address));
}

/* What one process has: two pieces that the other one maps, by handles of both kinds. */
struct window {
    uint64_t old, new;
};

static int neighbour(int channel) {
    struct window window;
    aclrtDrvMemHandle memory[2];
    int32_t value = 0;
    set_up();
    hear(channel, &window, sizeof window);
    OK(aclrtMemImportFromShareableHandle(window.old, 0, &memory[0]));
    OK(aclrtMemImportFromShareableHandleV2(&window.new, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &memory[1]));
    for (int i = 0; i < 2; i++) {
        int32_t *address = mapped(memory[i]);
        OK(aclrtMemcpy(&value, 4, address, 4, ACL_MEMCPY_DEVICE_TO_HOST));
        value *= 2;
        OK(aclrtMemcpy(address, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
        unmap(address, memory[i]);
    }
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    return 0;
}

static void windows(struct other other) {
    struct window window;
    aclrtDrvMemHandle memory[2];
    int32_t *address[2], value = 0;
    for (int i = 0; i < 2; i++) {
        OK(aclrtMallocPhysical(&memory[i], granule, &property, 0));
        address[i] = mapped(memory[i]);
        value = 100 + i;
        OK(aclrtMemcpy(address[i], 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    }
    OK(aclrtMemExportToShareableHandle(memory[0], ACL_MEM_HANDLE_TYPE_NONE, 1, &window.old));
    OK(aclrtMemExportToShareableHandleV2(memory[1], 1, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &window.new));
    tell(other.channel, &window, sizeof window);
    end_other(other);
    for (int i = 0; i < 2; i++) {
        OK(aclrtMemcpy(&value, 4, address[i], 4, ACL_MEMCPY_DEVICE_TO_HOST));
        IS(2 * (100 + i), value);
        unmap(address[i], memory[i]);
    }
}

int main(int count, char **words) {
    const int channel = channel_of(count, words);
    if (channel >= 0) return neighbour(channel);
    const struct other other = start_other(words[0]);
    aclrtFuncHandle function;
    void *memory;
    size_t before, total;
    int32_t values[WORDS], device = -1, state = -1;
    char key[65];
    set_up();
    OK(aclrtGetDevice(&device));
    HOLDS(device == 0 && strncmp(aclrtGetSocName(), "Ascend910", 9) == 0);
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
    HOLDS(before <= total);
    OK(ptoAclKernelFromFunction("add", add, 1, &function));
    OK(aclrtMalloc(&memory, sizeof values, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(memory, sizeof values, 0, sizeof values));
    for (uint64_t i = 1; i <= RUNS; i++) run(function, memory, i);
    OK(aclrtMemcpy(values, sizeof values, memory, sizeof values, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(values[0] == 10 && values[WORDS - 1] == 10);
    OK(aclrtIpcMemGetExportKey(memory, sizeof values, key, sizeof key, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    HOLDS(strlen(key) < sizeof key);
    OK(aclrtFree(memory));
    /* The other device: once for each direction, and again without harm. */
    OK(aclrtDevicePeerAccessStatus(0, 1, &state));
    IS(0, state);
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtDevicePeerAccessStatus(0, 1, &state));
    IS(1, state);
    windows(other);
    fault_and_recovery();
    OK(aclrtResetDevice(0));
    IS(507007, aclrtResetDevice(0));
    OK(aclFinalize());
    printf("simpler: ok\n");
    return 0;
}

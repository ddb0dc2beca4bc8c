/* Functions that programs hardly ever call, and that work all the same: each does what it is for, and refuses what is wrong. */
#include "cases.h"

static void *advise(aclrtAllocator allocator, size_t size, aclrtAllocatorAddr address) {
    (void)allocator, (void)size;
    return address;
}

static void exception(aclrtExceptionInfo *info) { (void)info; }

/* Numbers of devices, as this process, the machine and the hardware count them. Without a list of visible devices all three are one. */
static void numbers_of_devices(void) {
    int32_t found = -1;
    OK(aclrtGetLogicDevIdByPhyDevId(0, &found));
    IS(0, found);
    OK(aclrtGetPhyDevIdByUserDevId(0, &found));
    IS(0, found);
    OK(aclrtGetUserDevIdByLogicDevId(0, &found));
    IS(0, found);
    OK(aclrtGetUserDevIdByPhyDevId(0, &found));
    IS(0, found);
    IS(DEVICE_ID, aclrtGetLogicDevIdByPhyDevId(99, &found));
    IS(DEVICE_ID, aclrtGetPhyDevIdByUserDevId(99, &found));
    IS(DEVICE_ID, aclrtGetUserDevIdByLogicDevId(99, &found));
    IS(DEVICE_ID, aclrtGetUserDevIdByPhyDevId(-1, &found));
    IS(ARGUMENT, aclrtGetUserDevIdByPhyDevId(0, NULL));
}

static void memory_of_all_kinds(aclrtStream stream) {
    enum { WORDS = 64 };
    uint32_t *device, *other, *pinned;
    void *base = NULL;
    size_t bytes = 0;
    aclrtMallocConfig config = {NULL, 0};
    OK(aclrtMallocCached((void **)&device, 4 * WORDS, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocForTaskScheduler((void **)&other, 4 * WORDS, ACL_MEM_MALLOC_NORMAL_ONLY, &config));
    IS(ARGUMENT, aclrtMallocCached(NULL, 4 * WORDS, ACL_MEM_MALLOC_HUGE_FIRST));
    config.numAttrs = 1;
    IS(ARGUMENT, aclrtMallocForTaskScheduler((void **)&other, 4, ACL_MEM_MALLOC_NORMAL_ONLY, &config));
    OK(aclrtMallocHost((void **)&pinned, 4 * WORDS));
    OK(aclrtMemsetD32Async(device, 4 * WORDS, 0xABCD0123, WORDS, stream));
    IS(VALUE, aclrtMemsetD32Async(device, 4 * WORDS, 1, WORDS + 1, stream));
    OK(aclrtMemcpyAsyncWithCondition(pinned, 4 * WORDS, device, 4 * WORDS, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    HOLDS(pinned[0] == 0xABCD0123 && pinned[WORDS - 1] == 0xABCD0123);
    IS(VALUE, aclrtMemcpyAsyncWithCondition(pinned, 1, device, 4 * WORDS, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtMemFlush(device, 4 * WORDS));
    OK(aclrtMemInvalidate(device, 4 * WORDS));
    IS(ARGUMENT, aclrtMemFlush(NULL, 4));
    IS(ARGUMENT, aclrtMemInvalidate(device, 0));
    OK(aclrtMemGetAddressRange(device + 7, &base, &bytes));
    HOLDS(base == device && bytes == 4 * WORDS);
    IS(VALUE, aclrtMemGetAddressRange(BAD, &base, &bytes));
    /* Batches that report no index of a failure. */
    void *to[1] = {device}, *from[1] = {pinned};
    size_t rooms[1] = {4 * WORDS}, sizes[1] = {4 * WORDS}, firsts[1] = {0};
    aclrtMemcpyBatchAttr attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    pinned[3] = 4711;
    OK(aclrtMemcpyBatchV2(to, rooms, from, sizes, 1, &attribute, firsts, 1));
    IS(ARGUMENT, aclrtMemcpyBatchV2(to, rooms, from, sizes, 0, &attribute, firsts, 1));
    pinned[3] = 0;
    attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    OK(aclrtMemcpyBatchAsyncV2(from, rooms, to, sizes, 1, &attribute, firsts, 1, stream));
    OK(aclrtSynchronizeStream(stream));
    IS(4711, pinned[3]);
    OK(aclrtFree(device));
    OK(aclrtFree(other));
    OK(aclrtFreeHost(pinned));
}

static void physical_memory(void) {
    aclrtPhysicalMemProp property, found;
    aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtDrvMemHandle memory;
    size_t granule = 0;
    uint64_t flags = 0, handle = 0;
    int32_t self = (int32_t)getpid();
    void *address;
    memset(&property, 0, sizeof property);
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    OK(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granule));
    OK(aclrtMallocPhysical(&memory, granule, &property, 0));
    OK(aclrtMemGetAllocationPropertiesFromHandle(memory, &found));
    IS(0, memcmp(&property, &found, sizeof found));
    IS(HANDLE, aclrtMemGetAllocationPropertiesFromHandle(BAD, &found));
    OK(aclrtReserveMemAddress(&address, granule, 0, NULL, 0));
    IS(VALUE, aclrtMemGetAccess(address, &location, &flags));
    OK(aclrtMemMapNoAccess(address, granule, 0, memory, 0));
    IS(VALUE, aclrtMemMapNoAccess(address, granule, 0, memory, 0));
    OK(aclrtMemGetAccess(address, &location, &flags));
    IS(ACL_RT_MEM_ACCESS_FLAGS_READWRITE, flags);
    IS(ARGUMENT, aclrtMemGetAccess(address, NULL, &flags));
    OK(aclrtMemExportToShareableHandleV2(memory, 0, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &handle));
    OK(aclrtMemSetPidToShareableHandleV2(&handle, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &self, 1));
    IS(ARGUMENT, aclrtMemSetPidToShareableHandleV2(&handle, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &self, 0));
    OK(aclrtUnmapMem(address));
    OK(aclrtReleaseMemAddress(address));
    OK(aclrtFreePhysical(memory));
}

void rest_cases(int is_machine) {
    aclrtStream stream;
    aclrtNotify first, second;
    aclrtAllocatorDesc description;
    void *arguments;
    aclrtFuncHandle function;
    uint32_t number = 9, other = 9;
    uint64_t step = 0;
    OK(aclrtCreateStream(&stream));
    numbers_of_devices();
    memory_of_all_kinds(stream);
    if (!is_machine) physical_memory();
    OK(aclrtSetStreamOverflowSwitch(stream, 1));
    OK(aclrtGetStreamOverflowSwitch(stream, &number));
    IS(1, number);
    IS(VALUE, aclrtSetStreamOverflowSwitch(stream, 2));
    IS(ARGUMENT, aclrtGetStreamOverflowSwitch(stream, NULL));
    OK(aclrtCreateNotify(&first, 0));
    OK(aclrtCreateNotify(&second, 0));
    OK(aclrtGetNotifyId(first, &number));
    OK(aclrtGetNotifyId(second, &other));
    HOLDS(number != other);
    IS(HANDLE, aclrtGetNotifyId(BAD, &number));
    OK(aclrtDestroyNotify(first));
    OK(aclrtDestroyNotify(second));
    description = aclrtAllocatorCreateDesc();
    OK(aclrtAllocatorSetAllocAdviseFuncToDesc(description, advise));
    IS(ARGUMENT, aclrtAllocatorSetAllocAdviseFuncToDesc(NULL, advise));
    OK(aclrtAllocatorDestroyDesc(description));
    OK(aclrtGetOpTimeOutInterval(&step));
    HOLDS(step > 0);
    OK(aclrtSetOpExecuteTimeOutWithMs(1500));
    OK(aclrtGetOpExecuteTimeout(&number));
    IS(1500, number);
    OK(aclrtSetOpExecuteTimeOut(0));
    OK(aclrtExceptionInfoCallbackRegister(exception));
    OK(aclrtExceptionInfoCallbackUnregister(exception));
    IS(ARGUMENT, aclrtExceptionInfoCallbackUnregister(NULL));
    IS(ARGUMENT, aclrtGetArgsFromExceptionInfo(NULL, &arguments, &number));
    IS(ARGUMENT, aclrtGetFuncHandleFromExceptionInfo(NULL, &function));
    IS((long)UINT32_MAX, aclrtGetDeviceIdFromExceptionInfo(NULL));
    IS((long)UINT32_MAX, aclrtGetThreadIdFromExceptionInfo(NULL));
    OK(aclrtStreamStop(stream));
    IS(ARGUMENT, aclrtStreamStop(NULL));
    aclAppLog(ACL_DEBUG, "rest_cases", "rest.c", 1, "what a program logs at this level is left out");
    OK(aclrtDestroyStream(stream));
}

/* Of a binary and a function in it. */
void rest_of_kernel_cases(aclrtBinHandle binary, aclrtFuncHandle function, const char *name) {
    char found[64] = "", little[2];
    void *code = NULL;
    size_t bytes = 0;
    OK(aclrtGetFunctionName(function, sizeof found, found));
    IS(0, strcmp(found, name));
    IS(VALUE, aclrtGetFunctionName(function, sizeof little, little));
    IS(HANDLE, aclrtGetFunctionName(BAD, sizeof found, found));
    OK(aclrtBinaryGetDevAddress(binary, &code, &bytes));
    HOLDS(code != NULL && bytes > 0);
    IS(HANDLE, aclrtBinaryGetDevAddress(BAD, &code, &bytes));
}

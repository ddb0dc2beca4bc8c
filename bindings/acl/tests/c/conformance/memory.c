/* Memory, copies, virtual memory, keys. */
#include <math.h>

#include "cases.h"

void memory_cases(void) {
    void *first = NULL, *second = NULL, *host = NULL, *device = NULL;
    size_t before, after, total;
    aclrtPtrAttributes attributes;
    aclrtMemUsageInfo usage;
    aclrtMallocConfig config = {NULL, 0};
    int on_stack;
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
    HOLDS(before <= total && total > 0);
    IS(ARGUMENT, aclrtGetMemInfo(ACL_HBM_MEM, NULL, &total));
    IS(ARGUMENT, aclrtGetMemInfo((aclrtMemAttr)77, &before, &total));
    IS(ARGUMENT, aclrtMalloc(NULL, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(ARGUMENT, aclrtMalloc(&first, 0, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(ARGUMENT, aclrtMalloc(&first, 64, (aclrtMemMallocPolicy)99));
    IS(NO_MEMORY, aclrtMalloc(&first, total + 1, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(NO_MEMORY, aclrtMalloc(&first, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&first, 100, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&second, 1 << 20, ACL_MEM_MALLOC_NORMAL_ONLY_P2P));
    IS(0, (uintptr_t)first % 64);
    HOLDS(first != second);
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
    HOLDS(after <= before - (1 << 20));
    OK(aclrtGetMemUsageInfo(0, &usage, 1, &after));
    HOLDS(after == 1 && usage.curMemSize >= 1 << 20 && usage.memPeakSize >= usage.curMemSize);
    OK(aclrtPointerGetAttributes(first, &attributes));
    IS(ACL_MEM_LOCATION_TYPE_DEVICE, attributes.location.type);
    IS(0, attributes.location.id);
    OK(aclrtPointerGetAttributes(&on_stack, &attributes));
    IS(ACL_MEM_LOCATION_TYPE_UNREGISTERED, attributes.location.type);
    IS(ARGUMENT, aclrtPointerGetAttributes(NULL, &attributes));
    IS(ARGUMENT, aclrtFree(NULL));
    IS(VALUE, aclrtFree((char *)first + 64));
    IS(VALUE, aclrtFree(&on_stack));
    OK(aclrtFree(first));
    IS(VALUE, aclrtFree(first));
    OK(aclrtFreeWithDevSync(second));
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
    IS((long)before, after);
    OK(aclrtMallocAlign32(&first, 10, ACL_MEM_MALLOC_HUGE_ONLY));
    OK(aclrtFree(first));
    OK(aclrtMallocWithCfg(&first, 10, ACL_MEM_MALLOC_HUGE_ONLY, &config));
    OK(aclrtFree(first));
    OK(aclrtMallocWithCfg(&first, 10, ACL_MEM_MALLOC_HUGE_ONLY, NULL));
    OK(aclrtFree(first));
    /* Memory of the host. */
    IS(ARGUMENT, aclrtMallocHost(NULL, 64));
    IS(ARGUMENT, aclrtMallocHost(&host, 0));
    OK(aclrtMallocHost(&host, 4096));
    memset(host, 7, 4096);
    OK(aclrtPointerGetAttributes(host, &attributes));
    IS(ACL_MEM_LOCATION_TYPE_HOST, attributes.location.type);
    OK(aclrtFreeHost(host));
    IS(VALUE, aclrtFreeHost(host));
    IS(ARGUMENT, aclrtFreeHost(NULL));
    OK(aclrtMallocHostWithCfg(&host, 64, &config));
    OK(aclrtFreeHostWithDevSync(host));
    void *own = aligned_alloc(4096, 8192);
    IS(VALUE, aclrtHostRegister((char *)own + 8, 4096, ACL_HOST_REGISTER_MAPPED, &device));
    IS(ARGUMENT, aclrtHostRegister(own, 0, ACL_HOST_REGISTER_MAPPED, &device));
    IS(ARGUMENT, aclrtHostRegister(own, 8192, (aclrtHostRegisterType)3, &device));
    OK(aclrtHostRegister(own, 8192, ACL_HOST_REGISTER_MAPPED, &device));
    HOLDS(device != NULL);
    IS(507910, aclrtHostRegister(own, 8192, ACL_HOST_REGISTER_MAPPED, &device));
    OK(aclrtHostGetDevicePointer(own, &device, 0));
    IS(ARGUMENT, aclrtHostGetDevicePointer(own, &device, 1));
    OK(aclrtHostUnregister(own));
    IS(507911, aclrtHostUnregister(own));
    OK(aclrtHostRegisterV2(own, 4096, ACL_HOST_REG_MAPPED));
    OK(aclrtHostUnregister(own));
    /* Memory of aclrtMallocHost can be registered too, once, and stays what it is. */
    OK(aclrtMallocHost(&host, 32768));
    OK(aclrtHostRegister(host, 32768, ACL_HOST_REGISTER_MAPPED, &device));
    HOLDS(device == host);
    IS(507910, aclrtHostRegisterV2((char *)host + 4096, 4096, ACL_HOST_REG_MAPPED));
    OK(aclrtHostUnregister(host));
    IS(507911, aclrtHostUnregister(host));
    OK(aclrtHostRegisterV2(host, 32768, ACL_HOST_REG_MAPPED));
    OK(aclrtHostGetDevicePointer(host, &device, 0));
    OK(aclrtHostUnregister(host));
    OK(aclrtHostGetDevicePointer(host, &device, 0));
    OK(aclrtHostRegisterV2(host, 4096, ACL_HOST_REG_MAPPED));
    OK(aclrtFreeHost(host));
    IS(507911, aclrtHostUnregister(host));
    OK(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(VALUE, aclrtHostRegisterV2(device, 4096, ACL_HOST_REG_MAPPED));
    OK(aclrtFree(device));
    IS(VALUE, aclrtHostGetDevicePointer(own, &device, 0));
    free(own);
}

static void batches(char *device, char *pinned) {
    void *to[2] = {device, device + 64}, *from[2] = {pinned, pinned + 64};
    size_t rooms[2] = {64, 64}, sizes[2] = {64, 64}, firsts[1] = {0}, failed = 9;
    aclrtMemcpyBatchAttr attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    memset(pinned, 0x31, 64);
    memset(pinned + 64, 0x32, 64);
    OK(aclrtMemcpyBatch(to, rooms, from, sizes, 2, &attribute, firsts, 1, &failed));
    IS(ARGUMENT, aclrtMemcpyBatch(to, rooms, from, sizes, 0, &attribute, firsts, 1, &failed));
    IS(ARGUMENT, aclrtMemcpyBatch(to, rooms, from, sizes, 2, &attribute, firsts, 1, NULL));
    firsts[0] = 1;
    IS(VALUE, aclrtMemcpyBatch(to, rooms, from, sizes, 2, &attribute, firsts, 1, &failed));
    firsts[0] = 0;
    rooms[1] = 63;
    IS(VALUE, aclrtMemcpyBatch(to, rooms, from, sizes, 2, &attribute, firsts, 1, &failed));
    IS(1, failed);
    rooms[1] = 64;
    attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    IS(UNSUPPORTED, aclrtMemcpyBatch(to, rooms, from, sizes, 2, &attribute, firsts, 1, &failed));
    attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    IS(VALUE, aclrtMemcpyBatch(to, rooms, from, sizes, 2, &attribute, firsts, 1, &failed));
    memset(pinned, 0, 128);
    OK(aclrtMemcpyBatchAsync(from, rooms, to, sizes, 2, &attribute, firsts, 1, &failed, NULL));
    OK(aclrtSynchronizeStream(NULL));
    HOLDS(pinned[0] == 0x31 && pinned[127] == 0x32);
}

/* What a thread has copied before counts no more when it is freed, unregistered or pinned. */
static void no_copy_remembers_what_was_freed(aclrtStream stream) {
    static _Alignas(4096) unsigned char own[4096];
    void *device, *other, *pinned, *registered;
    OK(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc(&other, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&pinned, 4096));
    for (int round = 0; round < 2; round++) {
        OK(aclrtMemcpyAsync(other, 4096, device, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        OK(aclrtMemcpyAsync(device, 4096, pinned, 4096, ACL_MEMCPY_HOST_TO_DEVICE, stream));
        OK(aclrtMemsetAsync(device, 4096, 1, 4096, stream));
    }
    /* Within what was found, and beyond it. */
    OK(aclrtMemcpyAsync((char *)other + 64, 64, (char *)device + 4032, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    IS(VALUE, aclrtMemsetAsync((char *)device + 64, 1 << 30, 1, 1 << 30, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpyAsync(other, 4096, device, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtFree(device));
    IS(VALUE, aclrtMemcpyAsync(other, 4096, device, 4096, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    IS(VALUE, aclrtMemsetAsync(device, 4096, 1, 4096, stream));
    OK(aclrtFree(other));
    OK(aclrtFreeHost(pinned));
    IS(VALUE, aclrtMemcpyAsync(other, 64, own, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    /* Memory of the program is waited for, but while it is registered: the copy reads what is there then. */
    OK(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &registered));
    OK(aclrtMemcpyAsync(device, 64, own, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtHostUnregister(own));
    own[0] = 77;
    OK(aclrtMemcpyAsync(device, 64, own, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    own[0] = 0;
    OK(aclrtMemcpy(own, 64, device, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(77, own[0]);
    OK(aclrtFree(device));
}

void copy_cases(void) {
    enum { SIZE = 4096 };
    char source[SIZE], target[SIZE], *pinned;
    char *device, *other;
    float values[3] = {1, 5, 3}, sums[3] = {10, 2, 30};
    aclrtStream stream;
    for (int i = 0; i < SIZE; i++) source[i] = (char)i;
    OK(aclrtMalloc((void **)&device, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMalloc((void **)&other, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost((void **)&pinned, SIZE));
    OK(aclrtCreateStream(&stream));
    no_copy_remembers_what_was_freed(stream);
    OK(aclrtMemcpy(device, SIZE, source, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(other, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE));
    OK(aclrtMemcpy(target, SIZE, other, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(0, memcmp(source, target, SIZE));
    /* The kind is a hint; addresses decide. */
    memset(target, 0, SIZE);
    OK(aclrtMemcpy(target, SIZE, other, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(0, memcmp(source, target, SIZE));
    OK(aclrtMemcpy(target, SIZE, source, SIZE, ACL_MEMCPY_HOST_TO_HOST));
    OK(aclrtMemcpy(target, SIZE, other, SIZE, ACL_MEMCPY_DEFAULT));
    IS(ARGUMENT, aclrtMemcpy(target, SIZE, other, SIZE, (aclrtMemcpyKind)99));
    OK(aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(device, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE));
    IS(ARGUMENT, aclrtMemcpy(NULL, SIZE, source, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(ARGUMENT, aclrtMemcpy(device, SIZE, NULL, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(VALUE, aclrtMemcpy(device, 10, source, 11, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(VALUE, aclrtMemcpy(device, 3 * SIZE, source, 3 * SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    /* Fills. */
    OK(aclrtMemset(device, SIZE, 0x55, SIZE));
    OK(aclrtMemcpy(target, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(target[0] == 0x55 && target[SIZE - 1] == 0x55);
    IS(VALUE, aclrtMemset(device, 10, 0, 11));
    IS(ARGUMENT, aclrtMemset(NULL, 10, 0, 10));
    OK(aclrtMemsetAsync(device, SIZE, 0x66, 16, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(target, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(target[15] == 0x66 && target[16] == 0x55);
    IS(VALUE, aclrtMemsetAsync(device, 10, 0, 11, stream));
    IS(HANDLE, aclrtMemsetAsync(device, 10, 0, 10, BAD));
    /* Asynchronous copies: pageable memory may be reused when the call returns. */
    memcpy(target, source, SIZE);
    OK(aclrtMemcpyAsync(device, SIZE, target, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    memset(target, 0, SIZE);
    OK(aclrtMemcpyAsync(pinned, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    IS(0, memcmp(source, pinned, SIZE));
    OK(aclrtMemcpyAsync(other, SIZE, pinned, SIZE, ACL_MEMCPY_DEFAULT, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpyAsync(device, SIZE, other, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, NULL));
    OK(aclrtSynchronizeStream(NULL));
    IS(UNSUPPORTED, aclrtMemcpyAsync(target, SIZE, source, SIZE, ACL_MEMCPY_HOST_TO_HOST, stream));
    IS(VALUE, aclrtMemcpyAsync(device, 10, pinned, 11, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    IS(HANDLE, aclrtMemcpyAsync(device, SIZE, pinned, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, BAD));
    OK(aclrtMemcpyAsync(NULL, 0, NULL, 0, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    /* Rows. */
    OK(aclrtMemset(device, SIZE, 0, SIZE));
    OK(aclrtMemcpy2d(device, 64, source, 32, 16, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(target, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(target[64] == source[32] && target[16] == 0 && target[3 * 64 + 15] == source[3 * 32 + 15]);
    IS(VALUE, aclrtMemcpy2d(device, 64, source, 15, 16, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    IS(ARGUMENT, aclrtMemcpy2d(device, 64, source, 32, 0, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy2dAsync(pinned, 32, device, 64, 16, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    IS(source[32], pinned[32]);
    IS(VALUE, aclrtMemcpy2dAsync(pinned, 8, device, 64, 16, 4, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    /* Reductions. */
    OK(aclrtMemcpy(device, SIZE, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemcpy(other, SIZE, sums, sizeof sums, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtReduceAsync(other, device, sizeof values, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL));
    OK(aclrtReduceAsync(device, other, sizeof values, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, ACL_FLOAT, stream, NULL));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(sums, sizeof sums, device, sizeof sums, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(sums[0] == 11 && sums[1] == 7 && sums[2] == 33);
    /* What is not a number stays so, on whichever side it is. */
    for (aclrtReduceKind kind = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM; kind <= ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN; kind++) {
        float left[] = {5, NAN, NAN, 2}, right[] = {NAN, 1, NAN, 3};
        OK(aclrtMemcpy(device, SIZE, left, sizeof left, ACL_MEMCPY_HOST_TO_DEVICE));
        OK(aclrtMemcpy(other, SIZE, right, sizeof right, ACL_MEMCPY_HOST_TO_DEVICE));
        OK(aclrtReduceAsync(device, other, sizeof left, kind, ACL_FLOAT, stream, NULL));
        OK(aclrtSynchronizeStream(stream));
        OK(aclrtMemcpy(left, sizeof left, device, sizeof left, ACL_MEMCPY_DEVICE_TO_HOST));
        HOLDS(isnan(left[0]) && isnan(left[1]) && isnan(left[2]) && !isnan(left[3]));
    }
    IS(ARGUMENT, aclrtReduceAsync(other, device, 12, (aclrtReduceKind)9, ACL_FLOAT, stream, NULL));
    IS(UNSUPPORTED, aclrtReduceAsync(other, device, 12, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_STRING, stream, NULL));
    IS(ARGUMENT, aclrtReduceAsync(other, device, 12, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, device));
    IS(VALUE, aclrtReduceAsync(other, device, 11, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL));
    batches(device, pinned);
    OK(aclrtFree(device));
    OK(aclrtFree(other));
    OK(aclrtFreeHost(pinned));
    OK(aclrtDestroyStream(stream));
}

void virtual_memory_cases(void) {
    aclrtPhysicalMemProp property;
    aclrtMemAccessDesc access;
    aclrtDrvMemHandle first, second, again, same;
    size_t granule = 0, free_before, free_after, total;
    void *address, *more;
    int value = 0;
    memset(&property, 0, sizeof property);
    memset(&access, 0, sizeof access);
    property.memAttr = ACL_HBM_MEM_HUGE;
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    access.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
    access.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    OK(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule));
    HOLDS(granule > 0 && (granule & (granule - 1)) == 0);
    IS(ARGUMENT, aclrtMemGetAllocationGranularity(NULL, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule));
    IS(ARGUMENT, aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &granule));
    IS(ARGUMENT, aclrtReserveMemAddress(NULL, granule, 0, NULL, 0));
    IS(ARGUMENT, aclrtReserveMemAddress(&address, 0, 0, NULL, 0));
    OK(aclrtReserveMemAddress(&address, (size_t)32 << 30, 0, NULL, 1));
    OK(aclrtReserveMemAddress(&more, 4 * granule, 0, NULL, 0));
    HOLDS(address != more);
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
    IS(VALUE, aclrtMallocPhysical(&first, granule + 1, &property, 0));
    IS(ARGUMENT, aclrtMallocPhysical(&first, 0, &property, 0));
    IS(ARGUMENT, aclrtMallocPhysical(&first, granule, NULL, 0));
    IS(ARGUMENT, aclrtMallocPhysical(&first, granule, &property, 1));
    OK(aclrtMallocPhysical(&first, granule, &property, 0));
    OK(aclrtMallocPhysical(&second, 2 * granule, &property, 0));
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    IS((long)(3 * granule), (long)(free_before - free_after));
    OK(aclrtMapMem(address, granule, 0, first, 0));
    IS(VALUE, aclrtMapMem(address, granule, 0, first, 0));
    IS(VALUE, aclrtMapMem((char *)address + granule, granule, 0, second, 0));
    OK(aclrtMapMem((char *)address + granule, 2 * granule, 0, second, 0));
    IS(ARGUMENT, aclrtMapMem(more, granule, 8, first, 0));
    IS(VALUE, aclrtMapMem(&value, granule, 0, first, 0));
    IS(HANDLE, aclrtMapMem(more, granule, 0, BAD, 0));
    OK(aclrtMemSetAccess(address, granule, &access, 1));
    IS(VALUE, aclrtMemSetAccess(more, granule, &access, 1));
    IS(ARGUMENT, aclrtMemSetAccess(address, granule, &access, 0));
    IS(VALUE, aclrtReleaseMemAddress(address));
    /* The same memory at two addresses. */
    OK(aclrtMapMem(more, granule, 0, first, 0));
    value = 4711;
    OK(aclrtMemcpy(address, granule, &value, sizeof value, ACL_MEMCPY_HOST_TO_DEVICE));
    value = 0;
    OK(aclrtMemcpy(&value, sizeof value, more, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(4711, value);
    OK(aclrtUnmapMem(address));
    IS(VALUE, aclrtUnmapMem(address));
    OK(aclrtMapMem((char *)address + 3 * granule, granule, 0, first, 0));
    value = 0;
    OK(aclrtMemcpy(&value, sizeof value, (char *)address + 3 * granule, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(4711, value);
    /* Physical memory goes with its last mapping. */
    OK(aclrtFreePhysical(first));
    IS(HANDLE, aclrtFreePhysical(first));
    /* Its mapping gives a handle again, the same one each time. */
    OK(aclrtMemRetainAllocationHandle(more, &again));
    OK(aclrtMemRetainAllocationHandle((char *)address + 3 * granule, &same));
    IS(1, again == same && again != NULL);
    OK(aclrtFreePhysical(again));
    value = 0;
    OK(aclrtMemcpy(&value, sizeof value, more, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(4711, value);
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    IS((long)(3 * granule), (long)(free_before - free_after));
    OK(aclrtUnmapMem((char *)address + 3 * granule));
    OK(aclrtUnmapMem(more));
    OK(aclrtUnmapMem((char *)address + granule));
    OK(aclrtFreePhysical(second));
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    IS((long)free_before, free_after);
    IS(ARGUMENT, aclrtFreePhysical(NULL));
    OK(aclrtReleaseMemAddress(address));
    OK(aclrtReleaseMemAddress(more));
    IS(VALUE, aclrtReleaseMemAddress(more));
    IS(ARGUMENT, aclrtReleaseMemAddress(NULL));
}

void sharing_cases(void) {
    char key[128];
    void *device, *imported;
    int32_t process = getpid();
    aclrtNotify notify, second;
    OK(aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(ARGUMENT, aclrtIpcMemGetExportKey(NULL, 4096, key, 65, 0));
    IS(VALUE, aclrtIpcMemGetExportKey(device, 4096, key, 64, 0));
    IS(VALUE, aclrtIpcMemGetExportKey((char *)device + 8, 8, key, 65, 0));
    IS(ARGUMENT, aclrtIpcMemGetExportKey(device, 4096, key, 65, 8));
    OK(aclrtIpcMemGetExportKey(device, 4096, key, sizeof key, 0));
    HOLDS(strlen(key) < 65);
    OK(aclrtIpcMemSetImportPid(key, &process, 1));
    IS(ARGUMENT, aclrtIpcMemSetImportPid(key, NULL, 1));
    IS(VALUE, aclrtIpcMemImportByKey(&imported, key, 0));
    IS(VALUE, aclrtIpcMemImportByKey(&imported, "nonsense", 0));
    IS(ARGUMENT, aclrtIpcMemImportByKey(&imported, NULL, 0));
    OK(aclrtIpcMemClose(key));
    IS(VALUE, aclrtIpcMemClose("nonsense"));
    OK(aclrtFree(device));
    OK(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    OK(aclrtNotifyGetExportKey(notify, key, sizeof key, ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT));
    IS(207006, aclrtNotifyImportByKey(&second, key, ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT));
    OK(aclrtNotifySetImportPid(notify, &process, 1));
    OK(aclrtNotifyImportByKey(&second, key, ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT));
    OK(aclrtRecordNotify(second, NULL));
    OK(aclrtWaitAndResetNotify(notify, NULL, 0));
    OK(aclrtSynchronizeStream(NULL));
    OK(aclrtDestroyNotify(second));
    OK(aclrtDestroyNotify(notify));
}

/* A program whose calls are recorded and made again: `calls OBJECT`. Two threads, pinned and pageable memory, an event, a kernel of an
   object, virtual memory, functions of the host. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "try.h"

enum { COUNT = 512, BYTES = COUNT * 8 };

static aclrtContext context;
static aclrtEvent ready;
static volatile int called;

static void tell(void *argument) {
    (void)argument;
    called++;
}

static void *wait_for_it(void *argument) {
    (void)argument;
    TRY(aclrtSetCurrentContext(context));
    TRY(aclrtSynchronizeEvent(ready));
    return NULL;
}

int main(int count, char **arguments) {
    aclrtStream stream, other;
    aclrtBinHandle binary;
    aclrtFuncHandle fill;
    aclrtArgsHandle args;
    aclrtParamHandle parameter;
    aclrtDrvMemHandle physical;
    aclrtPhysicalMemProp property = {0};
    pthread_t thread;
    int64_t *device, *pinned, pageable[COUNT], value = 7, length = COUNT / 2;
    char *mapped;
    size_t granule;
    if (count < 2) return 2;
    TRY(aclInit(NULL));
    TRY(aclrtSetDevice(0));
    TRY(aclrtGetCurrentContext(&context));
    TRY(aclrtCreateStream(&stream));
    TRY(aclrtCreateStream(&other));
    TRY(aclrtCreateEventExWithFlag(&ready, ACL_EVENT_SYNC));
    TRY(aclrtMalloc((void **)&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(aclrtMallocHost((void **)&pinned, BYTES));
    for (int i = 0; i < COUNT; i++) pinned[i] = i;
    TRY(aclrtMemcpyAsync(device, BYTES, pinned, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    TRY(aclrtBinaryLoadFromFile(arguments[1], NULL, &binary));
    TRY(aclrtBinaryGetFunction(binary, "fill", &fill));
    TRY(aclrtKernelArgsInit(fill, &args));
    TRY(aclrtKernelArgsAppend(args, &device, sizeof device, &parameter));
    TRY(aclrtKernelArgsAppend(args, &length, sizeof length, &parameter));
    TRY(aclrtKernelArgsAppend(args, &value, sizeof value, &parameter));
    TRY(aclrtKernelArgsFinalize(args));
    TRY(aclrtLaunchKernelWithConfig(fill, 1, stream, NULL, args, NULL));
    TRY(aclrtRecordEvent(ready, stream));
    TRY(aclrtStreamWaitEvent(other, ready));
    TRY(aclrtLaunchHostFunc(other, tell, NULL));
    if (pthread_create(&thread, NULL, wait_for_it, NULL) || pthread_join(thread, NULL)) return 1;
    TRY(aclrtSynchronizeStream(other));
    TRY(aclrtMemcpy(pageable, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++)
        if (pageable[i] != (i < COUNT / 2 ? 7 : i)) return 1;
    /* Pointers to arguments: their words are in the record, and the one that is an address becomes that of the replay. */
    void *array[3] = {&device, &length, &value};
    value = 8;
    TRY(aclrtLaunchKernelWithArgsArray(fill, 1, stream, NULL, array));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtMemcpy(pageable, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++)
        if (pageable[i] != (i < COUNT / 2 ? 8 : i)) return 1;
    pageable[0] = 9;
    TRY(aclrtMemcpy(device, BYTES, pageable, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    TRY(aclrtMemcpy(pageable, 8, device, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    TRY(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule));
    TRY(aclrtReserveMemAddress((void **)&mapped, granule, 0, NULL, 1));
    TRY(aclrtMallocPhysical(&physical, granule, &property, 0));
    TRY(aclrtMapMem(mapped, granule, 0, physical, 0));
    TRY(aclrtMemset(mapped + 64, 64, 3, 64));
    TRY(aclrtMemcpy(pageable, 64, mapped + 64, 64, ACL_MEMCPY_DEVICE_TO_HOST));
    TRY(aclrtUnmapMem(mapped));
    TRY(aclrtFreePhysical(physical));
    TRY(aclrtReleaseMemAddress(mapped));
    TRY(aclrtDestroyEvent(ready));
    TRY(aclrtDestroyStream(stream));
    TRY(aclrtDestroyStream(other));
    TRY(aclrtFreeHost(pinned));
    TRY(aclrtFree(device));
    if (aclrtFree(NULL) == 0) return 1;
    TRY(aclrtResetDevice(0));
    TRY(aclFinalize());
    printf("calls: %d\n", called);
    return 0;
}

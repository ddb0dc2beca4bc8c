/* Calls of a program on the emulated machine: memory, copies, streams, events, words, notifies, functions of the host, kernels, a captured graph, a
   model, a fault and a reset; and what the machine cannot do, which is refused by name.
   `machine OBJECT MODEL`: any object, in place of the kernels that are flashed to the machine; a model that doubles 4 x 8 x 64 floats. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "pto_acl.h"

enum { COUNT = 1000, BYTES = 4 * COUNT, MODEL = 4 * 8 * 64 };

static int is(int line, const char *what, long long found, long long wanted) {
    if (found == wanted) return 1;
    const char *text = aclGetRecentErrMsg();
    printf("line %d: %s is %lld and not %lld: %s\n", line, what, found, wanted, text ? text : "no message");
    exit(1);
}

#define IS(what, wanted) is(__LINE__, #what, (long long)(what), (long long)(wanted))
#define OK(call) IS(call, 0)

static void refused(int line, int code, const char *name) {
    char wanted[128];
    snprintf(wanted, sizeof wanted, "[207000] %s: ", name);
    const char *text = aclGetRecentErrMsg();
    if (code == 207000 && text && strstr(text, wanted)) return;
    printf("line %d: %s gave %d: %s\n", line, name, code, text ? text : "no message");
    exit(1);
}

static void adds_one(void *number) { ++*(volatile int *)number; }
static void no_kernel(int64_t *arguments) { (void)arguments; }

/* sum += one, with arguments in memory of the host. */
static void add(aclrtFuncHandle function, float *one, float *sum, aclrtStream stream) {
    uint64_t words[4] = {(uint64_t)(uintptr_t)one, (uint64_t)(uintptr_t)sum, (uint64_t)(uintptr_t)sum, COUNT};
    OK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, words, sizeof words, NULL, 0));
}

static void all_are(const float *found, int count, float wanted) {
    for (int index = 0; index < count; index++)
        if (found[index] != wanted) printf("%d is %f and not %f\n", index, found[index], wanted), exit(1);
}

int main(int count, char **arguments) {
    uint32_t devices = 0;
    IS(count, 3);
    OK(aclInit(NULL));
    OK(aclrtGetDeviceCount(&devices));
    IS(devices, 1);
    OK(aclrtSetDevice(0));
    int64_t cores[2];
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &cores[0]));
    OK(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &cores[1]));
    IS(cores[0], 2), IS(cores[1], 4);

    /* Memory, copies of both kinds, fills. */
    float *one, *sum, *host, *back;
    aclrtStream stream, other;
    OK(aclrtCreateStream(&stream)), OK(aclrtCreateStream(&other));
    OK(aclrtMalloc((void **)&one, BYTES, ACL_MEM_MALLOC_HUGE_FIRST)), OK(aclrtMalloc((void **)&sum, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost((void **)&host, BYTES)), OK(aclrtMallocHost((void **)&back, BYTES));
    for (int index = 0; index < COUNT; index++) host[index] = 1;
    OK(aclrtMemcpy(one, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtMemsetAsync(sum, BYTES, 0, BYTES, stream));
    OK(aclrtSynchronizeStream(stream));

    /* A kernel of the machine, 50 times, with events between two streams. */
    aclrtBinHandle binary;
    aclrtFuncHandle function, absent;
    OK(aclrtBinaryLoadFromFile(arguments[1], NULL, &binary));
    OK(aclrtBinaryGetFunction(binary, "add", &function));
    IS(aclrtBinaryGetFunction(binary, "no_such_kernel", &absent) != 0, 1);
    IS(strstr(aclGetRecentErrMsg(), "flashed to qemu have no no_such_kernel") != NULL, 1);
    aclrtEvent start, end;
    OK(aclrtCreateEvent(&start)), OK(aclrtCreateEvent(&end));
    OK(aclrtRecordEvent(start, stream));
    for (int round = 0; round < 50; round++) add(function, one, sum, stream);
    OK(aclrtRecordEvent(end, stream));
    OK(aclrtStreamWaitEvent(other, end));
    OK(aclrtMemcpyAsync(back, BYTES, sum, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, other));
    OK(aclrtSynchronizeStream(other));
    all_are(back, COUNT, 50);
    float milliseconds = -1;
    OK(aclrtEventElapsedTime(&milliseconds, start, end));
    IS(milliseconds > 0, 1);

    /* Arguments in memory of the device. */
    uint64_t words[4] = {(uint64_t)(uintptr_t)one, (uint64_t)(uintptr_t)sum, (uint64_t)(uintptr_t)sum, COUNT};
    void *passed;
    OK(aclrtMalloc(&passed, sizeof words, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(passed, sizeof words, words, sizeof words, ACL_MEMCPY_HOST_TO_DEVICE));
    OK(aclrtLaunchKernel(function, 1, passed, sizeof words, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(back, BYTES, sum, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    all_are(back, COUNT, 51);

    /* Words, notifies, functions of the host. */
    uint64_t *word, read = 0;
    aclrtNotify notify;
    volatile int called = 0;
    OK(aclrtMalloc((void **)&word, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(word, 8, 0, 8));
    OK(aclrtCreateNotify(&notify, 0));
    OK(aclrtValueWait(word, 7, 1, other));
    OK(aclrtRecordNotify(notify, other));
    OK(aclrtValueWrite(word, 7, 0, stream));
    OK(aclrtWaitAndResetNotify(notify, stream, 0));
    OK(aclrtLaunchHostFunc(stream, adds_one, (void *)&called));
    OK(aclrtSynchronizeStream(stream)), OK(aclrtSynchronizeStream(other));
    OK(aclrtMemcpy(&read, 8, word, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(read, 7), IS(called, 1);

    /* A graph that was captured, three times. */
    aclmdlRI graph;
    OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
    add(function, one, sum, stream);
    OK(aclmdlRICaptureEnd(stream, &graph));
    for (int round = 0; round < 3; round++) OK(aclmdlRIExecuteAsync(graph, stream));
    OK(aclrtMemcpyAsync(back, BYTES, sum, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    all_are(back, COUNT, 54);
    OK(aclmdlRIDestroy(graph));

    /* A model: its tile kernel runs on the cores of the machine. */
    uint32_t model;
    float *in, *out, *values = malloc(4 * MODEL);
    OK(aclmdlLoadFromFile(arguments[2], &model));
    OK(aclrtMalloc((void **)&in, 4 * MODEL, ACL_MEM_MALLOC_HUGE_FIRST)), OK(aclrtMalloc((void **)&out, 4 * MODEL, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int index = 0; index < MODEL; index++) values[index] = 3;
    OK(aclrtMemcpy(in, 4 * MODEL, values, 4 * MODEL, ACL_MEMCPY_HOST_TO_DEVICE));
    aclmdlDataset *inputs = aclmdlCreateDataset(), *outputs = aclmdlCreateDataset();
    OK(aclmdlAddDatasetBuffer(inputs, aclCreateDataBuffer(in, 4 * MODEL))), OK(aclmdlAddDatasetBuffer(outputs, aclCreateDataBuffer(out, 4 * MODEL)));
    OK(aclmdlExecute(model, inputs, outputs));
    OK(aclrtMemcpy(values, 4 * MODEL, out, 4 * MODEL, ACL_MEMCPY_DEVICE_TO_HOST));
    all_are(values, MODEL, 6);
    OK(aclmdlUnload(model));
    free(values);

    /* What the machine cannot do. */
    aclrtPhysicalMemProp property;
    aclrtDrvMemHandle memory;
    char key[65];
    memset(&property, 0, sizeof property);
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    refused(__LINE__, aclrtMallocPhysical(&memory, 2 << 20, &property, 0), "aclrtMallocPhysical");
    refused(__LINE__, aclrtIpcMemGetExportKey(one, BYTES, key, sizeof key, 0), "aclrtIpcMemGetExportKey");
    refused(__LINE__, aclrtNotifyGetExportKey(notify, key, sizeof key, 0), "aclrtNotifyGetExportKey");
    uint64_t held[5] = {0, (uint64_t)(uintptr_t)sum, (uint64_t)(uintptr_t)sum, COUNT, 7};
    aclrtPlaceHolderInfo holder = {0, 32};
    refused(__LINE__, aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, held, sizeof held, &holder, 1), "aclrtLaunchKernelWithHostArgs");
    refused(__LINE__, ptoAclKernelFromFunction("no_kernel", (void *)no_kernel, 1, &absent), "ptoAclKernelFromFunction");

    /* A kernel that follows a bad address costs what is on the machine; after a reset it works again. */
    uint64_t bad[4] = {0x3000, 0x3000, 0x3000, COUNT};
    OK(aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, bad, sizeof bad, NULL, 0));
    int code = aclrtSynchronizeStream(stream);
    IS(code >= 507000 && code < 508000, 1);
    OK(aclrtResetDeviceForce(0));
    OK(aclrtSetDevice(0));
    OK(aclrtMalloc((void **)&one, BYTES, ACL_MEM_MALLOC_HUGE_FIRST)), OK(aclrtMalloc((void **)&sum, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemcpy(one, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE)), OK(aclrtMemcpy(sum, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE));
    add(function, one, sum, NULL);
    OK(aclrtSynchronizeStream(NULL));
    OK(aclrtMemcpy(back, BYTES, sum, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    all_are(back, COUNT, 2);
    OK(aclrtFree(one)), OK(aclrtFree(sum)), OK(aclrtFreeHost(host)), OK(aclrtFreeHost(back));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    printf("machine: ok\n");
    return 0;
}

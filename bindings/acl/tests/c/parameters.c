/* Parameters that a program declares for a kernel: `parameters OBJECT`, the object of the conformance suite in any form that is loaded. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "pto_acl.h"

static int failures;

static void is(int line, long wanted, long found) {
    if (wanted == found) return;
    const char *why = aclGetRecentErrMsg();
    printf("line %d: wanted %ld, found %ld; %s\n", line, wanted, found, why ? why : "no message");
    failures++;
}
#define IS(wanted, found) is(__LINE__, wanted, (long)(found))
#define OK(call) IS(0, call)

static void store(int64_t *args) { *(int64_t *)args[0] = args[1]; }

int main(int number, char **names) {
    aclrtBinHandle binary;
    aclrtFuncHandle fill, blocks, own;
    aclrtStream stream;
    int64_t *device, result[2] = {0, 0}, value = 4711, count = 2;
    const uint32_t words[2] = {8, 8}, none[1] = {0};
    void *arguments[3] = {&device, &count, &value};
    OK(aclrtSetDevice(0));
    OK(aclrtCreateStream(&stream));
    OK(aclrtMalloc((void **)&device, sizeof result, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtBinaryLoadFromFile(number > 1 ? names[1] : "", NULL, &binary));
    OK(aclrtBinaryGetFunction(binary, "fill", &fill));
    OK(aclrtBinaryGetFunction(binary, "number_blocks", &blocks));
    OK(aclrtLaunchKernelWithArgsArray(fill, 1, stream, NULL, arguments));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(4711, result[1]);
    /* A kernel that declares nothing, until the program does. */
    IS(107000, aclrtLaunchKernelWithArgsArray(blocks, 2, stream, NULL, arguments));
    IS(107000, ptoAclKernelParameters(blocks, none, 1));
    IS(107000, ptoAclKernelParameters(blocks, words, 1000));
    IS(100000, ptoAclKernelParameters(blocks, NULL, 1));
    IS(100000, ptoAclKernelParameters(NULL, words, 1));
    IS(107017, ptoAclKernelParameters(device, words, 1));
    OK(ptoAclKernelParameters(blocks, words, 1));
    OK(ptoAclKernelParameters(blocks, words, 1));
    /* What is declared stays. */
    IS(107000, ptoAclKernelParameters(blocks, words, 2));
    IS(107000, ptoAclKernelParameters(fill, words, 1));
    OK(aclrtLaunchKernelWithArgsArray(blocks, 2, stream, NULL, arguments));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(2, result[1]);
    /* A function of the program. */
    OK(ptoAclKernelFromFunction("store", store, 1, &own));
    IS(107000, aclrtLaunchKernelWithArgsArray(own, 1, stream, NULL, arguments));
    OK(ptoAclKernelParameters(own, words, 2));
    OK(aclrtLaunchKernelWithArgsArray(own, 1, stream, NULL, arguments));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtMemcpy(result, sizeof result, device, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(2, result[0]);
    OK(aclrtFree(device));
    OK(aclrtResetDevice(0));
    printf("parameters: %s\n", failures ? "failed" : "ok");
    return failures != 0;
}

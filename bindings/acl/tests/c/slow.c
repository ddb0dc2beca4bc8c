/* A kernel of the program that takes the time which is set for its virtual device: `slow CODE`, where CODE is what a launch ends with that may take 1 ms. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "pto_acl.h"

static void add_one(int64_t *args) { ++*(int64_t *)args[0]; }

static int failed;

static void is(int line, int wanted, int found) {
    if (wanted == found) return;
    const char *why = aclGetRecentErrMsg();
    printf("line %d: wanted %d, found %d; %s\n", line, wanted, found, why ? why : "");
    failed++;
}
#define IS(code, call) is(__LINE__, code, call)

int main(int count, char **arguments) {
    int late = count > 1 ? atoi(arguments[1]) : 0;
    aclrtFuncHandle function;
    aclrtStream stream;
    uint64_t real, word, *device;
    IS(0, aclInit(NULL));
    IS(0, aclrtSetDevice(0));
    IS(0, aclrtCreateStream(&stream));
    IS(0, aclrtMalloc((void **)&device, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    IS(0, aclrtMemset(device, 8, 0, 8));
    IS(0, ptoAclKernelFromFunction("add_one", add_one, 1, &function));
    word = (uintptr_t)device;
    IS(0, aclrtSetOpExecuteTimeOutV2(1000, &real));
    IS(0, ptoAclLaunch(function, 1, &word, 1, stream));
    IS(late, aclrtSynchronizeStream(stream));
    /* The stream goes on, and a kernel that may take longer is done. */
    IS(0, aclrtSetOpExecuteTimeOutV2(5000, &real));
    IS(0, ptoAclLaunch(function, 1, &word, 1, stream));
    IS(0, aclrtSynchronizeStream(stream));
    IS(0, aclrtResetDeviceForce(0));
    IS(0, aclFinalize());
    printf("%d failed\n", failed);
    return failed != 0;
}

/* The profiler: `profile FOLDER`. Two streams, of which one waits for the other, copies, a mark, ranges within each other, and every refusal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/acl_prof.h"

#define IS(code, call)                                                                            \
    do {                                                                                          \
        long found_ = (long)(call);                                                               \
        if (found_ != (long)(code)) {                                                             \
            const char *why_ = aclGetRecentErrMsg();                                              \
            printf("%s: wanted %ld, found %ld; %s\n", #call, (long)(code), found_, why_ ? why_ : ""); \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)
#define OK(call) IS(0, call)

enum { BYTES = 65536 };

static void work(void) {
    aclrtStream first, second;
    aclrtEvent event;
    void *device, *pinned;
    uint32_t range;
    OK(aclrtCreateStream(&first));
    OK(aclrtCreateStream(&second));
    OK(aclrtCreateEvent(&event));
    OK(aclrtMalloc(&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost(&pinned, BYTES));
    void *stamp = aclprofCreateStamp();
    OK(aclprofSetStampTraceMessage(stamp, "the whole step", 14));
    OK(aclprofRangeStart(stamp, &range));
    OK(aclprofSetStampTraceMessage(stamp, "inner", 5));
    OK(aclprofPush(stamp));
    aclprofTensorInfo operator = {aclprofStr2Id("add"), aclprofStr2Id("Add"), 0, 3, 0, 8, first, NULL};
    aclprofEventAttributes attributes = {ACL_PROF_EVENT_ATTR_VERSION, sizeof attributes, ACL_PROF_MESSAGE_TYPE_TENSOR_INFO, {&operator}};
    OK(aclprofRangePushEx(&attributes));
    OK(aclprofRangePop());
    attributes.messageType = 1;
    IS(100000, aclprofRangePushEx(&attributes));
    attributes.messageType = 0, attributes.size = 8;
    IS(100000, aclprofRangePushEx(&attributes));
    attributes.size = sizeof attributes, attributes.message.tensorInfo = NULL;
    IS(100000, aclprofRangePushEx(&attributes));
    IS(100000, aclprofRangePushEx(NULL));
    OK(aclrtMemsetAsync(device, BYTES, 7, BYTES, first));
    OK(aclrtRecordEvent(event, first));
    OK(aclprofMarkEx("here", 4, second));
    OK(aclrtStreamWaitEvent(second, event));
    OK(aclrtMemcpyAsync(pinned, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST, second));
    OK(aclrtSynchronizeStream(second));
    OK(aclprofMark(stamp));
    OK(aclprofPop());
    OK(aclprofRangeStop(range));
    IS(107000, aclprofRangeStop(range));
    IS(107000, aclprofPop());
    IS(107000, aclprofRangePop());
    aclprofDestroyStamp(stamp);
    IS(107017, aclprofMark(stamp));
    IS(7, ((char *)pinned)[BYTES - 1]);
    OK(aclrtDestroyEvent(event));
    OK(aclrtDestroyStream(first));
    OK(aclrtDestroyStream(second));
    OK(aclrtFree(device));
    OK(aclrtFreeHost(pinned));
}

int main(int count, char **arguments) {
    uint32_t devices[] = {0};
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    if (count > 1) {
        const char *folder = arguments[1];
        IS(100043, aclprofFinalize());
        IS(100000, aclprofInit(NULL, 3));
        IS(100000, aclprofInit(folder, 0));
        IS(100043, aclprofSetConfig(ACL_PROF_PATH, folder, strlen(folder)));
        OK(aclprofInit(folder, strlen(folder)));
        IS(100042, aclprofInit(folder, strlen(folder)));
        /* The folder may be named later, and what cannot be recorded is noted. */
        char later[256];
        snprintf(later, sizeof later, "%s/later", folder);
        OK(aclprofSetConfig(ACL_PROF_PATH, later, strlen(later)));
        OK(aclprofSetConfig(ACL_PROF_LLC_MODE, "read", 4));
        IS(100000, aclprofSetConfig(2, "read", 4));
        IS(100000, aclprofSetConfig(17, "read", 4));
        IS(100000, aclprofSetConfig(ACL_PROF_PATH, NULL, 4));
        IS(100000, aclprofSetConfig(ACL_PROF_PATH, folder, 0));
        IS(100000, aclprofSetConfig(ACL_PROF_PATH, folder, 257));
        IS(0, (long)aclprofCreateConfig(devices, 1, ACL_AICORE_NONE, NULL, 0));
        uint64_t asked = ACL_PROF_ACL_API | ACL_PROF_TASK_TIME | ACL_PROF_MSPROFTX | ACL_PROF_L2CACHE;
        aclprofConfig *config = aclprofCreateConfig(devices, 1, ACL_AICORE_NONE, NULL, asked);
        IS(100000, aclprofStart(NULL));
        IS(100043, aclprofStop(config));
        OK(aclprofStart(config));
        IS(100042, aclprofStart(config));
        IS(100042, aclprofSetConfig(ACL_PROF_LLC_MODE, "read", 4));
        work();
        OK(aclprofStop(config));
        work();
        OK(aclprofFinalize());
        OK(aclprofDestroyConfig(config));
        IS(207000, aclprofGetOpDescSize(NULL));
    } else {
        work();
    }
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    printf("profile: ok\n");
    return 0;
}

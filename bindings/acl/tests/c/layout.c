/* Sizes and offsets of the interface's structures, as the facts have them. It compiles, or it does not. */
#include <stddef.h>

#include "acl/acl.h"
#include "pto_acl.h"

#ifdef __cplusplus
#define HAS(...) static_assert(__VA_ARGS__, "")
#else
#define HAS(...) _Static_assert(__VA_ARGS__, "")
#endif
#define SIZE(type, bytes) HAS(sizeof(type) == (bytes))
#define AT(type, member, offset) HAS(offsetof(type, member) == (offset))

SIZE(aclrtMemLocation, 8); AT(aclrtMemLocation, type, 4);
SIZE(aclrtPhysicalMemProp, 32); AT(aclrtPhysicalMemProp, memAttr, 8); AT(aclrtPhysicalMemProp, location, 12);
AT(aclrtPhysicalMemProp, reserve, 24);
SIZE(aclrtPtrAttributes, 28); AT(aclrtPtrAttributes, pageSize, 8); AT(aclrtPtrAttributes, rsv, 12);
SIZE(aclrtMallocAttribute, 12); AT(aclrtMallocAttribute, value, 4);
SIZE(aclrtMallocConfig, 16);
SIZE(aclrtStreamConfigHandle, 32); AT(aclrtStreamConfigHandle, workSize, 8); AT(aclrtStreamConfigHandle, flag, 16);
AT(aclrtStreamConfigHandle, priority, 24);
SIZE(aclrtUtilizationInfo, 24);
SIZE(aclrtMemUsageInfo, 112); AT(aclrtMemUsageInfo, curMemSize, 32); AT(aclrtMemUsageInfo, reserved, 48);
SIZE(aclrtMemcpyBatchAttr, 32); AT(aclrtMemcpyBatchAttr, srcLoc, 8); AT(aclrtMemcpyBatchAttr, rsv, 16);
SIZE(aclrtMemAccessDesc, 24); AT(aclrtMemAccessDesc, location, 4);
SIZE(aclrtLaunchKernelAttrValue, 16);
SIZE(aclrtLaunchKernelAttr, 20); AT(aclrtLaunchKernelAttr, value, 4);
SIZE(aclrtLaunchKernelCfg, 16);
SIZE(aclrtPlaceHolderInfo, 8);
SIZE(aclrtBinaryLoadOption, 20); AT(aclrtBinaryLoadOption, value, 4);
SIZE(aclrtBinaryLoadOptions, 16);
SIZE(aclrtStreamAttrValue, 16);
SIZE(aclrtIpcEventHandle, 64);
SIZE(aclrtUuid, 16);
SIZE(aclrtMemFabricHandle, 128);
SIZE(aclrtErrorInfo, 2576);
SIZE(aclrtServerPid, 24); AT(aclrtServerPid, pid, 8); AT(aclrtServerPid, num, 16);
SIZE(aclmdlRITaskParams, 200);
SIZE(aclrtMemUceInfo, 128);
SIZE(aclCANNPackageVersion, 512);
SIZE(aclmdlRICondTaskParams, 24);
SIZE(aclrtRandomNumTaskInfo, 104);

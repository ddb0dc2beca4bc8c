/* The pattern of a library that transfers caches between processes: workers with a context of their own, memory whose location is queried before it is
   registered, segments of another process by keys and by handles, and a transfer that takes too long and is aborted. */
#include "client.h"

enum { BYTES = 1 << 16, PIECES = 4 };

static size_t granule;
static aclrtPhysicalMemProp property;

static void set_up(void) {
    OK(aclInit(NULL));
    OK(aclrtSetDevice(0));
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    property.memAttr = ACL_HBM_MEM_HUGE;
    OK(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granule));
}

static int place_of(const void *memory) {
    aclrtPtrAttributes attributes;
    OK(aclrtPointerGetAttributes(memory, &attributes));
    return (int)attributes.location.type;
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

static void batch(char *device, char *pinned) {
    void *to[PIECES], *from[PIECES];
    size_t sizes[PIECES], firsts[1] = {0}, failed = SIZE_MAX;
    aclrtMemcpyBatchAttr attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    for (int i = 0; i < PIECES; i++) to[i] = device + i * 4096, from[i] = pinned + i * 4096, sizes[i] = 4096;
    OK(aclrtMemcpyBatch(to, sizes, from, sizes, PIECES, &attribute, firsts, 1, &failed));
}

/* A transfer that does not end: the limit of the wait passes, and the stream is freed of it. */
static void gate(void *argument) {
    while (!__atomic_load_n((int *)argument, __ATOMIC_ACQUIRE)) usleep(1000);
}

static void too_long(void) {
    aclrtStream stream;
    int open = getenv("PTO_ACL_SEED") != NULL;
    OK(aclrtCreateStream(&stream));
    OK(aclrtLaunchHostFunc(stream, gate, &open));
    IS(open ? 0 : 507046, aclrtSynchronizeStreamWithTimeout(stream, 1));
    __atomic_store_n(&open, 1, __ATOMIC_RELEASE);
    OK(aclrtStreamAbort(stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtDestroyStream(stream));
}

/* What a process offers: memory by a key, and by a handle. */
struct offer {
    char key[65];
    uint64_t handle;
};

static int taker(int channel) {
    struct offer offer;
    aclrtDrvMemHandle memory;
    char *imported, bytes[2];
    set_up();
    hear(channel, &offer, sizeof offer);
    OK(aclrtIpcMemImportByKey((void **)&imported, offer.key, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
    OK(aclrtMemcpy(bytes, 1, imported + BYTES - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(21, bytes[0]);
    OK(aclrtMemset(imported, BYTES, 31, BYTES));
    OK(aclrtIpcMemClose(offer.key));
    OK(aclrtMemImportFromShareableHandleV2(&offer.handle, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &memory));
    imported = mapped(memory);
    OK(aclrtMemcpy(bytes, 1, imported + granule - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(22, bytes[0]);
    OK(aclrtMemset(imported, granule, 32, granule));
    OK(aclrtUnmapMem(imported));
    OK(aclrtFreePhysical(memory));
    OK(aclrtReleaseMemAddress(imported));
    tell(channel, "d", 1);
    return 0;
}

static void offers(struct other other) {
    struct offer offer;
    aclrtDrvMemHandle memory, again;
    char *device, *address, byte = 0;
    memset(&offer, 0, sizeof offer);
    OK(aclrtMalloc((void **)&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(device, BYTES, 21, BYTES));
    OK(aclrtIpcMemGetExportKey(device, BYTES, offer.key, sizeof offer.key, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    OK(aclrtMallocPhysical(&memory, granule, &property, 0));
    address = mapped(memory);
    OK(aclrtMemset(address, granule, 22, granule));
    /* Who has only the address gets the handle from it. */
    OK(aclrtMemRetainAllocationHandle(address, &again));
    OK(aclrtMemExportToShareableHandleV2(again, 1, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &offer.handle));
    tell(other.channel, &offer, sizeof offer);
    hear(other.channel, &byte, 1);
    end_other(other);
    OK(aclrtMemcpy(&byte, 1, device, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(31, byte);
    OK(aclrtMemcpy(&byte, 1, address, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(32, byte);
    OK(aclrtIpcMemClose(offer.key));
    OK(aclrtFree(device));
    OK(aclrtUnmapMem(address));
    OK(aclrtFreePhysical(memory));
    OK(aclrtReleaseMemAddress(address));
}

int main(int count, char **words) {
    static _Alignas(4096) char own[BYTES];
    const int channel = channel_of(count, words);
    if (channel >= 0) return taker(channel);
    const struct other other = start_other(words[0]);
    aclrtContext context, now;
    aclrtStream stream;
    char *device, *pinned;
    void *registered;
    uint32_t devices = 0;
    int32_t device_id = -1, logic = -1, physical = -1;
    set_up();
    OK(aclrtGetDeviceCount(&devices));
    OK(aclrtGetDevice(&device_id));
    HOLDS(devices > 0 && device_id == 0 && strncmp(aclrtGetSocName(), "Ascend", 6) == 0);
    OK(aclrtGetLogicDevIdByUserDevId(device_id, &logic));
    OK(aclrtGetPhyDevIdByLogicDevId(logic, &physical));
    HOLDS(physical >= 0);
    OK(aclrtCreateContext(&context, 0));
    OK(aclrtSetCurrentContext(context));
    OK(aclrtGetCurrentContext(&now));
    HOLDS(now == context);
    OK(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    OK(aclrtMalloc((void **)&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost((void **)&pinned, BYTES));
    IS(ACL_MEM_LOCATION_TYPE_DEVICE, place_of(device));
    IS(ACL_MEM_LOCATION_TYPE_HOST, place_of(pinned));
    IS(ACL_MEM_LOCATION_TYPE_UNREGISTERED, place_of(own));
    OK(aclrtHostRegister(own, BYTES, ACL_HOST_REGISTER_MAPPED, &registered));
    memset(own, 5, BYTES);
    OK(aclrtMemset(device, BYTES, 0, BYTES));
    OK(aclrtMemcpyAsync(device, BYTES, own, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtSynchronizeStream(stream));
    OK(aclrtHostUnregister(own));
    memset(pinned, 6, PIECES * 4096);
    batch(device, pinned);
    OK(aclrtMemcpy(own, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(own[0] == 6 && own[PIECES * 4096 - 1] == 6 && own[PIECES * 4096] == (PIECES * 4096 < BYTES ? 5 : 6));
    too_long();
    offers(other);
    OK(aclrtFreeHost(pinned));
    OK(aclrtFree(device));
    OK(aclrtDestroyStream(stream));
    HOLDS(aclGetRecentErrMsg() != NULL || getenv("PTO_ACL_SEED"));
    printf("mooncake: ok\n");
    return 0;
}

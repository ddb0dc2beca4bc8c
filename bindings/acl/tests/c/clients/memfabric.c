/* The pattern of a library that moves data between devices and the host for others: streams that are chosen for short submissions, copies in one piece,
   in rows and in batches, and a second device that is reached directly. */
#include "client.h"

enum { BYTES = 1 << 16, PITCH = 256, WIDTH = 200, ROWS = 64, PIECES = 4 };

static void in_batches(char *device, char *pinned) {
    void *to[PIECES], *from[PIECES];
    size_t rooms[PIECES], sizes[PIECES], firsts[1] = {0}, failed = SIZE_MAX;
    aclrtMemcpyBatchAttr attribute;
    memset(&attribute, 0, sizeof attribute);
    attribute.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attribute.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    for (int i = 0; i < PIECES; i++) {
        to[i] = device + i * 1024, from[i] = pinned + (PIECES - 1 - i) * 1024;
        rooms[i] = sizes[i] = 1024;
        memset(from[i], 1 + i, 1024);
    }
    OK(aclrtMemcpyBatch(to, rooms, from, sizes, PIECES, &attribute, firsts, 1, &failed));
    OK(aclrtMemcpy(pinned, BYTES, device, PIECES * 1024, ACL_MEMCPY_DEVICE_TO_HOST));
    for (int i = 0; i < PIECES; i++) IS(1 + i, pinned[i * 1024 + 1023]);
}

static void in_rows(char *device, char *pinned, aclrtStream stream) {
    for (int i = 0; i < BYTES; i++) pinned[i] = (char)(i % 113);
    OK(aclrtMemset(device, BYTES, 0, BYTES));
    OK(aclrtMemcpy2d(device, PITCH, pinned, WIDTH, WIDTH, ROWS, ACL_MEMCPY_HOST_TO_DEVICE));
    memset(pinned, 0, BYTES);
    OK(aclrtMemcpy2dAsync(pinned, WIDTH, device, PITCH, WIDTH, ROWS, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    for (int i = 0; i < WIDTH * ROWS; i++) IS((char)(i % 113), pinned[i]);
    OK(aclrtMemcpy(pinned, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    IS(0, pinned[WIDTH]);
}

static void to_the_other_device(char *device, char *pinned, aclrtStream stream) {
    char *peer;
    int32_t now;
    OK(aclrtDeviceEnablePeerAccess(1, 0));
    OK(aclrtSetDevice(1));
    OK(aclrtDeviceEnablePeerAccess(0, 0));
    OK(aclrtMalloc((void **)&peer, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMemset(peer, BYTES, 0, BYTES));
    OK(aclrtSetDevice(0));
    OK(aclrtGetDevice(&now));
    IS(0, now);
    memset(pinned, 77, BYTES);
    OK(aclrtMemcpyAsync(device, BYTES, pinned, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    OK(aclrtMemcpyAsync(peer, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    OK(aclrtSynchronizeStream(stream));
    memset(pinned, 0, BYTES);
    OK(aclrtMemcpy(pinned, BYTES, peer, BYTES, ACL_MEMCPY_DEVICE_TO_HOST));
    HOLDS(pinned[0] == 77 && pinned[BYTES - 1] == 77);
    OK(aclrtSetDevice(1));
    OK(aclrtFree(peer));
    OK(aclrtResetDevice(1));
    OK(aclrtSetDevice(0));
}

int main(void) {
    aclrtStream fast, plain;
    char *device, *pinned;
    OK(aclInit(NULL));
    IS(REPEATED, aclInit(NULL));
    OK(aclrtSetDevice(0));
    HOLDS(strncmp(aclrtGetSocName(), "Ascend910", 9) == 0);
    OK(aclrtCreateStreamWithConfig(&fast, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    OK(aclrtCreateStream(&plain));
    OK(aclrtMalloc((void **)&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclrtMallocHost((void **)&pinned, BYTES));
    in_batches(device, pinned);
    in_rows(device, pinned, fast);
    to_the_other_device(device, pinned, plain);
    /* Values of a type that the host has not: 1.5, -2, the least one above 0. */
    HOLDS(aclFloat16ToFloat(0x3E00) == 1.5f && aclFloat16ToFloat(0xC000) == -2.0f && aclFloat16ToFloat(1) == 0x1p-24f);
    OK(aclrtFreeHost(pinned));
    OK(aclrtFree(device));
    OK(aclrtDestroyStream(fast));
    OK(aclrtDestroyStream(plain));
    OK(aclrtResetDevice(0));
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
    printf("memfabric: ok\n");
    return 0;
}

/* Addresses that are reserved and at which nothing is mapped, what a reset does to mapped memory, and descriptors of shared memory:
   `reserved addresses | reset | descriptors`. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "pto_acl.h"

#define EXPECT(wanted, call)                                                                                        \
    do {                                                                                                            \
        long code_ = (long)(call);                                                                                  \
        const char *why_ = code_ != (wanted) ? aclGetRecentErrMsg() : NULL;                                         \
        if (code_ != (wanted)) {                                                                                    \
            printf("%d: %s: %ld instead of %ld, %s\n", __LINE__, #call, code_, (long)(wanted), why_ ? why_ : "none"); \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)
#define TRY(call) EXPECT(0, call)

enum { REFUSED = 107000, MANY = 100, DESCRIPTORS = 48 };

static size_t granule;
static aclrtPhysicalMemProp property;
static aclrtStream stream;

static void writes_five(int64_t *words) { *(volatile int *)words[0] = 5; }

static void set_up(void) {
    property.memAttr = ACL_HBM_MEM_HUGE;
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    TRY(aclInit(NULL));
    TRY(aclrtSetDevice(0));
    TRY(aclrtCreateStream(&stream));
    TRY(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granule));
}

/* Nothing reads or writes these addresses. */
static void is_refused(char *at, void *good) {
    int value = 7;
    TRY(aclrtSynchronizeStream(stream));
    EXPECT(REFUSED, aclrtMemcpy(at, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    EXPECT(REFUSED, aclrtMemcpy(&value, 4, at, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(REFUSED, aclrtMemcpy(good, 4, at, 4, ACL_MEMCPY_DEVICE_TO_DEVICE));
    EXPECT(REFUSED, aclrtMemcpyAsync(at, 4, good, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    EXPECT(REFUSED, aclrtMemset(at, 4, 1, 4));
    EXPECT(REFUSED, aclrtMemsetAsync(at, 4, 1, 4, stream));
    EXPECT(REFUSED, aclrtMemcpy2d(at, 16, good, 16, 8, 2, ACL_MEMCPY_DEVICE_TO_DEVICE));
    EXPECT(REFUSED, aclrtReduceAsync(good, at, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, stream, NULL));
    EXPECT(REFUSED, aclrtValueWrite(at, 1, 0, stream));
    EXPECT(REFUSED, aclrtValueWait(at, 1, ACL_STREAM_WAIT_VALUE_EQ, stream));
    TRY(aclrtSynchronizeStream(stream));
}

static void addresses(void) {
    char *at, *far;
    void *good;
    int value = 11, found = 0;
    size_t free_before, free_after, total;
    aclrtDrvMemHandle one, two;
    aclrtFuncHandle kernel;
    aclmdlRI copy, launch;
    TRY(ptoAclKernelFromFunction("writes_five", writes_five, 1, &kernel));
    TRY(aclrtMalloc(&good, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
    TRY(aclrtReserveMemAddress((void **)&at, 8 * granule, 0, NULL, 1));
    TRY(aclrtMallocPhysical(&one, granule, &property, 0));
    TRY(aclrtMallocPhysical(&two, granule, &property, 0));
    uint64_t words[] = {(uintptr_t)at + 64}, mapped[] = {(uintptr_t)at + granule + 64};
    is_refused(at, good);
    EXPECT(REFUSED, ptoAclLaunch(kernel, 1, words, 1, stream));
    /* Adjacent pieces are one range; what lies beyond is none. */
    TRY(aclrtMapMem(at, granule, 0, one, 0));
    TRY(aclrtMapMem(at + granule, granule, 0, two, 0));
    TRY(aclrtMemset(at, 2 * granule, 0, 2 * granule));
    TRY(aclrtMemcpy(at + granule - 2, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    is_refused(at + 2 * granule, good);
    is_refused(at + 2 * granule - 3, good);
    TRY(ptoAclLaunch(kernel, 1, words, 1, stream));
    TRY(ptoAclLaunch(kernel, 1, mapped, 1, stream));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtMemcpy(&found, 4, at + granule + 64, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(5, found);
    /* Graphs are made while the memory is mapped. */
    TRY(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    TRY(aclrtMemcpyAsync(good, 4, at + granule + 64, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    TRY(aclmdlRICaptureEnd(stream, &copy));
    TRY(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
    TRY(ptoAclLaunch(kernel, 1, mapped, 1, stream));
    TRY(aclmdlRICaptureEnd(stream, &launch));
    /* Unmapped, and mapped again: nothing is lost. */
    TRY(aclrtUnmapMem(at + granule));
    is_refused(at + granule, good);
    is_refused(at + granule - 2, good);
    EXPECT(REFUSED, ptoAclLaunch(kernel, 1, mapped, 1, stream));
    EXPECT(REFUSED, aclmdlRIExecuteAsync(copy, stream));
    EXPECT(REFUSED, aclmdlRIExecuteAsync(launch, stream));
    /* Arguments in memory of the device are read when the turn of the launch comes. */
    TRY(aclrtMemcpy(good, 8, mapped, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    TRY(aclrtLaunchKernel(kernel, 1, good, 8, stream));
    EXPECT(REFUSED, aclrtSynchronizeStream(stream));
    TRY(aclrtMemcpy(good, 8, words, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    TRY(aclrtLaunchKernel(kernel, 1, good, 8, stream));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtMapMem(at + granule, granule, 0, two, 0));
    TRY(aclrtMemcpy(&found, 4, at + granule + 64, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(5, found);
    TRY(aclmdlRIExecuteAsync(copy, stream));
    TRY(aclmdlRIExecuteAsync(launch, stream));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtMemcpy(&found, 4, good, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(5, found);
    TRY(aclmdlRIDestroy(copy));
    TRY(aclmdlRIDestroy(launch));
    /* Beyond the memory of the device. */
    TRY(aclrtReserveMemAddress((void **)&far, (size_t)64 << 30, 0, NULL, 1));
    is_refused(far + ((size_t)40 << 30), good);
    TRY(aclrtReleaseMemAddress(far));
    TRY(aclrtUnmapMem(at));
    TRY(aclrtUnmapMem(at + granule));
    TRY(aclrtReleaseMemAddress(at));
    TRY(aclrtFreePhysical(one));
    TRY(aclrtFreePhysical(two));
    TRY(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
    EXPECT((long)free_before, (long)free_after);
}

/* Memory that is mapped goes with the device, with and without force, and what gets its addresses then has pages of its own. */
static void reset(void) {
    size_t before, after, total;
    TRY(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
    for (int i = 0; i < 4; i++) {
        char *at, *block;
        unsigned char found = 0;
        aclrtDrvMemHandle memory;
        TRY(aclrtReserveMemAddress((void **)&at, 2 * granule, 0, NULL, 0));
        TRY(aclrtMallocPhysical(&memory, granule, &property, 0));
        TRY(aclrtMapMem(at, granule, 0, memory, 0));
        TRY(aclrtMemset(at, granule, 9, granule));
        TRY(i % 2 ? aclrtResetDeviceForce(0) : aclrtResetDevice(0));
        TRY(aclrtSetDevice(0));
        EXPECT(107017, aclrtFreePhysical(memory));
        EXPECT(REFUSED, aclrtUnmapMem(at));
        TRY(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
        EXPECT((long)before, (long)after);
        TRY(aclrtMalloc((void **)&block, 4 * granule, ACL_MEM_MALLOC_HUGE_FIRST));
        for (char *page = block; page < block + 4 * granule; page += granule / 2) {
            TRY(aclrtMemcpy(&found, 1, page, 1, ACL_MEMCPY_DEVICE_TO_HOST));
            EXPECT(0, found == 9);
        }
        TRY(aclrtFree(block));
    }
}

static void *mapped(aclrtDrvMemHandle memory) {
    void *address;
    TRY(aclrtReserveMemAddress(&address, granule, 0, NULL, 0));
    TRY(aclrtMapMem(address, granule, 0, memory, 0));
    return address;
}

static int first_of(void *address) {
    unsigned char byte;
    TRY(aclrtMemcpy(&byte, 1, address, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return byte;
}

static void limit_descriptors(void) {
    const struct rlimit limit = {DESCRIPTORS, DESCRIPTORS};
    TRY(setrlimit(RLIMIT_NOFILE, &limit));
}

static void can_open_a_file(void) {
    const int file = open("/dev/null", O_RDONLY);
    EXPECT(1, file >= 0);
    close(file);
}

/* The other process: it has as many parts as the first one shares, and keeps one that the first one lets go of. */
static int imports(char **words) {
    const int go = atoi(words[0]), done = atoi(words[1]);
    char byte = 0;
    uint64_t number = strtoull(words[2], NULL, 10);
    aclrtDrvMemHandle memory;
    aclrtNotify notify;
    limit_descriptors();
    set_up();
    TRY(aclrtMemImportFromShareableHandle(number, 0, &memory));
    void *address = mapped(memory);
    EXPECT(1, first_of(address));
    for (int i = 0; i < MANY; i++) TRY(aclrtNotifyImportByKey(&notify, words[3], ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT));
    TRY(aclrtRecordNotify(notify, stream));
    TRY(aclrtSynchronizeStream(stream));
    can_open_a_file();
    EXPECT(1, write(done, "d", 1));
    EXPECT(1, read(go, &byte, 1));
    EXPECT(1, first_of(address));
    TRY(aclrtMemset(address, granule, 2, granule));
    return 0;
}

static void descriptors(const char *self) {
    static char keys[MANY][128];
    uint64_t numbers[MANY];
    aclrtNotify notify[MANY];
    aclrtEvent event[MANY];
    aclrtDrvMemHandle memory[MANY];
    void *address, *blocks[MANY], *last = NULL;
    aclrtIpcEventHandle handle;
    int go[2], done[2], status = 0;
    char byte, words[3][24], block_key[128];
    EXPECT(0, pipe(go));
    EXPECT(0, pipe(done));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            TRY(aclrtCreateNotify(&notify[i], 0));
            TRY(aclrtNotifyGetExportKey(notify[i], keys[i], sizeof keys[i], ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
            TRY(aclrtCreateEventExWithFlag(&event[i], ACL_EVENT_IPC));
            TRY(aclrtIpcGetEventHandle(event[i], &handle));
            TRY(aclrtMallocPhysical(&memory[i], granule, &property, 0));
            TRY(aclrtMemExportToShareableHandle(memory[i], ACL_MEM_HANDLE_TYPE_NONE, 1, &numbers[i]));
            TRY(aclrtMalloc(&blocks[i], 4096, ACL_MEM_MALLOC_HUGE_FIRST));
            TRY(aclrtIpcMemGetExportKey(blocks[i], 4096, block_key, 65, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
        }
        can_open_a_file();
        if (round == 1) break;
        for (int i = 0; i < MANY; i++) {
            TRY(aclrtDestroyNotify(notify[i]));
            TRY(aclrtDestroyEvent(event[i]));
            TRY(aclrtFreePhysical(memory[i]));
            TRY(aclrtFree(blocks[i]));
        }
    }
    address = mapped(memory[0]);
    TRY(aclrtMemset(address, granule, 1, granule));
    snprintf(words[0], sizeof words[0], "%d", go[0]);
    snprintf(words[1], sizeof words[1], "%d", done[1]);
    snprintf(words[2], sizeof words[2], "%" PRIu64, numbers[0]);
    const pid_t child = fork();
    if (child == 0) {
        execl(self, self, "import", words[0], words[1], words[2], keys[0], NULL);
        _exit(9);
    }
    close(done[1]);
    EXPECT(1, read(done[0], &byte, 1));
    TRY(aclrtWaitAndResetNotify(notify[0], stream, 0));
    TRY(aclrtSynchronizeStream(stream));
    /* The other process has it still: the pages are not reused. */
    TRY(aclrtUnmapMem(address));
    TRY(aclrtFreePhysical(memory[0]));
    for (int i = 1; i < MANY; i++) TRY(aclrtFreePhysical(memory[i]));
    for (int i = 0; i < MANY; i++) {
        TRY(aclrtMallocPhysical(&memory[i], granule, &property, 0));
        last = mapped(memory[i]);
        EXPECT(0, first_of(last));
        TRY(aclrtMemset(last, granule, 7, granule));
    }
    EXPECT(1, write(go[1], "g", 1));
    EXPECT(child, waitpid(child, &status, 0));
    EXPECT(0, status);
    EXPECT(7, first_of(last));
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    if (strcmp(arguments[1], "import") == 0) return imports(arguments + 2);
    if (strcmp(arguments[1], "descriptors") == 0) limit_descriptors();
    set_up();
    if (strcmp(arguments[1], "addresses") == 0) addresses();
    if (strcmp(arguments[1], "reset") == 0) reset();
    if (strcmp(arguments[1], "descriptors") == 0) descriptors(arguments[0]);
    printf("%s: ok\n", arguments[1]);
    return 0;
}

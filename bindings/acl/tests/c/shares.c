/* What a program of several processes does that moves tensors between them: physical memory by handles of both kinds, with a list of processes and
   without one, memory by a key, events and notifies. The first process starts itself again with the handles and keys as words. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"

#define TRY(call)                                                                     \
    do {                                                                              \
        aclError code_ = (call);                                                      \
        const char *why_ = code_ ? aclGetRecentErrMsg() : NULL;                       \
        if (code_) {                                                                  \
            printf("%d: %s: %d, %s\n", __LINE__, #call, code_, why_ ? why_ : "none"); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)
#define EXPECT(wanted, call)                                                       \
    do {                                                                           \
        aclError code_ = (call);                                                   \
        if (code_ != (wanted)) {                                                   \
            printf("%d: %s: %d instead of %d\n", __LINE__, #call, code_, (wanted)); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

enum { BLOCKS = 3, BYTES = 4096, NOT_ALLOWED = 207006 };

static size_t granule;

static void *mapped(aclrtDrvMemHandle memory) {
    void *address;
    TRY(aclrtReserveMemAddress(&address, granule, 0, NULL, 0));
    TRY(aclrtMapMem(address, granule, 0, memory, 0));
    return address;
}

static unsigned char first_of(void *address) {
    unsigned char byte;
    TRY(aclrtMemcpy(&byte, 1, address, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    return byte;
}

static void set_up(void) {
    aclrtPhysicalMemProp property = {0};
    property.memAttr = ACL_HBM_MEM_HUGE;
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    TRY(aclInit(NULL));
    TRY(aclrtSetDevice(0));
    TRY(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule));
}

/* The handles, and one that this process may not import. */
static int imports(char **words) {
    aclrtDrvMemHandle memory[BLOCKS], refused;
    aclrtIpcEventHandle key = {{0}};
    aclrtEvent event;
    aclrtStream stream;
    aclrtNotify notify;
    void *by_key;
    uint64_t numbers[BLOCKS + 1];
    set_up();
    for (int i = 0; i <= BLOCKS; i++) numbers[i] = strtoull(words[i], NULL, 10);
    strncpy(key.reserved, words[BLOCKS + 1], sizeof key.reserved - 1);
    TRY(aclrtMemImportFromShareableHandle(numbers[0], 0, &memory[0]));
    TRY(aclrtMemImportFromShareableHandle(numbers[1], 0, &memory[1]));
    TRY(aclrtMemImportFromShareableHandleV2(&numbers[2], ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, 0, &memory[2]));
    EXPECT(NOT_ALLOWED, aclrtMemImportFromShareableHandle(numbers[BLOCKS], 0, &refused));
    TRY(aclrtCreateStream(&stream));
    TRY(aclrtIpcOpenEventHandle(key, &event));
    TRY(aclrtStreamWaitEvent(stream, event));
    TRY(aclrtSynchronizeStream(stream));
    for (int i = 0; i < BLOCKS; i++) {
        void *address = mapped(memory[i]);
        if (first_of(address) != 1 + i) return printf("block %d has %d\n", i, first_of(address)), 1;
        TRY(aclrtMemset(address, granule, 11 + i, granule));
        TRY(aclrtUnmapMem(address));
        TRY(aclrtReleaseMemAddress(address));
        TRY(aclrtFreePhysical(memory[i]));
    }
    TRY(aclrtIpcMemImportByKey(&by_key, words[BLOCKS + 2], ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT));
    if (first_of(by_key) != 21) return printf("the memory of the key has %d\n", first_of(by_key)), 1;
    TRY(aclrtMemsetAsync(by_key, BYTES, 22, BYTES, stream));
    /* The stream of the first process waits for this. */
    TRY(aclrtNotifyImportByKey(&notify, words[BLOCKS + 3], ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT));
    TRY(aclrtRecordNotify(notify, stream));
    TRY(aclrtSynchronizeStream(stream));
    TRY(aclrtDestroyNotify(notify));
    TRY(aclrtIpcMemClose(words[BLOCKS + 2]));
    TRY(aclrtDestroyEvent(event));
    TRY(aclrtDestroyStream(stream));
    TRY(aclrtResetDevice(0));
    return 0;
}

static void start(const char *self, uint64_t *numbers, char keys[3][128]) {
    char texts[BLOCKS + 1][24];
    for (int i = 0; i <= BLOCKS; i++) snprintf(texts[i], sizeof texts[i], "%" PRIu64, numbers[i]);
    execl(self, self, texts[0], texts[1], texts[2], texts[3], keys[0], keys[1], keys[2], NULL);
    _exit(9);
}

int main(int count, char **arguments) {
    aclrtPhysicalMemProp property = {0};
    aclrtDrvMemHandle memory[BLOCKS + 1];
    aclrtIpcEventHandle key;
    aclrtEvent event;
    aclrtStream stream;
    aclrtNotify notify;
    aclrtStreamStatus state;
    char keys[3][128];
    void *address[BLOCKS + 1], *by_key;
    uint64_t numbers[BLOCKS + 1];
    int status = 0, begun[2];
    char go;
    if (count > BLOCKS + 2) return imports(arguments + 1);
    set_up();
    property.memAttr = ACL_HBM_MEM_HUGE;
    property.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    for (int i = 0; i <= BLOCKS; i++) {
        TRY(aclrtMallocPhysical(&memory[i], granule, &property, 0));
        address[i] = mapped(memory[i]);
        TRY(aclrtMemset(address[i], granule, 1 + i, granule));
    }
    TRY(aclrtMemExportToShareableHandle(memory[0], ACL_MEM_HANDLE_TYPE_NONE, 1, &numbers[0]));
    TRY(aclrtMemExportToShareableHandle(memory[1], ACL_MEM_HANDLE_TYPE_NONE, 0, &numbers[1]));
    TRY(aclrtMemExportToShareableHandleV2(memory[2], 1, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT, &numbers[2]));
    TRY(aclrtMemExportToShareableHandle(memory[3], ACL_MEM_HANDLE_TYPE_NONE, 0, &numbers[3]));
    EXPECT(107000, aclrtMemImportFromShareableHandle(numbers[0], 0, &memory[0]));
    TRY(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
    TRY(aclrtIpcGetEventHandle(event, &key));
    TRY(aclrtCreateStream(&stream));
    TRY(aclrtRecordEvent(event, stream));
    memcpy(keys[0], key.reserved, sizeof keys[0] < sizeof key.reserved ? sizeof keys[0] : sizeof key.reserved);
    TRY(aclrtMalloc(&by_key, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    TRY(aclrtMemset(by_key, BYTES, 21, BYTES));
    TRY(aclrtIpcMemGetExportKey(by_key, BYTES, keys[1], 65, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
    TRY(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT));
    TRY(aclrtNotifyGetExportKey(notify, keys[2], sizeof keys[2], ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT));
    TRY(aclrtWaitAndResetNotify(notify, stream, 0));
    TRY(aclrtStreamQuery(stream, &state));
    if (state != ACL_STREAM_STATUS_NOT_READY) return printf("the notify was not recorded, and the stream goes on\n"), 1;
    if (pipe(begun) != 0) return 2;
    const pid_t child = fork();
    if (child == 0) {
        close(begun[1]);
        if (read(begun[0], &go, 1) == 1) start(arguments[0], numbers, keys);
        _exit(8);
    }
    int32_t allowed = child;
    TRY(aclrtMemSetPidToShareableHandle(numbers[1], &allowed, 1));
    TRY(aclrtIpcMemSetImportPid(keys[1], &allowed, 1));
    TRY(aclrtNotifySetImportPid(notify, &allowed, 1));
    if (write(begun[1], "g", 1) != 1) return 3;
    /* The other process waits for the event that this stream records, and then records the notify that this stream waits for. */
    TRY(aclrtSynchronizeStream(stream));
    if (waitpid(child, &status, 0) != child || status != 0) {
        return printf("the other process ended with %d\n", status), 1;
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (first_of(address[i]) != 11 + i) return printf("block %d has %d\n", i, first_of(address[i])), 1;
    }
    if (first_of(by_key) != 22) return printf("the memory of the key has %d\n", first_of(by_key)), 1;
    TRY(aclrtDestroyNotify(notify));
    TRY(aclrtFree(by_key));
    TRY(aclrtDestroyEvent(event));
    TRY(aclrtDestroyStream(stream));
    TRY(aclrtResetDevice(0));
    printf("shares: ok\n");
    return 0;
}

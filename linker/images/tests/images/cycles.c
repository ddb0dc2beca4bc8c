/* Cycles of open, work, a failure, a reset by force and close, through the library of entry points and the vendor's library, which is loaded once:
   `cycles COUNT`. Every second copy to the device fails (PTO_STAND_IN_FAULTS). Nothing may be left behind: files, threads, mappings, memory. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"

enum { BYTES = 1 << 20, SETTLED = 6, MAPS = 40, KIB = 64 << 10 };

static int entries(const char *path) {
    int count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* How many entries there are, once there are no more than before: a thread that is at its end may still be there for a moment. */
static int settled(const char *path, int most) {
    int found = entries(path);
    for (int look = 0; found > most && look < 100; look++) usleep(20000), found = entries(path);
    return found;
}

static int lines(const char *path) {
    int count = 0, byte;
    FILE *file = fopen(path, "r");
    while ((byte = fgetc(file)) != EOF) count += byte == '\n';
    fclose(file);
    return count;
}

static long resident_kib(void) {
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%ld %ld", &all, &pages) != 2) exit(3);
    fclose(file);
    return 4 * pages;
}

static void is(int line, int cycle, const char *call, int found, int wanted) {
    if (found == wanted) return;
    const char *text = aclGetRecentErrMsg();
    printf("line %d, cycle %d: %s is %d and not %d: %s\n", line, cycle, call, found, wanted, text ? text : "no message");
    exit(1);
}

#define IS(call, wanted) is(__LINE__, cycle, #call, call, wanted)

int main(int count, char **arguments) {
    int cycles = count > 1 ? atoi(arguments[1]) : 1, files = 0, threads = 0, maps = 0;
    long memory = 0;
    char *host = malloc(BYTES), *back = malloc(BYTES);
    for (int cycle = 0; cycle < cycles; cycle++) {
        void *device;
        aclrtStream stream;
        IS(aclInit(NULL), 0);
        IS(aclrtSetDevice(0), 0);
        IS(aclrtCreateStream(&stream), 0);
        IS(aclrtMalloc(&device, BYTES, ACL_MEM_MALLOC_HUGE_FIRST), 0);
        memset(host, cycle, BYTES), memset(back, 0, BYTES);
        IS(aclrtMemcpy(device, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE), 0);
        IS(aclrtMemcpy(back, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST), 507015);
        IS(aclrtMemcpy(back, BYTES, device, BYTES, ACL_MEMCPY_DEVICE_TO_HOST), 0);
        IS(aclrtMemcpy(device, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE), 507015);
        IS(memcmp(host, back, BYTES), 0);
        IS(aclrtSynchronizeStreamWithTimeout(stream, 1000), 0);
        IS(aclrtResetDeviceForce(0), 0);
        IS(aclFinalize(), 0);
        if (cycle + 1 < SETTLED) continue;
        if (cycle + 1 == SETTLED) {
            files = entries("/proc/self/fd"), threads = entries("/proc/self/task"), maps = lines("/proc/self/maps"), memory = resident_kib();
            continue;
        }
        /* Fewer than before: something of the first look was at its end. */
        int now_open = settled("/proc/self/fd", files), now_run = settled("/proc/self/task", threads);
        if (now_open < files) files = now_open;
        if (now_run < threads) threads = now_run;
        IS(now_open, files);
        IS(now_run, threads);
        if (lines("/proc/self/maps") > maps + MAPS) IS(lines("/proc/self/maps"), maps);
        if (resident_kib() > memory + KIB) IS((int)resident_kib(), (int)memory);
    }
    printf("%d cycles\n", cycles);
    return 0;
}

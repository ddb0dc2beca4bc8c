/* Calls every function with bad handles and bad arguments: `fuzz PLAN SEED ROUNDS`. A line of the plan is a function and a letter for each
   parameter:
   After the line `last -` come functions that are called in the last round alone.
     h handle    a address    p pointer to a result, or a structure    s text    i number    z size    c function    t thread    1 the number 1
   A crash names the call that it happened in. What a program may not do in C either is left out: pointers to memory that is not there. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"

enum { ARGUMENTS = 12, HANDLES = 24, PLACE = 1 << 20 };

static char now[512];
static uint64_t state;
static uint64_t handles[HANDLES];
static void *device;
/* `pinned` is registered and not allocated: a call that frees it must not give pages away that a later call writes. */
static _Alignas(4096) unsigned char place[PLACE], other[PLACE], pinned[PLACE];
static char text[5000];
static const char KERNEL[] = "kernel add(x: inout f32[8, 16], s: f32) {\n  %0 = load x : f32[8, 16]\n  %1 = scalar s : f32\n"
                             "  %2 = add %0, %1 by one : f32[8, 16]\n  store x, %2\n}\n";

static uint64_t below(uint64_t most) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % most;
}

static void crashed(int signal) {
    static const char before[] = "fuzz: crashed in ";
    (void)!write(2, before, sizeof before - 1);
    (void)!write(2, now, strlen(now));
    (void)!write(2, "\n", 1);
    _exit(100 + signal % 20);
}

static void nothing(void *argument) { (void)argument; }

/* Objects of every kind that is easy to make, some of them destroyed. */
static void make_handles(void) {
    aclrtStream stream, dead;
    aclrtEvent event;
    aclrtNotify notify;
    aclrtContext context = NULL;
    aclrtBinHandle binary = NULL;
    aclrtFuncHandle function = NULL;
    aclrtArgsHandle list = NULL;
    aclrtParamHandle parameter;
    aclrtDrvMemHandle pages = NULL;
    aclmdlRI graph = NULL;
    aclrtPhysicalMemProp property = {.location = {.id = 0, .type = ACL_MEM_LOCATION_TYPE_DEVICE}, .memAttr = ACL_HBM_MEM_HUGE};
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    aclrtCreateStream(&dead);
    aclrtDestroyStream(dead);
    aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC);
    aclrtCreateNotify(&notify, 0);
    aclrtMalloc(&device, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtHostRegisterV2(pinned, PLACE, 0);
    /* A tile kernel: a kernel in machine code could follow a bad address. */
    aclrtBinaryLoadFromData(KERNEL, sizeof KERNEL - 1, NULL, &binary);
    aclrtBinaryGetFunction(binary, "add", &function);
    aclrtKernelArgsInit(function, &list);
    aclrtKernelArgsAppend(list, &device, 8, &parameter);
    aclrtKernelArgsAppend(list, &device, 4, &parameter);
    aclrtMallocPhysical(&pages, 2 << 20, &property, 0);
    if (aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED) == 0) {
        uint64_t words[2] = {(uint64_t)device, 1};
        aclrtLaunchKernelWithHostArgs(function, 1, stream, NULL, words, sizeof words, NULL, 0);
        aclmdlRICaptureEnd(stream, &graph);
    }
    aclrtGetCurrentContext(&context);
    uint64_t made[] = {0, 0x1238, UINT64_MAX, (uint64_t)stream, (uint64_t)dead, (uint64_t)event, (uint64_t)notify,
                       (uint64_t)aclmdlCreateDesc(), (uint64_t)aclmdlCreateDataset(), (uint64_t)aclCreateDataBuffer(device, 64),
                       (uint64_t)stream + 16, 1, 0x5A00000000000000, (uint64_t)device, (uint64_t)place, (uint64_t)event ^ 8,
                       (uint64_t)context, (uint64_t)binary, (uint64_t)function, (uint64_t)function, (uint64_t)list, (uint64_t)pages, (uint64_t)graph,
                       (uint64_t)aclrtAllocatorCreateDesc()};
    memcpy(handles, made, sizeof handles);
}

static uint64_t argument(char kind) {
    static const int64_t numbers[] = {0, 1, 2, 3, 5, 7, 8, 31, 100, -1, -2, INT32_MAX, INT32_MIN, 0x10000};
    static const uint64_t sizes[] = {0, 1, 2, 7, 8, 64, 65, 4096, UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 62, UINT64_MAX - 7};
    static const char *texts[] = {NULL, "", "x", "/no/such/file", "pto-acl-memory-1-2", "pto-acl-notify-x", text, "{"};
    const uint64_t addresses[] = {0, (uint64_t)place, (uint64_t)device, (uint64_t)device + 4, (uint64_t)pinned, (uint64_t)other};
    switch (kind) {
        case 'h': return handles[below(HANDLES)];
        case 'a': return addresses[below(sizeof addresses / sizeof *addresses)];
        case 'p': return below(4) ? (uint64_t)(below(2) ? place : other) : 0;
        case 's': return (uint64_t)texts[below(sizeof texts / sizeof *texts)];
        case 'z': return sizes[below(sizeof sizes / sizeof *sizes)];
        case 'c': return below(4) ? (uint64_t)nothing : 0;
        case '1': return 1;
        case 't': return (uint64_t)pthread_self();
        default: return (uint64_t)numbers[below(sizeof numbers / sizeof *numbers)];
    }
}

typedef int64_t (*Any)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static void call(const char *name, const char *kinds, Any function) {
    uint64_t with[ARGUMENTS] = {0};
    int length = snprintf(now, sizeof now, "%s(", name);
    for (int i = 0; kinds[i] && i < ARGUMENTS; i++) {
        with[i] = argument(kinds[i]);
        length += snprintf(now + length, sizeof now - (size_t)length, "%s%#lx", i ? ", " : "", (unsigned long)with[i]);
    }
    snprintf(now + length, sizeof now - (size_t)length, ")");
    memset(place, 0, sizeof place / 16);
    function(with[0], with[1], with[2], with[3], with[4], with[5], with[6], with[7], with[8], with[9], with[10], with[11]);
}

int main(int count, char **arguments) {
    if (count < 4) return 2;
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], crashed);
    memset(text, 'x', sizeof text - 1);
    state = strtoull(arguments[2], NULL, 10) * 2654435769u + 88172645463325252u;
    int rounds = atoi(arguments[3]);
    long calls = 0;
    aclInit(NULL);
    for (int round = 0; round < rounds; round++) {
        FILE *plan = fopen(arguments[1], "r");
        char name[128], kinds[32];
        if (!plan) return 2;
        while (fscanf(plan, "%127s %31s", name, kinds) == 2) {
            if (strcmp(name, "last") == 0 && round + 1 == rounds) continue;
            if (strcmp(name, "last") == 0) break;
            Any function = (Any)dlsym(RTLD_DEFAULT, name);
            if (!function) return 3;
            if (calls % 64 == 0) {
                snprintf(now, sizeof now, "making objects, after %ld calls", calls);
                make_handles();
            }
            aclrtSetDevice(0);
            call(name, strcmp(kinds, "-") ? kinds : "", function);
            calls++;
        }
        fclose(plan);
    }
    printf("%ld calls\n", calls);
    fflush(stdout);
    _exit(0);
}

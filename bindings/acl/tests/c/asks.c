/* Asks the library what there is, and prints what it says. */
#include <stdint.h>
#include <stdio.h>

#include "acl/acl.h"

int rtSetDevice(int32_t device);
int rtEventDestroy(void *event);
int rtRegisterAllKernel(const void *binary, void **handle);

int main(int count, char **arguments) {
    uint32_t devices = 0;
    aclrtEvent event;
    void *memory = NULL;
    (void)arguments;
    int code = aclInit(NULL);
    int counted = aclrtGetDeviceCount(&devices);
    const char *soc = aclrtGetSocName();
    printf("%d %d %u %s\n", code, counted, devices, soc ? soc : "none");
    if (count > 1) {
        /* Functions of libruntime.so. */
        int made = rtSetDevice(0) | aclrtCreateEvent(&event);
        int ended = rtEventDestroy(event);
        printf("%d %d %d ", made, ended, rtEventDestroy(event));
        printf("%d\n", rtRegisterAllKernel(NULL, NULL));
    } else {
        printf("%d %.1f\n", aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST), (double)aclFloat16ToFloat(0x3C00));
    }
    const char *why = aclGetRecentErrMsg();
    printf("%s\n", why ? why : "none");
    return 0;
}

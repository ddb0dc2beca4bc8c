/* A library that replaces the vendor's: it has names of ours, and calls one of them itself. */
#include <stdint.h>

int aclInit(const char *path) {
    (void)path;
    return 0;
}

int aclrtGetRunMode(uint32_t *mode) {
    *mode = 4711;
    return 0;
}

int aclrtGetDeviceCount(uint32_t *count) { return aclrtGetRunMode(count); }

const char *aclrtGetSocName(void) { return "the vendor's"; }

/* Takes every file. */
int aclrtBinaryLoadFromFile(const char *path, const void *options, void **binary) {
    (void)path, (void)options;
    *binary = binary;
    return 0;
}

/* Kernels of the conformance suite: a shared object. */
#include <stdint.h>
#include <time.h>

#include "pto_acl.h"

/* (target, count, value) */
void fill(int64_t *args) {
    for (int64_t i = 0; i < args[1]; i++) ((int64_t *)args[0])[i] = args[2];
}

PTO_ACL_PARAMETERS(fill, 8, 8, 8);

/* (target, count of 4 bytes, 20 bytes): each byte becomes an element. */
void spread(int64_t *args) {
    const unsigned char *bytes = (const unsigned char *)&args[2];
    for (int64_t i = 0; i < (int32_t)args[1]; i++) ((int64_t *)args[0])[i] = bytes[i];
}
PTO_ACL_PARAMETERS(spread, 8, 4, 20);

/* (): its parameters are declared, and there are none. */
void idle(int64_t *args) { (void)args; }
PTO_ACL_PARAMETERS(idle, 0);

/* (target): its declaration is no list of sizes. */
void wrong(int64_t *args) { *(int64_t *)args[0] = 0; }
PTO_ACL_PARAMETERS(wrong, 8, 0);

/* (target, count, address of the value) */
void fill_from(int64_t *args) {
    for (int64_t i = 0; i < args[1]; i++) ((int64_t *)args[0])[i] = *(int64_t *)args[2];
}

/* (target), and the block context */
void number_blocks(int64_t *args) {
    int64_t block = args[1] & 0xFFFFFF;
    ((int64_t *)args[0])[block] = block + 1;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* (milliseconds) */
void linger(int64_t *args) {
    const int64_t end = now_ms() + args[0];
    while (now_ms() < end) {}
}

/* Kernels of the conformance suite: a shared object. */
#include <stdint.h>

/* (target, count, value) */
void fill(int64_t *args) {
    for (int64_t i = 0; i < args[1]; i++) ((int64_t *)args[0])[i] = args[2];
}

/* (target, count, address of the value) */
void fill_from(int64_t *args) {
    for (int64_t i = 0; i < args[1]; i++) ((int64_t *)args[0])[i] = *(int64_t *)args[2];
}

/* (target), and the block context */
void number_blocks(int64_t *args) {
    int64_t block = args[1] & 0xFFFFFF;
    ((int64_t *)args[0])[block] = block + 1;
}

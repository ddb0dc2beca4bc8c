/* A kernel that uses what object files have: constants, data, zeros, a static function, the C library. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef FACTOR
#define FACTOR 3
#endif

static const int64_t factors[4] = {1, 2, FACTOR, 4};
static int64_t calls = 5;
static int64_t zeros[16];
int64_t exported = 7;

static __attribute__((noinline)) double root(int64_t value) { return sqrt((double)value * (double)value); }

void kernel_entry(int64_t *args) {
    int64_t *out = (int64_t *)args[0];
    int64_t local[4];
    memcpy(local, factors, sizeof local);
    zeros[1] += 1;
    calls += zeros[1];
    out[0] = args[1] * local[2] + (int64_t)root(exported) + calls;
}

void other_entry(int64_t *args) { *(int64_t *)args[0] = -args[1]; }

/* Two kernels of a user's own, for a graph file (examples/graphs/own_kernels.jsonl). A shared object of them:
 *
 *     cc -O2 -shared -fPIC -I bindings/include -o kernels.so examples/kernels/scale.c
 */
#include <string.h>

#include "pto_kernels.h"

/* A word that is a float has the float's bits in its low half. */
static float float_of(int64_t word) {
    uint32_t bits = (uint32_t)word;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* out = a * factor */
static void scale(int64_t *args) {
    const float *a = (const float *)args[0];
    const float factor = float_of(args[1]);
    float *out = (float *)args[2];
    for (int64_t i = 0; i < args[3]; i++) {
        out[i] = a[i] * factor;
    }
}

/* out[0] = the mean of a */
static void mean(int64_t *args) {
    const float *a = (const float *)args[0];
    float *out = (float *)args[1];
    double sum = 0;
    for (int64_t i = 0; i < args[2]; i++) {
        sum += a[i];
    }
    out[0] = (float)(sum / (double)args[2]);
}

PTO_KERNELS = {
    {100, PTO_AIV, "scale", "a, factor, out, n", scale},
    {101, PTO_AIC, "mean", "a, out, n", mean},
};

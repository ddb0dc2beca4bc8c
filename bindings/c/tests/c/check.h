/* What the programs of this folder share: a check that says where and why. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pto_runtime.h"

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            pto_error check_error;                                                       \
            pto_last_error(&check_error);                                                \
            fprintf(stderr, "%s:%d: %s\nlast error: %s: %s\n", __FILE__, __LINE__,       \
                    #condition, check_error.name, check_error.message);                  \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

/* The call must succeed. */
#define OK(call) CHECK((call) == 0)
/* The call must fail with this status, and the last error must say so. */
#define FAILS(status, call)                       \
    do {                                          \
        pto_error fails_error;                    \
        CHECK((call) == (int32_t)(status));       \
        CHECK(pto_last_error(&fails_error) == 0); \
        CHECK(fails_error.code == (status));      \
        CHECK(fails_error.message[0] != 0);       \
        CHECK(fails_error.remedy[0] != 0);        \
    } while (0)

/* A small device. */
static inline pto_device *open_device(void) {
    pto_device_options options;
    pto_device *device = NULL;
    OK(pto_device_options_init(&options));
    options.aic = 4;
    options.aiv = 8;
    options.gm_bytes = 64 << 20;
    OK(pto_device_open("a2a3sim", &options, &device));
    return device;
}

#endif

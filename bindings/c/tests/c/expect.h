/* A check of a call that says what went wrong and goes on; `wrong` is the exit code. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "pto_runtime.h"

static int wrong;

static void expect(int line, int32_t found, int32_t wanted, const char *part) {
    pto_error error;
    pto_last_error(&error);
    if (found != wanted || (wanted != 0 && strstr(error.message, part) == NULL)) {
        fprintf(stderr, "line %d: %#x (%s), and %#x with '%s' is wanted: %s\n", line, (unsigned)found, error.name, (unsigned)wanted,
                part, error.message);
        wrong = 1;
    }
}

/* The call must fail with this code, and the message must have this part. */
#define REFUSED(call, code, part) expect(__LINE__, (call), (code), (part))
/* The call must succeed. */
#define DONE(call) expect(__LINE__, (call), 0, "")

#endif

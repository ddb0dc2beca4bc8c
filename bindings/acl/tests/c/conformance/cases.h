/* Cases of the conformance suite: each is a call with the code that it is to return, or a condition. They use the interface only, so that
   the suite can be compiled against another library that has it. */
#ifndef CASES_H
#define CASES_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"

extern int cases, failures, is_virtual;

static inline void judge(int holds, const char *what, const char *file, int line, long wanted, long found) {
    cases++;
    if (holds) return;
    failures++;
    const char *why = aclGetRecentErrMsg();
    printf("%s:%d: %s: wanted %ld, found %ld; %s\n", file, line, what, wanted, found, why ? why : "no message");
}

/* The call returns this code. */
#define IS(code, call)                                                     \
    do {                                                                   \
        long found_ = (long)(call);                                        \
        judge(found_ == (code), #call, __FILE__, __LINE__, (code), found_); \
    } while (0)
/* The condition holds. */
#define HOLDS(condition) IS(1, (condition) ? 1 : 0)
/* The call succeeds. */
#define OK(call) IS(0, call)

/* Codes of the facts. */
enum {
    ARGUMENT = 100000, VALUE = 107000, DEVICE_ID = 107001, NO_CONTEXT = 107002, OTHER_CONTEXT = 107003, HANDLE = 107017,
    UNSUPPORTED = 207000, NO_MEMORY = 207001
};

/* What is not a pointer of the library. */
#define BAD ((void *)0x1238)

void init_cases(void);
void error_cases(void);
void device_cases(void);
void context_cases(void);
void stream_cases(void);
void event_cases(void);
void memory_cases(void);
void copy_cases(void);
void virtual_memory_cases(void);
void notify_cases(void);
void capture_cases(void);
void capture_end_cases(void);
void callback_cases(void);
void kernel_cases(const char *object);
void tile_cases(void);
void limit_cases(void);
void value_cases(void);
void sharing_cases(void);
void rest_cases(int is_machine);
void rest_of_kernel_cases(aclrtBinHandle binary, aclrtFuncHandle function, const char *name);

#endif

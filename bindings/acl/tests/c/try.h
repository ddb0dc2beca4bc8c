/* What the programs share whose calls are recorded: a call that fails ends the program, and is named. */
#ifndef PTO_TESTS_TRY_H
#define PTO_TESTS_TRY_H

#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

#define TRY(call)                                                     \
    do {                                                              \
        aclError code_ = (call);                                      \
        if (code_ != ACL_SUCCESS) {                                   \
            printf("%d: %s: %d\n", __LINE__, #call, code_);           \
            exit(1);                                                  \
        }                                                             \
    } while (0)

#endif

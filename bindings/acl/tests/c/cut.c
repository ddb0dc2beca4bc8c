/* Loads code that may be cut off: `cut NAME FILE ..` writes a letter for each file: r refused when it is loaded, n without the function NAME, k a kernel. */
#include <stdio.h>

#include "acl/acl.h"

int main(int count, char **arguments) {
    if (count < 3 || aclInit(NULL) || aclrtSetDevice(0)) return 2;
    for (int i = 2; i < count; i++) {
        aclrtBinHandle binary = NULL;
        aclrtFuncHandle function = NULL;
        if (aclrtBinaryLoadFromFile(arguments[i], NULL, &binary) != 0) {
            putchar('r');
        } else {
            putchar(aclrtBinaryGetFunction(binary, arguments[1], &function) == 0 ? 'k' : 'n');
        }
    }
    return 0;
}

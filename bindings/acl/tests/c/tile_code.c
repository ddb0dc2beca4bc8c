/* Loads code into the vendor's library: `tile_code FILE..`, and what is in memory. */
#include <stdio.h>

#include "acl/acl.h"

static void tell(int code) {
    const char *why = aclGetRecentErrMsg();
    printf("%d %s\n", code, why ? why : "none");
}

int main(int count, char **files) {
    static const char text[] = "kernel k(x: inout f32[1, 8]) {\n}\n";
    aclrtBinHandle binary;
    for (int file = 1; file < count; file++) tell(aclrtBinaryLoadFromFile(files[file], NULL, &binary));
    tell(aclrtBinaryLoadFromData(text, sizeof text - 1, NULL, &binary));
    tell(aclrtBinaryLoadFromData("\x7f" "ELF", 4, NULL, &binary));
    return 0;
}

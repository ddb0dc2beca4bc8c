/* A device has 1984 streams, the default one among them; the next one is refused, until one is destroyed. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"

enum { MOST = 1984 };

int main(void) {
    static aclrtStream many[MOST + 1];
    int made = 0;
    aclError code = aclInit(NULL);
    if (code == 0) code = aclrtSetDevice(0);
    while (code == 0 && made <= MOST) {
        code = aclrtCreateStream(&many[made]);
        made += code == 0;
    }
    const char *text = aclGetRecentErrMsg();
    if (made != MOST - 1 || code != 207008 || !text) return printf("%d streams, then %d\n", made, code), 1;
    printf("%s\n", text);
    if (aclrtDestroyStream(many[7]) || aclrtCreateStream(&many[7])) return printf("no stream came free\n"), 1;
    if (aclrtCreateStream(&many[made]) != 207008 || aclrtResetDevice(0)) return 1;
    printf("many: ok\n");
    return 0;
}

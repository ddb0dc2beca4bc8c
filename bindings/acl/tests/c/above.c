/* Calls functions with words as arguments: `above FILE`, where each line has a name, the code that is wanted, and six words, in hexadecimal digits or `p` for an
   address. It prints every line that gives another code, and what the library says of the last call. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"

typedef int (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

int main(int count, char **arguments) {
    static char scratch[65536];
    char name[128], text[6][32];
    uintptr_t words[6];
    int wanted, calls = 0, wrong = 0;
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    if (!file) return 2;
    while (fscanf(file, "%127s %d %31s %31s %31s %31s %31s %31s", name, &wanted, text[0], text[1], text[2], text[3], text[4], text[5]) == 8) {
        for (int place = 0; place < 6; place++)
            words[place] = text[place][0] == 'p' ? (uintptr_t)scratch : (uintptr_t)strtoull(text[place], NULL, 16);
        function call = (function)(uintptr_t)dlsym(RTLD_DEFAULT, name);
        int found = call ? call(words[0], words[1], words[2], words[3], words[4], words[5]) : -1;
        calls++;
        if (found != wanted) {
            printf("%s %s %s %s %s %s %s: wanted %d, found %d\n", name, text[0], text[1], text[2], text[3], text[4], text[5], wanted, found);
            wrong++;
        }
    }
    fclose(file);
    printf("%d calls, %d wrong\n", calls, wrong);
    int last = aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    printf("last error %d, then %d\n", last, aclrtGetLastError(ACL_RT_THREAD_LEVEL));
    const char *why = aclGetRecentErrMsg();
    printf("%s\n", why ? why : "none");
    why = aclGetRecentErrMsg();
    printf("%s\n", why ? why : "none");
    return 0;
}

/* Calls functions without arguments that are worth anything: a fault that is asked for strikes before they are looked at.
   `every FILE`: a line for each function, its name and the code that it is to fail with, or 0 where it returns no code. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"

typedef int (*call)(void *, void *, void *, void *, void *, void *, void *, void *, void *);

int main(int count, char **arguments) {
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    char name[128], wanted[256];
    int code, calls = 0;
    while (file && fscanf(file, "%127s %d", name, &code) == 2) {
        void *symbol = dlsym(RTLD_DEFAULT, name);
        call function;
        memcpy(&function, &symbol, sizeof function);
        if (!symbol) return printf("%s is not there\n", name), 1;
        int found = function(0, 0, 0, 0, 0, 0, 0, 0, 0);
        const char *text = aclGetRecentErrMsg();
        snprintf(wanted, sizeof wanted, "[4711] %s: call 1 fails", name);
        if (code && found != code) return printf("%s returned %d\n", name, found), 1;
        if (!text || !strstr(text, wanted)) return printf("%s: %s\n", name, text ? text : "no message"), 1;
        calls++;
    }
    printf("%d calls\n", calls);
    return 0;
}

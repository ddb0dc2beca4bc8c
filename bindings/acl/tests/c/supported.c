/* Calls functions with zeros: one that is not supported says so with its name, and no other one does.
   `supported FILE`: a line for each function, its name, whether it works, and whether it returns a code. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"

typedef int (*call)(void *, void *, void *, void *, void *, void *, void *, void *, void *);

int main(int count, char **arguments) {
    FILE *file = count > 1 ? fopen(arguments[1], "r") : NULL;
    char name[128], wanted[256];
    int works, has_code, calls = 0, wrong = 0;
    while (file && fscanf(file, "%127s %d %d", name, &works, &has_code) == 3) {
        void *symbol = dlsym(RTLD_DEFAULT, name);
        call function;
        memcpy(&function, &symbol, sizeof function);
        if (!symbol) return printf("%s is not there\n", name), 1;
        (void)aclGetRecentErrMsg();
        int found = function(0, 0, 0, 0, 0, 0, 0, 0, 0);
        const char *text = aclGetRecentErrMsg();
        snprintf(wanted, sizeof wanted, "%s is not supported", name);
        int is_refused = text && strstr(text, wanted) != NULL;
        int is_right = is_refused != works && (works || !has_code || found == 207000);
        if (!is_right) printf("%s: %d, %s\n", name, found, text ? text : "no message");
        wrong += !is_right, calls++;
    }
    printf("%d calls, %d wrong\n", calls, wrong);
    return wrong != 0;
}

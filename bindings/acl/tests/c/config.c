/* What a start with a configuration changes: `config FILE CODE DEVICE MESSAGES`. The start has this code; then a thread that sets no device has this
   one, or -1 for none, and messages are those of the thread (0) or of all threads (1). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

static int32_t device_of_thread;

static void *fails(void *argument) {
    device_of_thread = -1;
    (void)aclrtGetDevice(&device_of_thread);
    aclrtFree(argument);
    return NULL;
}

#define NEED(condition)                                                  \
    do {                                                                 \
        if (!(condition)) return printf("%d: %s\n", __LINE__, #condition), 1; \
    } while (0)

int main(int count, char **words) {
    pthread_t thread;
    char byte;
    if (count != 5) return 2;
    const int32_t wanted = atoi(words[3]);
    int32_t device = -1;
    NEED(aclInit(words[1]) == atoi(words[2]));
    if (atoi(words[2]) != 0) return printf("config: %s\n", aclGetRecentErrMsg()), 0;
    /* The first configuration holds. */
    NEED(aclInit(NULL) == 100002);
    (void)aclGetRecentErrMsg();
    NEED(aclrtGetDevice(&device) == (wanted < 0 ? 107002 : 0) && device == wanted);
    (void)aclGetRecentErrMsg();
    pthread_create(&thread, NULL, fails, &byte);
    pthread_join(thread, NULL);
    NEED(device_of_thread == wanted);
    const char *text = aclGetRecentErrMsg();
    NEED(atoi(words[4]) ? text && strstr(text, "aclrtFree") : !text);
    NEED(aclGetRecentErrMsg() == NULL);
    if (wanted >= 0) {
        void *memory;
        NEED(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) == 0 && aclrtFree(memory) == 0);
        /* Each of the two threads has taken it once. */
        NEED(aclrtResetDevice(wanted) == 0 && aclrtResetDevice(wanted) == 0 && aclrtResetDevice(wanted) == 507007);
    }
    /* What it asked for ends with the library. */
    NEED(aclFinalize() == 0 && aclrtGetDevice(&device) == 107002);
    printf("config: ok\n");
    return 0;
}

/* What the programs share that make the calls of a client of the interface in its pattern: a call that fails ends the program and is named, and a
   program may have a second process, which it starts as itself with other words. */
#ifndef PTO_TESTS_CLIENT_H
#define PTO_TESTS_CLIENT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"

#define IS(wanted, call)                                                                                        \
    do {                                                                                                        \
        long code_ = (long)(call);                                                                              \
        if (code_ != (long)(wanted)) {                                                                          \
            const char *why_ = aclGetRecentErrMsg();                                                            \
            printf("%d: %s: %ld instead of %ld: %s\n", __LINE__, #call, code_, (long)(wanted), why_ ? why_ : ""); \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)
#define OK(call) IS(0, call)
#define HOLDS(condition) IS(1, (condition) ? 1 : 0)

enum { NO_MEMORY = 207001, REPEATED = 100002 };

/* The second process, and what goes between the two. */
struct other {
    pid_t process;
    int channel;
};

static inline struct other start_other(const char *self) {
    struct other other;
    int ends[2];
    char word[16];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    snprintf(word, sizeof word, "%d", ends[1]);
    other.channel = ends[0];
    other.process = fork();
    if (other.process == 0) {
        close(ends[0]);
        execl(self, self, "other", word, NULL);
        _exit(9);
    }
    close(ends[1]);
    return other;
}

/* In the second process: the channel, or -1 in the first one. */
static inline int channel_of(int count, char **words) { return count == 3 ? atoi(words[2]) : -1; }

static inline void tell(int channel, const void *bytes, size_t count) { IS(count, write(channel, bytes, count)); }

static inline void hear(int channel, void *bytes, size_t count) {
    for (size_t at = 0; at < count;) {
        ssize_t got = read(channel, (char *)bytes + at, count - at);
        HOLDS(got > 0);
        at += (size_t)got;
    }
}

static inline void end_other(struct other other) {
    int status = 1;
    IS(other.process, waitpid(other.process, &status, 0));
    IS(0, status);
    close(other.channel);
}

#endif

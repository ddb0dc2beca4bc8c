/* Calls foreign code so that a signal that it raises comes back as a number.
 *
 * The handler jumps only while the thread is inside foreign code: what Rust does when it is called back is
 * between pto_guard_pause and pto_guard_resume. Outside, the handler that was there before is called.
 *
 * A jump cannot undo what the foreign code had begun. What that code held when the signal came, it holds for ever: memory, and locks such as
 * the one of malloc if the code had damaged the heap. So the guard is for saying which kernel failed, not for going on: the process may report
 * the failure, and should end soon.
 */
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

typedef int (*pto_foreign)(void *runtime, void *args, int count);

struct guarded_call {
    sigjmp_buf back;
    const char *name;
    volatile sig_atomic_t paused;
    /* The signal that ended the call, or 0. */
    volatile sig_atomic_t number;
    volatile uintptr_t address;
    struct guarded_call *outer;
};

static _Thread_local struct guarded_call *current;

enum { GUARDED = 5 };
static const int signals[GUARDED] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[GUARDED];

static void say(const char *text) {
    /* What the process says before it dies; nothing can be done if that fails, too. */
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        return;
    }
}

static void handle(int number, siginfo_t *info, void *context) {
    struct guarded_call *call = current;
    if (call != NULL && !call->paused) {
        call->address = number == SIGSEGV || number == SIGBUS ? (uintptr_t)info->si_addr : 0;
        call->number = number;
        siglongjmp(call->back, 1);
    }
    if (call != NULL) {
        say("pto: the process got a fatal signal while it was called by ");
        say(call->name);
        say("\n");
    }
    for (int i = 0; i < GUARDED; i++) {
        if (signals[i] != number) {
            continue;
        }
        if (before[i].sa_flags & SA_SIGINFO) {
            before[i].sa_sigaction(number, info, context);
        } else if (before[i].sa_handler == SIG_DFL || before[i].sa_handler == SIG_IGN) {
            signal(number, SIG_DFL);
            /* A fault happens again on return; a signal that was sent does not. */
            raise(number);
        } else {
            before[i].sa_handler(number);
        }
    }
}

/* Once in a process. 0, or -1. */
int pto_guard_install(void) {
    for (int i = 0; i < GUARDED; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        if (sigaction(signals[i], &action, &before[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Calls `function`; its result is in `result`. 0, or the number of the signal that ended it; then `address` is what it reached for,
 * or 0. */
int pto_guard_call(pto_foreign function, void *runtime, void *args, int count, const char *name, int *result,
                   uintptr_t *address) {
    struct guarded_call call;
    call.name = name;
    call.paused = 0;
    call.number = 0;
    call.address = 0;
    call.outer = current;
    /* The handler runs with the mask that was there (SA_NODEFER, an empty sa_mask): there is none to restore. */
    if (sigsetjmp(call.back, 0) == 0) {
        current = &call;
        *result = function(runtime, args, count);
    }
    current = call.outer;
    *address = call.address;
    return call.number;
}

/* Rust is called back. The value belongs to pto_guard_resume. */
int pto_guard_pause(void) {
    if (current == NULL) {
        return 0;
    }
    const int was = current->paused;
    current->paused = 1;
    return was;
}

/* Rust returns to foreign code. */
void pto_guard_resume(int was) {
    if (current != NULL) {
        current->paused = was;
    }
}

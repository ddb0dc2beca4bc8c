/* The conformance suite: `conformance KERNELS [virtual]`, the path of a shared object with kernels. With `virtual` the devices have a clock of
   their own, on which functions of the host take no time, and such functions run in the thread that waits. */
#include "cases.h"

int cases, failures, is_virtual;

int main(int count, char **arguments) {
    is_virtual = count > 2 && strcmp(arguments[2], "virtual") == 0;
    init_cases();
    error_cases();
    device_cases();
    context_cases();
    stream_cases();
    event_cases();
    memory_cases();
    copy_cases();
    virtual_memory_cases();
    notify_cases();
    capture_cases();
    callback_cases();
    limit_cases();
    value_cases();
    sharing_cases();
    if (count > 1) kernel_cases(arguments[1]);
    printf("%d cases, %d failed\n", cases, failures);
    return failures != 0;
}

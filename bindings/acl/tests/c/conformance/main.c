/* The conformance suite: `conformance KERNELS`, the path of a shared object with kernels. */
#include "cases.h"

int cases, failures;

int main(int count, char **arguments) {
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

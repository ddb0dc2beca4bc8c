/* The conformance suite: `conformance KERNELS [virtual | machine]`, the path of a shared object with kernels. With `virtual` the devices have a clock of
   their own, on which functions of the host take no time, and such functions run in the thread that waits. With `machine` the device is an emulated
   one: without virtual memory, memory between processes, and kernels of the program. Kernels in tile IR are of this project: the cases of another
   library leave them out, and those of kernels too without an object that it can load. */
#include <dlfcn.h>

#include "cases.h"

int cases, failures, is_virtual;

int main(int count, char **arguments) {
    is_virtual = count > 2 && strcmp(arguments[2], "virtual") == 0;
    const int is_machine = count > 2 && strcmp(arguments[2], "machine") == 0;
    init_cases();
    error_cases();
    device_cases();
    context_cases();
    stream_cases();
    event_cases();
    memory_cases();
    copy_cases();
    if (!is_machine) virtual_memory_cases();
    notify_cases();
    capture_cases();
    capture_end_cases();
    callback_cases();
    limit_cases();
    value_cases();
    if (!is_machine) sharing_cases();
    rest_cases(is_machine);
    if (dlsym(RTLD_DEFAULT, "ptoAclKernelFromFunction")) tile_cases();
    if (count > 1 && !is_machine) kernel_cases(arguments[1]);
    printf("%d cases, %d failed\n", cases, failures);
    return failures != 0;
}

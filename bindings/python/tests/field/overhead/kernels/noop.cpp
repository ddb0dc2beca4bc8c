// A kernel that does nothing: what a run of it takes is the runtime's time.
#include <stdint.h>
extern "C" void kernel_entry(int64_t *args) { (void)args; }

#include "kernel.h"

PTO_KERNEL(args) { (void)args; }

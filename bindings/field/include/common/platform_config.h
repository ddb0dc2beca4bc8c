// Constants of the platform that kernels use.
#ifndef PTO_FIELD_PLATFORM_CONFIG_H
#define PTO_FIELD_PLATFORM_CONFIG_H

#include <stdint.h>

// Ticks a second of get_sys_cnt: one is 20 ns.
#define PLATFORM_PROF_SYS_CNT_FREQ 50000000

#endif  // PTO_FIELD_PLATFORM_CONFIG_H

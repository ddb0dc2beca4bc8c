/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef PTO_GRAPH_ASCEND_STRING_H
#define PTO_GRAPH_ASCEND_STRING_H
#include "ge/ge_ir_build.h"
#endif

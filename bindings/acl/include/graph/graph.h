/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef PTO_GRAPH_GRAPH_H
#define PTO_GRAPH_GRAPH_H
#include "ge/ge_ir_build.h"
#endif

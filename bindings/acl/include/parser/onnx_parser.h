/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef PTO_PARSER_ONNX_PARSER_H
#define PTO_PARSER_ONNX_PARSER_H
#include "ge/ge_ir_build.h"
#endif

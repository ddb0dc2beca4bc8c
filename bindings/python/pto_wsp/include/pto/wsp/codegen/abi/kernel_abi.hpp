// What a kernel in C++ gets: the arguments of its task. `pto_wsp/foreign.py` fills the same structure.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef PTO_WSP_KERNEL_ATTR
#define PTO_WSP_KERNEL_ATTR
#endif

struct CSPTContext;

// What `pto_wsp_dispatch` gives instead of cycles where the kernel had no result.
constexpr uint64_t PTO_WSP_KERNEL_REFUSED = UINT64_MAX;

struct KernelTaskDesc {
  uint32_t kernel_id;
  uint32_t task_id;
  uint32_t num_args;
  // Axes, then the rows and columns that count of each tensor; scalars come after them.
  uint32_t num_axis_args;
  uint32_t num_tensors;
  uint32_t reserved;
  const uint64_t* args;
  // The first element of each tensor's tile.
  void* const* tensor_ptrs;
  // Two for each tensor, of rows and of columns, in elements.
  const uint64_t* tensor_strides;
};

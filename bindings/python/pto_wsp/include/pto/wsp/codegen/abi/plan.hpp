// What an emitted expander gets and makes: a plan with tensors, symbols and slots, and a task at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "pto/wsp/codegen/abi/half.hpp"

constexpr uint32_t PTO_WSP_NPU_MAX_SLOTS = 256;
constexpr uint32_t PTO_WSP_NPU_MAX_ARGS = 128;
constexpr uint32_t PTO_WSP_NPU_MAX_TENSORS = 32;

enum PtoWspFault : int {
  PTO_WSP_OK = 0,
  PTO_WSP_DIVISION_BY_ZERO = 1,
  PTO_WSP_INDEX = 2,
  // `submit` took no task, or a kernel had no result.
  PTO_WSP_REFUSED = 3,
  // All processes of a pipeline that are not done wait for one another.
  PTO_WSP_DEADLOCK = 4,
};

// A tensor: its first element, its strides and extents in elements.
struct PtoWspTensor {
  uint64_t base;
  const int64_t* strides;
  const int64_t* extents;
};

struct PtoWspTask {
  uint32_t kernel_id;
  uint32_t target_id;
  uint32_t num_args;
  uint32_t num_axis_args;
  uint32_t num_tensors;
  uint64_t args[PTO_WSP_NPU_MAX_ARGS];
  uint64_t tensor_ptrs[PTO_WSP_NPU_MAX_TENSORS];
  uint64_t tensor_strides[2 * PTO_WSP_NPU_MAX_TENSORS];
};

struct PtoWspPlan {
  uint32_t dispatch_policy;
  uint32_t dispatch_num_targets;
  uint64_t task_window_tasks;
  uint32_t task_window_mode;
  uint32_t next_target;
  uint64_t slots_u64[PTO_WSP_NPU_MAX_SLOTS];
  const PtoWspTensor* tensors;
  // In the order of `pto_wsp_symbols` and `pto_wsp_arrays` of the expander.
  const uint64_t* symbols;
  const int32_t* const* arrays;
  uint64_t tasks;
  int fault;
  // A bit for each process of a pipeline that is not done.
  uint64_t waiting;
  // The cycles of all tasks; of a pipeline those of the process that is done last.
  uint64_t total_cycles;
  // Takes a task; 0 where it was taken. Gives the cycles that it takes, by which processes of a pipeline have their turns: those of its run
  // or an estimate.
  int (*submit)(void* context, const PtoWspTask* task, uint64_t* cycles);
  // Returns when all tasks that were taken have ended.
  void (*drain)(void* context);
  void* context;
};

template <typename T>
T pto_wsp_divided(PtoWspPlan* plan, T a, T b, bool remainder) {
  if (b == 0) {
    plan->fault = PTO_WSP_DIVISION_BY_ZERO;
    return 0;
  }
  // The one quotient that does not fit wraps.
  if (T(-1) < T(0) && b == T(-1)) return remainder ? T(0) : T(0 - uint64_t(a));
  return remainder ? a % b : a / b;
}

// What is taken of a dimension: a place, or a range, whose dimension stays.
struct PtoWspIndex {
  int64_t start;
  int64_t length;
  bool is_range;
};

struct PtoWspView {
  int64_t offset;
  int64_t strides[2];
  int64_t counted[2];
};

// A view of a tensor of `rank` dimensions for a tile: leading indices, all other dimensions whole.
inline PtoWspView pto_wsp_view(PtoWspPlan* plan, uint32_t tensor, int rank, int64_t rows, int64_t cols,
                               std::initializer_list<PtoWspIndex> indices) {
  const PtoWspTensor& of = plan->tensors[tensor];
  PtoWspView view = {0, {0, 0}, {rows, cols}};
  int free = rank;
  for (const auto& index : indices) free -= index.is_range ? 0 : 1;
  int side = free >= 2 || (free == 1 && rows != 1) ? 0 : 1;
  int dimension = 0;
  for (const auto& index : indices) {
    const int64_t extent = of.extents[dimension];
    if (index.start < 0 || (!index.is_range && index.start >= extent)) plan->fault = PTO_WSP_INDEX;
    view.offset += index.start * of.strides[dimension];
    if (index.is_range && side < 2) {
      const int64_t left = std::min(index.length, extent - index.start);
      view.counted[side] = std::max<int64_t>(0, std::min(left, view.counted[side]));
      view.strides[side++] = of.strides[dimension];
    }
    ++dimension;
  }
  for (; dimension < rank && side < 2; ++dimension) view.strides[side++] = of.strides[dimension];
  return view;
}

// Whether an element is in the memory of a tensor.
inline bool pto_wsp_holds(int64_t place, const PtoWspTensor& of, int rank) {
  int64_t first = 0, last = 0;
  for (int dimension = 0; dimension < rank; ++dimension) {
    if (of.extents[dimension] <= 0) return false;
    const int64_t reach = of.strides[dimension] * (of.extents[dimension] - 1);
    (reach < 0 ? first : last) += reach;
  }
  return place >= first && place <= last;
}

// Rows and columns of a view from which on a kernel reads or writes its tile.
struct PtoWspOffset {
  int64_t row, col;
};

// A tensor of a task. Every tile that the kernel reads or writes has to be in the memory of the tensor.
inline void pto_wsp_operand(PtoWspPlan* plan, PtoWspTask* task, uint32_t tensor, int rank, uint64_t bytes, const PtoWspView& view,
                            std::initializer_list<PtoWspOffset> offsets) {
  const uint32_t number = task->num_tensors++;
  task->tensor_ptrs[number] = plan->tensors[tensor].base + uint64_t(view.offset) * bytes;
  for (int side = 0; side < 2; ++side) {
    task->tensor_strides[2 * number + side] = uint64_t(view.strides[side]);
    task->args[task->num_args++] = uint64_t(view.counted[side]);
  }
  task->num_axis_args = task->num_args;
  if (view.counted[0] == 0 || view.counted[1] == 0) return;
  for (const auto& offset : offsets)
    for (int corner = 0; corner < 4; ++corner) {
      const int64_t row = offset.row + (corner & 1 ? view.counted[0] - 1 : 0);
      const int64_t col = offset.col + (corner & 2 ? view.counted[1] - 1 : 0);
      const int64_t place = view.offset + row * view.strides[0] + col * view.strides[1];
      if (!pto_wsp_holds(place, plan->tensors[tensor], rank)) plan->fault = PTO_WSP_INDEX;
    }
}

inline int pto_wsp_submit(PtoWspPlan* plan, const PtoWspTask* task, uint64_t* cycles) {
  if (plan->fault != PTO_WSP_OK) return plan->fault;
  ++plan->tasks;
  uint64_t taken = 0;
  const int refused = plan->submit(plan->context, task, &taken);
  *cycles += taken;
  return refused == 0 ? PTO_WSP_OK : PTO_WSP_REFUSED;
}

template <typename T>
uint64_t pto_wsp_element(PtoWspPlan* plan, uint32_t tensor, int rank, const PtoWspView& view, int64_t row, int64_t col) {
  const int64_t place = view.offset + row * view.strides[0] + col * view.strides[1];
  if (!pto_wsp_holds(place, plan->tensors[tensor], rank)) {
    plan->fault = PTO_WSP_INDEX;
    return 0;
  }
  return pto_wsp::cast<uint64_t>(reinterpret_cast<const T*>(uintptr_t(plan->tensors[tensor].base))[place]);
}

// The bits of a float as a number of another type.
template <typename T>
T pto_wsp_number(uint64_t bits) {
  return pto_wsp::cast<T>(pto_wsp::same_bits<float>(uint32_t(bits)));
}

template <typename T>
uint64_t pto_wsp_bits(T value) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

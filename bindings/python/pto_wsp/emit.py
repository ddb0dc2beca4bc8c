"""The target `ascend_npu`: C++ sources for host, AICPU and AICore.

The sources are those of a project for the device's own compiler. Here only the tests compile them, for this machine: the
expander, and the kernels on the shim headers."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from .emit_expand import expand
from .emit_kernels import kernel_body
from .foreign import INCLUDE, CppSource
from .lowering import Lowered

_CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project({name} CXX)
set(CMAKE_CXX_STANDARD 17)
# The kernels round as the tile machine does.
add_compile_options(-ffp-contract=off)
option(PTO_WSP_ENABLE_ASCEND "compile for the device, with its own compiler" OFF)
include_directories(include)
add_library(pto_wsp_npu_aicpu SHARED aicpu/expand.cpp)
add_library(pto_wsp_npu_aicore SHARED aicore/dispatch.cpp {kernels})
if(PTO_WSP_ENABLE_ASCEND)
  target_compile_definitions(pto_wsp_npu_aicore PRIVATE PTO_WSP_ENABLE_ASCEND)
endif()
add_library(pto_wsp_npu_host SHARED host/runner_stub.cpp)
target_link_libraries(pto_wsp_npu_host pto_wsp_npu_aicpu pto_wsp_npu_aicore)
"""

_HOST = """\
// The host: runs the expander, and each task when it is made, on this machine. A runtime for the device replaces `submit`.
#include "pto/wsp/codegen/abi/kernel_abi.hpp"
#include "pto/wsp/codegen/abi/plan.hpp"

extern "C" void pto_wsp_plan(PtoWspPlan* plan);
extern "C" int pto_wsp_expand(PtoWspPlan* plan);
extern "C" uint64_t pto_wsp_dispatch(const KernelTaskDesc* task);

namespace {
int submit(void*, const PtoWspTask* task, uint64_t* cycles) {
  void* pointers[PTO_WSP_NPU_MAX_TENSORS];
  for (uint32_t i = 0; i < task->num_tensors; ++i)
    pointers[i] = reinterpret_cast<void*>(uintptr_t(task->tensor_ptrs[i]));
  const KernelTaskDesc desc = {task->kernel_id, 0,          task->num_args, task->num_axis_args, task->num_tensors,
                               0,               task->args, pointers,       task->tensor_strides};
  *cycles = pto_wsp_dispatch(&desc);
  return *cycles == PTO_WSP_KERNEL_REFUSED;
}
void drain(void*) {}
}  // namespace

// A bit for each process of a pipeline that was not done when a run ended.
extern "C" {
uint64_t pto_wsp_waiting = 0;
}

// Runs a program on tensors, symbols and arrays in the order of the expander's tables. Gives the tasks, and the cycles
// of all, or of a pipeline.
extern "C" int pto_wsp_run(const PtoWspTensor* tensors, const uint64_t* symbols, const int32_t* const* arrays,
                           uint64_t* tasks, uint64_t* cycles) {
  PtoWspPlan plan{};
  pto_wsp_plan(&plan);
  plan.tensors = tensors;
  plan.symbols = symbols;
  plan.arrays = arrays;
  plan.submit = submit;
  plan.drain = drain;
  const int fault = pto_wsp_expand(&plan);
  *tasks = plan.tasks;
  *cycles = plan.total_cycles;
  pto_wsp_waiting = plan.waiting;
  return fault;
}
"""


def emit(workload: Any, lowered: Lowered, checked: Any) -> str:
    """Writes the sources; the folder."""
    folder = Path(tempfile.mkdtemp(prefix="pto-wsp-npu-"))
    for part in ("host", "aicpu", "aicore"):
        (folder / part).mkdir()
    shutil.copytree(INCLUDE, folder / "include")
    files = [f"aicore/kernel_{name}.cpp" for name in lowered.kernels.values()]
    (folder / "CMakeLists.txt").write_text(_CMAKE.format(name=checked.text.split()[1], kernels=" ".join(files)))
    (folder / "host" / "runner_stub.cpp").write_text(_HOST)
    (folder / "aicpu" / "expand.cpp").write_text(expand(workload, lowered))
    (folder / "aicore" / "dispatch.cpp").write_text(_dispatch(lowered))
    for (kernel, text), name in zip(lowered.kernel_texts, lowered.kernels.values()):
        (folder / f"aicore/kernel_{name}.cpp").write_text(_kernel(name, kernel, text))
    return str(folder)


def _kernel(name: str, kernel: Any, text: str) -> str:
    if kernel.cpp is not None:
        return kernel.cpp.unit(name)
    body = kernel_body(name, kernel.params, text)
    return (
        CppSource(body, (), False)
        .unit(name)
        .replace("// Custom kernel (Path A): the body is the user's.", "// From tile operations.")
    )


def _dispatch(lowered: Lowered) -> str:
    names = list(lowered.kernels.values())
    functions = {}
    for (kernel, _), name in zip(lowered.kernel_texts, names):
        source = kernel.cpp or CppSource("", (), False)
        functions[name] = source.function(kernel.name if source.is_unit else name)
    lines = [
        "// Runs the kernel of a task; gives its cycles, or that it had no result.",
        '#include "pto/wsp/codegen/abi/ptoisa_bridge.hpp"',
        "",
        *(f'extern "C" uint64_t {name}(const KernelTaskDesc* task, CSPTContext* cspt);' for name in functions.values()),
        "",
        'extern "C" uint64_t pto_wsp_dispatch(const KernelTaskDesc* task) {',
        "  uint64_t said = 0;",
        "  pto::cpu_sim::take_cycles();",
        "  pto::cpu_sim::take_refusal();",
        "  switch (task->kernel_id) {",
    ]
    for number, name in enumerate(functions.values()):
        lines += [f"    case {number}:", f"      said = {name}(task, nullptr);", "      break;"]
    lines += [
        "  }",
        "  const uint64_t counted = pto::cpu_sim::take_cycles();",
        "  if (pto::cpu_sim::take_refusal()) return PTO_WSP_KERNEL_REFUSED;",
        "  return said ? said : counted;",
        "}",
        "",
    ]
    return "\n".join(lines)

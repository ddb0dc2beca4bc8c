"""PTO-WSP: programs as loops over tiles.

    from pto_wsp import DType, Dense, In, Out, P, Tensor, Tile, kernel, pto, workload

Kernels are functions of tile operations, workloads are loops that call them. `workload().compile()` checks a workload;
`program.execute()` runs it on this machine and counts cycles on the v9 clock. See docs/how-to/pto-wsp.md.
"""

from __future__ import annotations

from pto_runtime import __version__

from . import ir as pto_ir_cpp
from .auto_schedule import (
    AutoScheduler,
    ExplorationResult,
    ExplorationSummary,
    ScheduleConfig,
    SearchSpace,
)
from .axes import Dense, DenseDyn, Ragged, Sparse
from .csp import Channel, Event, connect, consume, process, query, record, replicate, send, synchronize, try_send
from .distributed import DistributedTensor, distribute, partial_results
from .errors import (
    ChannelClosed,
    ChannelError,
    ChannelFull,
    CompileError,
    ExecutionError,
    IRBridgeError,
    IRConversionError,
    KernelError,
    PtoError,
    ScheduleError,
    TypeCheckError,
    WorkloadWarning,
)
from .ir import module_to_string, parse_ir_string, workload_to_codegen_ir, workload_to_ir
from .kernel import CompiledKernel, Kernel, KernelRef, jit_kernel, ptoisa_kernel
from .kernel_trace import KernelIR, OpKind, Value
from .kernel_types import (
    Constexpr,
    In,
    InOut,
    KernelParam,
    Out,
    Scalar,
    ScalarType,
    Tile,
    TileType,
    extract_kernel_params,
)
from .layouts import (
    DistElem,
    LayoutIncompatibleError,
    MemLayout,
    TensorLayout,
    TensorReplicate,
    TensorShard,
    allgather,
    allreduce,
    reduce_scatter,
    relayout,
    tensor_layout_join,
)
from .linear_layout import (
    LinearLayout,
    f2_dot,
    f2_matmul,
    f2_rank,
    from_tensor_layout,
    propagate_broadcast,
    propagate_reshape,
    propagate_transpose,
    to_tensor_layout,
)
from .p_namespace import LoopVar, P
from .primitives import (
    combine,
    cond,
    for_each,
    parallel_for,
    select,
    sequential,
    slot_load_u64,
    slot_set_u64,
    task,
)
from .program import Program, ProgramStats
from .pto_ops import pto
from .ptoisa_ops import ptoisa
from .scalar_expr import Symbol
from .schedule import (
    Deps,
    DepsMode,
    DispatchPolicy,
    Pools,
    ReadyPolicy,
    StartPolicy,
    TaskGraphConfig,
    TaskWindow,
    TimingPolicy,
    TracePolicy,
    WindowMode,
)
from .trace import ExecutionTrace, TraceEvent, TraceLevel
from .type_checker import (
    Layout,
    LayoutCompatibilityError,
    LayoutReplicate,
    LayoutShard,
    TypeCheckContext,
    TypeChecker,
    TypeErrorInfo,
    TypeErrorKind,
    check_kernel_call,
    check_layouts_compatible,
    layout_join,
    validate_axis_index,
)
from .tree import Task
from .types import DType, Location, Tensor
from .workload import Workload

Shard, Replicate = TensorShard, TensorReplicate
#: The module of nodes, by the name that programs look for.
cpp = pto_ir_cpp
#: The native part is there whenever this package can be imported.
HAS_CPP_BINDINGS = True

# The decorators and one function have the names of submodules, and come last.
from .auto_schedule import auto_schedule  # noqa: E402, F811
from .kernel import kernel  # noqa: E402
from .workload import workload  # noqa: E402

__all__ = [
    name
    for name, value in list(globals().items())
    if not name.startswith("_") and name != "annotations" and not (type(value).__name__ == "module" and name != "cpp")
] + ["__version__"]

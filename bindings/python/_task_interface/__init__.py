"""The names of the field's native module, over our runtime: values, callables, tensors, arguments, configuration.

Programs import most of them from `simpler.task_interface`. See docs/how-to/simpler-python.md.
"""

from . import timing
from .call_config import CallConfig, RuntimeEnv
from .callables import ChipCallable, CoreCallable
from .tensors import TaskArgs, Tensor
from .values import (
    MAX_CHIP_SCALARS,
    MAX_CHIP_TENSORS,
    MAX_REGISTERED_CALLABLE_IDS,
    MAX_TENSOR_DIMS,
    OWNER_INSTANCE_ID_BYTES,
    AddressSpace,
    ArgDirection,
    DataType,
    TensorArgType,
    get_element_size,
    scalar_to_uint64,
)

# Until July 2026.
ChipStorageTaskArgs = TaskArgs


def __getattr__(name):
    # A program of May or June wants the times of its runs.
    if name == "RunTiming":
        from .timing import RunTiming

        timing.is_asked = True
        return RunTiming
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ChipStorageTaskArgs",
    "MAX_CHIP_SCALARS",
    "MAX_CHIP_TENSORS",
    "MAX_REGISTERED_CALLABLE_IDS",
    "MAX_TENSOR_DIMS",
    "OWNER_INSTANCE_ID_BYTES",
    "AddressSpace",
    "ArgDirection",
    "CallConfig",
    "ChipCallable",
    "CoreCallable",
    "DataType",
    "RuntimeEnv",
    "TaskArgs",
    "Tensor",
    "TensorArgType",
    "get_element_size",
    "scalar_to_uint64",
]

"""The names of the field's native module, over our runtime: values, callables, tensors, arguments, configuration.

Programs import most of them from `simpler.task_interface`. See docs/how-to/simpler-python.md.
"""

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


class RunTiming:
    """How long a run took on the host and on the device (May and June 2026)."""

    def __init__(self, host_wall_ns, device_wall_ns=0):
        self.host_wall_us, self.device_wall_us = host_wall_ns / 1000, device_wall_ns / 1000


__all__ = [
    "ChipStorageTaskArgs",
    "RunTiming",
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

"""The names that programs import: directions, types, arguments, callables, configuration, domains."""

from _task_interface import (
    MAX_REGISTERED_CALLABLE_IDS,
    AddressSpace,
    ArgDirection,
    CallConfig,
    ChipCallable,
    CoreCallable,
    DataType,
    RuntimeEnv,
    TaskArgs,
    Tensor,
    TensorArgType,
    get_element_size,
    scalar_to_uint64,
)

from .buffer import Buffer
from .callable_identity import CallableHandle
from .domain import ChipDomainContext, CommBufferSpec

__all__ = [
    "MAX_REGISTERED_CALLABLE_IDS",
    "AddressSpace",
    "ArgDirection",
    "Buffer",
    "CallConfig",
    "CallableHandle",
    "ChipCallable",
    "ChipDomainContext",
    "CommBufferSpec",
    "CoreCallable",
    "DataType",
    "RuntimeEnv",
    "TaskArgs",
    "Tensor",
    "TensorArgType",
    "get_element_size",
    "scalar_to_uint64",
]

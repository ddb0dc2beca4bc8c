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

from .buffer import Buffer, array_tensor
from .bootstrap import ChipBootstrapConfig, ChipBufferSpec, ChipCommBootstrapConfig, ChipContext, HostBufferStaging
from .callable_identity import CallableHandle
from .domain import ChipDomainContext, CommBufferSpec
from .payloads import WorkerPayload, WorkerType

# Earlier names of 2026, by the month until which programs use them. docs/reference/simpler-interface.md has the table.
ChipTensor = Tensor  # July, early August
ContinuousTensor = Tensor  # June
ChipStorageTaskArgs = TaskArgs  # July
ChipCallConfig = CallConfig  # April
make_tensor_arg = array_tensor  # April

__all__ = [
    "ChipBootstrapConfig",
    "ChipBufferSpec",
    "ChipCallConfig",
    "ChipCommBootstrapConfig",
    "ChipContext",
    "HostBufferStaging",
    "ChipStorageTaskArgs",
    "ChipTensor",
    "ContinuousTensor",
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
    "WorkerPayload",
    "WorkerType",
    "get_element_size",
    "make_tensor_arg",
    "scalar_to_uint64",
]

"""Closed sets of the field's interface, and its limits. The numbers are those that the C++ headers have."""

import ctypes
import struct
from enum import IntEnum

MAX_TENSOR_DIMS = 5
MAX_REGISTERED_CALLABLE_IDS = 64
OWNER_INSTANCE_ID_BYTES = 16
# What one orchestration may be given.
MAX_CHIP_TENSORS = 256
MAX_CHIP_SCALARS = 128

_ELEMENT_BYTES = (4, 2, 4, 2, 1, 1, 2, 8, 8, 2, 4, 1, 1, 1, 1)


class DataType(IntEnum):
    """The type of a tensor's elements."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    INT16 = 3
    INT8 = 4
    UINT8 = 5
    BFLOAT16 = 6
    INT64 = 7
    UINT64 = 8
    UINT16 = 9
    UINT32 = 10
    BOOL = 11
    FP8E4M3FN = 12
    FP8E8M0 = 13
    FP4E2M1 = 14

    @property
    def element_bytes(self):
        """How many bytes an element has."""
        return _ELEMENT_BYTES[self]


def get_element_size(data_type):
    """How many bytes an element of this type has."""
    return DataType(data_type).element_bytes


class ArgDirection(IntEnum):
    """What a kernel or an orchestration does with an argument."""

    SCALAR = 0
    IN = 1
    OUT = 2
    INOUT = 3


class TensorArgType(IntEnum):
    """What a task does with a tensor; decides the edges between tasks."""

    INPUT = 0
    OUTPUT = 1
    INOUT = 2
    OUTPUT_EXISTING = 3
    NO_DEP = 4

    @property
    def is_read(self):
        """Whether the task reads what another one has written."""
        return self in (TensorArgType.INPUT, TensorArgType.INOUT)

    @property
    def is_written(self):
        """Whether the task writes the tensor."""
        return self in (TensorArgType.OUTPUT, TensorArgType.INOUT, TensorArgType.OUTPUT_EXISTING)


class AddressSpace(IntEnum):
    """Whose memory a buffer is in."""

    HOST = 0
    DEVICE = 1


def scalar_to_uint64(value):
    """The 64-bit word of a scalar: the bits of a ctypes value, zero-extended; of a float those of a 32-bit float."""
    if isinstance(value, ctypes._SimpleCData):
        return int.from_bytes(bytes(value), "little")
    if isinstance(value, float):
        return int.from_bytes(struct.pack("<f", value), "little")
    word = int(value)
    if not -(1 << 63) <= word < 1 << 64:
        raise ValueError(f"the scalar {word} has more than 64 bits")
    return word & ((1 << 64) - 1)

"""Arrays of torch and of NumPy alike: their address, shape and element type."""

import numpy as np
from _task_interface import DataType

# Element types by the name that torch and NumPy give them; `mxfp` types have one byte a pair or an element.
_BY_NAME = {
    "float32": DataType.FLOAT32,
    "float16": DataType.FLOAT16,
    "half": DataType.FLOAT16,
    "int32": DataType.INT32,
    "int16": DataType.INT16,
    "int8": DataType.INT8,
    "uint8": DataType.UINT8,
    "bfloat16": DataType.BFLOAT16,
    "int64": DataType.INT64,
    "uint64": DataType.UINT64,
    "uint16": DataType.UINT16,
    "uint32": DataType.UINT32,
    "bool": DataType.BOOL,
    "bool_": DataType.BOOL,
    "float8_e4m3fn": DataType.FP8E4M3FN,
    "float8_e8m0fnu": DataType.FP8E8M0,
    "float4_e2m1fn_x2": DataType.FP4E2M1,
}


def is_torch(array):
    """Whether this is a tensor of torch. Torch is not imported for the question."""
    return type(array).__module__.split(".")[0] == "torch"


def data_type(dtype):
    """Our element type of a dtype of torch or NumPy."""
    name = str(dtype).rsplit(".", 1)[-1]
    if name not in _BY_NAME:
        raise TypeError(f"elements of type {dtype} are not supported: use one of {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name]


def checked(array, name="the array"):
    """The array, if its memory can be used as it is."""
    if is_torch(array):
        if array.device.type != "cpu":
            raise ValueError(f"{name} is on {array.device}: give a tensor on the CPU")
        is_dense = array.is_contiguous()
    elif isinstance(array, np.ndarray):
        is_dense = array.flags.c_contiguous
    else:
        raise TypeError(f"{name} is a {type(array).__name__}: give a torch.Tensor or a numpy.ndarray")
    if not is_dense:
        raise ValueError(f"{name} is not contiguous: give {name}.contiguous(), or numpy.ascontiguousarray({name})")
    return array


def address(array):
    """Where the elements begin."""
    return array.data_ptr() if is_torch(array) else array.ctypes.data


def byte_count(array):
    """Bytes of the elements."""
    return array.numel() * array.element_size() if is_torch(array) else array.nbytes


def shape(array):
    """The shape; a scalar array has one element in one dimension."""
    return tuple(array.shape) or (1,)


def copied(array):
    """An array of its own with the same elements."""
    return array.clone() if is_torch(array) else array.copy()

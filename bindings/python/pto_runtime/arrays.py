"""Arrays to and from a device."""

import numpy as np


def as_array(value, name="array"):
    """`value` as a contiguous NumPy array that shares its memory; torch tensors on the CPU are taken too."""
    if not isinstance(value, np.ndarray) and hasattr(value, "detach") and hasattr(value, "numpy"):
        value = value.detach().numpy()
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is {type(value).__name__}, and must be a NumPy array or a torch tensor")
    if value.dtype.hasobject:
        raise TypeError(f"{name} has the type {value.dtype}, which has no bytes to copy")
    if not value.flags["C_CONTIGUOUS"]:
        raise ValueError(f"{name} is not contiguous: use numpy.ascontiguousarray({name})")
    return value


def upload(device, array):
    """Allocates memory on `device` and copies `array` to it; gives the address."""
    array = as_array(array)
    address = device.malloc(max(array.nbytes, 1))
    device.copy_to_device(address, array)
    return address


def download(device, address, shape, dtype):
    """A new array with what is at `address`."""
    array = np.empty(shape, dtype)
    device.copy_from_device(array, address)
    return array

"""Arrays of torch (or NumPy) as tensor arguments."""

from simpler import arrays
from simpler.buffer import array_tensor


def torch_dtype_to_datatype(dtype):
    """Our element type of a dtype of torch."""
    return arrays.data_type(dtype)


def make_tensor_arg(worker, array=None, shapes=None, dtype=None):
    """An array as a tensor argument for this worker's runs. Until August 2026 programs gave the array alone."""
    if array is None:
        worker, array = None, worker
    return array_tensor(array, shapes, dtype) if worker is None else worker.make_tensor_arg(array, shapes, dtype)


def make_chip_tensor_arg(array, shapes=None, dtype=None):
    """An array as a tensor argument for runs of a device."""
    return array_tensor(array, shapes, dtype)

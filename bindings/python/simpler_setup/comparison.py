"""Outputs against the golden ones: a message for each that differs, with the worst element."""

import ctypes

import numpy as np
from pto_runtime.errors import MismatchError
from simpler import arrays


def _numbers(array):
    """The elements as a NumPy array of numbers that can be subtracted."""
    if not arrays.is_torch(array):
        return np.asarray(array)
    # Not by torch's own bridge: a torch of Debian and a NumPy of PyPI do not know each other.
    import torch

    exact = array.detach().to(torch.float64 if array.is_floating_point() else torch.int64).contiguous()
    memory = (ctypes.c_char * (8 * exact.numel())).from_address(exact.data_ptr())
    numbers = np.frombuffer(memory, dtype=np.float64 if array.is_floating_point() else np.int64).copy()
    return numbers.reshape(tuple(exact.shape))


def difference(name, found, golden, rtol, atol):
    """How an output differs from the golden one; None if it does not."""
    found, golden = _numbers(found), _numbers(golden)
    if found.shape != golden.shape:
        return f"{name}: the shape is {list(found.shape)}, and that of the golden one is {list(golden.shape)}"
    if np.issubdtype(found.dtype, np.floating):
        is_close = np.isclose(found, golden, rtol=rtol, atol=atol)
    else:
        is_close = np.abs(found.astype(np.float64) - golden) <= atol + rtol * np.abs(golden.astype(np.float64))
    if is_close.all():
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(found.astype(np.float64) - golden.astype(np.float64))
    worst = np.where(is_close, -1.0, np.where(np.isfinite(error), error, np.inf))
    where = np.unravel_index(int(np.argmax(worst)), worst.shape)
    position = ", ".join(str(int(index)) for index in where)
    return (
        f"{name}: {int((~is_close).sum()):,} of {found.size:,} elements differ; the largest error is {worst[where]:.6g} at "
        f"[{position}]: {found[where].item()!r}, golden {golden[where].item()!r} (rtol {rtol:g}, atol {atol:g})"
    )


def compare(found, golden, names, rtol, atol):
    """Raises MismatchError, an AssertionError, if one of these outputs differs."""
    wrong = [
        text for name in names if (text := difference(name, getattr(found, name), getattr(golden, name), rtol, atol))
    ]
    if wrong:
        raise MismatchError("Golden mismatch:\n" + "\n".join(wrong))

"""What tests of the field use, and Debian's torch does not have yet."""

import ctypes
import gc


def complete(torch):
    """Adds all of it; nothing without torch."""
    if torch is not None:
        name_bytes(torch)
        take_narrow_indices(torch)


def take_narrow_indices(torch):
    """Lets tensors of 32-bit integers be indices."""
    one = torch.zeros(1, dtype=torch.int32)
    try:
        one[one]
    except IndexError:
        taken = torch.Tensor.__getitem__

        def item(tensor, index):
            if isinstance(index, torch.Tensor) and index.dtype == torch.int32:
                index = index.long()
            return taken(tensor, index)

        torch.Tensor.__getitem__ = item


def name_bytes(torch):
    """Adds `tensor.nbytes` and `dtype.itemsize` where they are missing."""
    if not hasattr(torch.Tensor, "nbytes"):
        torch.Tensor.nbytes = property(lambda tensor: tensor.numel() * tensor.element_size())
    if not hasattr(torch.float32, "itemsize"):
        # A type that is written in C takes no attributes; the dict of its mapping does.
        (names,) = gc.get_referents(type(torch.float32).__dict__)
        names["itemsize"] = property(lambda dtype: torch.empty((), dtype=dtype).element_size())
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(type(torch.float32)))

"""Names that tests of the field use, and that Debian's torch does not have yet."""

import ctypes
import gc


def name_bytes(torch):
    """Adds `tensor.nbytes` and `dtype.itemsize` where they are missing; nothing without torch."""
    if torch is None:
        return
    if not hasattr(torch.Tensor, "nbytes"):
        torch.Tensor.nbytes = property(lambda tensor: tensor.numel() * tensor.element_size())
    if not hasattr(torch.float32, "itemsize"):
        # A type that is written in C takes no attributes; the dict behind its mapping does.
        (names,) = gc.get_referents(type(torch.float32).__dict__)
        names["itemsize"] = property(lambda dtype: torch.empty((), dtype=dtype).element_size())
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(type(torch.float32)))

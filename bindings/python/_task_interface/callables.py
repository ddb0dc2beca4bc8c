"""What is compiled: a kernel for one core, and an orchestration with the kernels that it submits."""

import hashlib

from .values import ArgDirection


def _directions(signature, what):
    try:
        return tuple(ArgDirection(one) for one in signature)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the signature of {what} is {signature!r}: give a list of ArgDirection") from error


def _bytes(binary, what):
    if not isinstance(binary, (bytes, bytearray, memoryview)) or not len(binary):
        raise TypeError(f"the binary of {what} is empty, or not bytes: give what KernelCompiler compiled")
    return bytes(binary)


class CoreCallable:
    """A kernel: the bytes of a shared object, and what it does with each argument."""

    def __init__(self, signature, binary):
        self.signature = _directions(signature, "a kernel")
        # What KernelCompiler says of its object; nothing, where the bytes come from elsewhere.
        self.core_type = getattr(binary, "core_type", None)
        self.name = getattr(binary, "name", None)
        self.binary = _bytes(binary, "a kernel")

    @classmethod
    def build(cls, signature, binary):
        """Makes one."""
        return cls(signature, binary)

    @property
    def binary_size(self):
        """Bytes of the object."""
        return len(self.binary)


class ChipCallable:
    """An orchestration as a shared object, its entry, and its kernels by func id."""

    def __init__(self, signature, func_name, binary, children=(), config_name=""):
        self.signature = _directions(signature, f"orchestration {func_name!r}")
        self.func_name = func_name
        self.config_name = config_name
        self.binary = _bytes(binary, f"orchestration {func_name!r}")
        self.children = [(int(func_id), core) for func_id, core in children]
        # Which kind of core each kernel is for, if its builder knows.
        self.core_types = {}
        self.kernel_names = {}
        self._check_children()

    def _check_children(self):
        seen = set()
        for func_id, core in self.children:
            if not isinstance(core, CoreCallable):
                raise TypeError(f"func id {func_id} of {self.func_name!r} is {core!r}: give a CoreCallable")
            if func_id in seen:
                raise ValueError(f"func id {func_id} of {self.func_name!r} is given twice")
            seen.add(func_id)

    @classmethod
    def build(cls, signature, func_name, binary, children=(), config_name=""):
        """Makes one."""
        return cls(signature, func_name, binary, children, config_name)

    @property
    def binary_size(self):
        """Bytes of the orchestration and of its kernels."""
        return len(self.binary) + sum(core.binary_size for _, core in self.children)

    @property
    def hashid(self):
        """The same for the same code: a hash of all binaries, names and func ids."""
        digest = hashlib.sha256()
        parts = [self.func_name.encode(), self.config_name.encode(), self.binary]
        for func_id, core in self.children:
            parts += [str(func_id).encode(), core.binary]
        for part in parts:
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()

"""Tensors as task arguments: a buffer seen with a shape; and the arguments of one task."""

import math

from .values import (
    MAX_CHIP_SCALARS,
    MAX_CHIP_TENSORS,
    MAX_TENSOR_DIMS,
    DataType,
    TensorArgType,
    scalar_to_uint64,
)


def _dense_strides(shapes):
    strides, step = [], 1
    for extent in reversed(shapes):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Count(int):
    """A number that can also be called, as programs until July 2026 do with `tensor.nbytes()`."""

    def __call__(self):
        return int(self)


class Memory:
    """Memory at an address that the program gives. It has no owner here."""

    def __init__(self, base, nbytes, is_device):
        self.base, self.nbytes, self.is_device = base, nbytes, is_device


class Tensor:
    """A view of a buffer. `start_offset` and `strides` are counted in elements; the buffer outlives the view."""

    def __init__(self, buffer, shapes, dtype, start_offset=0, strides=None):
        self.buffer = buffer
        self.shapes = tuple(int(extent) for extent in shapes)
        self.dtype = DataType(dtype)
        self.start_offset = int(start_offset)
        self.strides = _dense_strides(self.shapes) if strides is None else tuple(map(int, strides))
        self._check()

    def _check(self):
        if not 1 <= len(self.shapes) <= MAX_TENSOR_DIMS:
            raise ValueError(f"a tensor of shape {list(self.shapes)}: give 1 to {MAX_TENSOR_DIMS} dimensions")
        if any(extent < 0 for extent in self.shapes) or self.start_offset < 0:
            raise ValueError(f"a tensor of shape {list(self.shapes)} at {self.start_offset}: nothing may be negative")
        end = (self.start_offset + self.extent) * self.dtype.element_bytes
        if end > self.buffer.nbytes:
            raise ValueError(
                f"a tensor of shape {list(self.shapes)} and type {self.dtype.name} ends at byte {end}, and its buffer "
                f"has {self.buffer.nbytes}"
            )

    @classmethod
    def make(cls, data, shapes, dtype, child_memory=False):
        """A tensor at an address, or in the memory that `malloc` gave. `child_memory` says that the address is one of a device's, as `malloc` and domains give them."""
        size = DataType(dtype).element_bytes
        for extent in shapes:
            size *= int(extent)
        return cls(Memory(int(data), size, bool(child_memory) or getattr(data, "is_device", False)), shapes, dtype)

    @property
    def child_memory(self):
        """Whether runs use the memory itself, without copies."""
        return self.buffer.is_device

    @property
    def is_dense(self):
        """Whether the elements stand side by side in the order of the shape."""
        return self.strides == _dense_strides(self.shapes)

    @property
    def extent(self):
        """Elements from the first to the end of the last."""
        if 0 in self.shapes:
            return 0
        return 1 + sum((extent - 1) * stride for extent, stride in zip(self.shapes, self.strides))

    @property
    def ndims(self):
        """How many dimensions."""
        return len(self.shapes)

    @property
    def numel(self):
        """How many elements."""
        return Count(math.prod(self.shapes))

    @property
    def nbytes(self):
        """Bytes of the elements."""
        return Count(self.numel * self.dtype.element_bytes)

    @property
    def base(self):
        """The address of the first element."""
        return self.buffer.base + self.start_offset * self.dtype.element_bytes

    data = base

    def overlaps(self, other):
        """Whether both may have a byte in common."""
        mine = self.base, self.base + self.extent * self.dtype.element_bytes
        theirs = other.base, other.base + other.extent * other.dtype.element_bytes
        return mine[0] < theirs[1] and theirs[0] < mine[1]

    def __repr__(self):
        return f"Tensor({self.dtype.name}{list(self.shapes)} at {self.base:#x})"


class TaskArgs:
    """The arguments of one task: tensors with what the task does with them, then scalars."""

    def __init__(self):
        self.clear()

    def clear(self):
        """Forgets all arguments."""
        self._tensors, self._tags, self._scalars = [], [], []

    reset = clear

    def add_tensor(self, tensor, tag=TensorArgType.INPUT):
        """Adds a tensor; the tag decides which tasks have to wait for which."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{type(tensor).__name__} is no Tensor: make one with buffer.tensor() or make_tensor_arg()")
        if len(self._tensors) == MAX_CHIP_TENSORS:
            raise ValueError(f"a task takes at most {MAX_CHIP_TENSORS} tensors")
        self._tensors.append(tensor)
        self._tags.append(TensorArgType(tag))

    def __ptr__(self):
        """The same, as programs of April 2026 name it in a payload."""
        return self

    def add_scalar(self, value):
        """Adds a scalar: an integer, a float (as a 32-bit float), or a ctypes value."""
        if len(self._scalars) == MAX_CHIP_SCALARS:
            raise ValueError(f"a task takes at most {MAX_CHIP_SCALARS} scalars")
        self._scalars.append(scalar_to_uint64(value))

    def tensor_count(self):
        """How many tensors."""
        return len(self._tensors)

    def scalar_count(self):
        """How many scalars."""
        return len(self._scalars)

    def tensor(self, index):
        """A tensor by its index."""
        return self._tensors[index]

    def tag(self, index):
        """What the task does with that tensor."""
        return self._tags[index]

    def scalar(self, index):
        """The 64-bit word of a scalar."""
        return self._scalars[index]

    @property
    def tensors(self):
        """All tensors with their tags."""
        return list(zip(self._tensors, self._tags))

    @property
    def scalars(self):
        """The words of all scalars."""
        return list(self._scalars)

    def __getitem__(self, index):
        return self._tensors[index]

    def __len__(self):
        return len(self._tensors) + len(self._scalars)

    def __repr__(self):
        return f"TaskArgs({self._tensors}, scalars={self._scalars})"

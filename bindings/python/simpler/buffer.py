"""Memory that tensors are views of: the host's, the device's, arrays of the caller, windows of a domain."""

import ctypes
import mmap
import os
from dataclasses import dataclass
from enum import IntEnum
from itertools import count

from _task_interface import OWNER_INSTANCE_ID_BYTES, AddressSpace, Tensor, get_element_size

from . import arrays


class BackendKind(IntEnum):
    """What a buffer's memory is."""

    HOST_ARRAY = 0
    POSIX_SHM = 1
    DEVICE_MALLOC = 2
    COMM_WINDOW = 3


@dataclass(frozen=True)
class BufferIdentity:
    """Names a buffer among all of its owner."""

    owner_instance_id: bytes
    buffer_id: int
    generation: int = 1


class BufferOwner:
    """Gives buffers their identities; one for each worker."""

    def __init__(self):
        self._instance = os.urandom(OWNER_INSTANCE_ID_BYTES)
        self._numbers = count(1)

    def identity(self):
        """The next identity."""
        return BufferIdentity(self._instance, next(self._numbers))


_PROCESS = BufferOwner()


class Buffer:
    """Memory from `base`, of `nbytes`. The buffer keeps what owns the memory alive."""

    def __init__(self, base, nbytes, kind, *, owner=None, keeps=None, release=None, address_space=AddressSpace.HOST):
        self.base = int(base)
        self.nbytes = int(nbytes)
        self.backend_kind = BackendKind(kind)
        self.address_space = AddressSpace(address_space)
        self.identity = (owner or _PROCESS).identity()
        self.shm = None
        self._keeps = keeps
        self._release = release

    @property
    def buffer(self):
        """The bytes of memory that `create_buffer` made, as a view."""
        return None if self.shm is None else self.shm.buf

    def __index__(self):
        # Until July 2026 memory is its address.
        return self.base

    __int__ = __index__

    def __format__(self, how):
        return format(self.base, how)

    def __add__(self, nbytes):
        return self.base + nbytes

    @property
    def addr(self):
        """The address, under its other name."""
        return self.base

    @property
    def is_device(self):
        """Whether runs use the memory in place, without copies."""
        return self.address_space == AddressSpace.DEVICE

    def tensor(self, shapes, dtype, start_offset=0, strides=None):
        """A view of the buffer; offset and strides in elements."""
        if self.base == 0:
            raise ValueError("the buffer is closed")
        return Tensor(self, shapes, dtype, start_offset, strides)

    def close(self):
        """Gives the memory back; a second call does nothing."""
        release, self._release = self._release, None
        if release is not None:
            release(self)
        self._keeps = None
        self.shm = None
        self.base = 0

    free = close

    def __repr__(self):
        return f"Buffer({self.backend_kind.name}, {self.nbytes} bytes at {self.base:#x})"


class SharedMemory:
    """Memory of the process as a memoryview. The workers of a process share it without more."""

    def __init__(self, nbytes):
        self._map = mmap.mmap(-1, max(nbytes, 1))
        self.size = nbytes
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.buf = memoryview(self._map)[:nbytes]


def host_buffer(nbytes, owner=None):
    """New memory of the host, zeroed, as a buffer with `shm.buf`."""
    if not isinstance(nbytes, int) or nbytes <= 0:
        raise ValueError(f"a buffer of {nbytes!r} bytes: give a positive number")
    shared = SharedMemory(nbytes)
    buffer = Buffer(shared.base, nbytes, BackendKind.POSIX_SHM, owner=owner, keeps=shared)
    buffer.shm = shared
    return buffer


def array_buffer(array, owner=None):
    """The memory of an array of torch or NumPy as a buffer."""
    array = arrays.checked(array)
    return Buffer(arrays.address(array), arrays.byte_count(array), BackendKind.HOST_ARRAY, owner=owner, keeps=array)


def array_tensor(array, shapes=None, dtype=None):
    """An array as a tensor argument: its own shape and type, unless others are given."""
    dtype = arrays.data_type(array.dtype) if dtype is None else dtype
    return array_buffer(array).tensor(arrays.shape(array) if shapes is None else shapes, dtype)


def new_tensor(shapes, dtype, owner=None):
    """A tensor in new memory of the host."""
    elements = 1
    for extent in shapes:
        elements *= int(extent)
    return host_buffer(max(elements * get_element_size(dtype), 1), owner).tensor(shapes, dtype)


def span(thing, nbytes=None):
    """Address and bytes of a buffer, a tensor argument, an array, an array of ctypes, or an address with its bytes."""
    if nbytes is not None and isinstance(thing, (int, Buffer)):
        return int(thing), nbytes
    if isinstance(thing, (Buffer, Tensor)):
        return thing.base, thing.nbytes
    if isinstance(thing, (ctypes.Array, ctypes.Structure)):
        return ctypes.addressof(thing), ctypes.sizeof(thing)
    array = arrays.checked(thing)
    return arrays.address(array), arrays.byte_count(array)


def copy(target, source, nbytes=None):
    """Copies the source's bytes to the target, which must have room for all of them; both may be addresses, with the number of bytes."""
    (to, room), (origin, length) = span(target, nbytes), span(source, nbytes)
    if 0 in (to, origin):
        raise ValueError("a copy to or from a buffer that is closed")
    # From a larger buffer to a smaller array: the array's bytes.
    length = min(length, room) if not isinstance(target, Buffer) else length
    if length > room:
        raise ValueError(f"a copy of {length} bytes to a target of {room}")
    ctypes.memmove(to, origin, length)

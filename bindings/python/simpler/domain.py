"""Domains of a level-3 run: ranks with a window each, which the kernels of all ranks can read and write.

A window is memory of this process. A kernel gets the address of the context (`device_ctx`), which lists the windows of all ranks.
"""

import struct
from dataclasses import dataclass

from _task_interface import AddressSpace

from .buffer import BackendKind, Buffer, SharedMemory

MAX_RANKS = 64
_CONTEXT_BYTES = 1056
_WINDOWS_IN, _WINDOWS_OUT = 32, 544
_PAGE = 4096
_LINE = 64


@dataclass(frozen=True)
class CommBufferSpec:
    """A buffer in the window of each rank."""

    name: str
    dtype: str
    count: int
    nbytes: int


@dataclass(frozen=True)
class ChipDomainContext:
    """A domain as one rank sees it."""

    name: str
    domain_rank: int
    domain_size: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffers: dict

    @property
    def buffer_ptrs(self):
        """The addresses of the buffers by their names."""
        return {name: buffer.base for name, buffer in self.buffers.items()}


def _placed(specs, room):
    """Where each buffer begins in a window, on lines of their own where there is room; the window's size."""
    offsets, end = {}, 0
    for spec in specs:
        if spec.name in offsets:
            raise ValueError(f"a domain with two buffers {spec.name!r}")
        if spec.nbytes <= 0:
            raise ValueError(f"buffer {spec.name!r} of {spec.nbytes} bytes: give a positive number")
        end = -(-end // _LINE) * _LINE
        offsets[spec.name] = end
        end += spec.nbytes
    if sum(spec.nbytes for spec in specs) > room:
        raise ValueError(f"the buffers of a window need {end} bytes, and window_size is {room}")
    return offsets, -(-max(end, room) // _PAGE) * _PAGE


class Domain:
    """The windows and contexts of all ranks; indexed by the worker's number."""

    def __init__(self, name, workers, window_size, buffers, owner=None):
        self.name = name
        self.workers = list(workers)
        if not self.workers or len(set(self.workers)) != len(self.workers) or len(self.workers) > MAX_RANKS:
            raise ValueError(f"domain {name!r} of workers {self.workers}: give 1 to {MAX_RANKS} different ones")
        offsets, self.window_bytes = _placed(buffers, window_size)
        self._windows = [SharedMemory(self.window_bytes) for _ in self.workers]
        self._contexts = [self._context(rank) for rank in range(len(self.workers))]
        self._views = [self._view(rank, offsets, buffers, owner) for rank in range(len(self.workers))]
        self.is_released = False

    def _context(self, rank):
        memory = SharedMemory(_CONTEXT_BYTES)
        struct.pack_into("<QQIIQ", memory.buf, 0, 0, 0, rank, len(self.workers), self.window_bytes)
        for peer, window in enumerate(self._windows):
            struct.pack_into("<Q", memory.buf, _WINDOWS_IN + 8 * peer, window.base)
            struct.pack_into("<Q", memory.buf, _WINDOWS_OUT + 8 * peer, window.base)
        return memory

    def _view(self, rank, offsets, specs, owner):
        window = self._windows[rank]
        buffers = {
            spec.name: Buffer(
                window.base + offsets[spec.name],
                spec.nbytes,
                BackendKind.COMM_WINDOW,
                owner=owner,
                keeps=window,
                address_space=AddressSpace.DEVICE,
            )
            for spec in specs
        }
        context = self._contexts[rank].base
        return ChipDomainContext(
            self.name, rank, len(self.workers), context, window.base, self.window_bytes, buffers
        )

    def __getitem__(self, worker):
        if worker not in self.workers:
            raise KeyError(f"worker {worker} is not in domain {self.name!r}, which has {self.workers}")
        return self._views[self.workers.index(worker)]

    def bytes_of(self, worker, name, nbytes):
        """The bytes of a buffer of that worker, as a view."""
        offset = self[worker].buffers[name].base - self[worker].local_window_base
        return self._windows[self.workers.index(worker)].buf[offset : offset + nbytes]

    def __len__(self):
        return len(self.workers)

    def release(self):
        """Says that the caller is done. The windows stay until the run ends, because its tasks may not have begun."""
        self.is_released = True

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.release()



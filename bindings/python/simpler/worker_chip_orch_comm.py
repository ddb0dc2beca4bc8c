"""A region that a level-3 function shares with an orchestration that runs: bytes of payload, and counters of 32 bits.

`orch.create_worker_chip_region` makes one. The devices of a worker are threads of this process, so a region is memory of the process.
"""

import ctypes
import itertools
import time
from dataclasses import dataclass
from enum import IntEnum

from .buffer import SharedMemory, span
from .failure import WorkerStateError

# The first word of a description; aicpu/worker_chip_orch_endpoint.h has the same.
_MAGIC = 0x50544F5245470001
_LINE = 64
_PAUSE_SECONDS = 50e-6
_numbers = itertools.count(1)


class NotifyOp(IntEnum):
    """What a notification does to a counter."""

    Set = 0
    Add = 1


class WaitCmp(IntEnum):
    """How a counter is compared with a value."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


_HOLDS = {
    WaitCmp.EQ: lambda found, value: found == value,
    WaitCmp.NE: lambda found, value: found != value,
    WaitCmp.GT: lambda found, value: found > value,
    WaitCmp.GE: lambda found, value: found >= value,
    WaitCmp.LT: lambda found, value: found < value,
    WaitCmp.LE: lambda found, value: found <= value,
}


@dataclass(frozen=True)
class SignalTestResult:
    """A counter as it was, and whether it compared so."""

    matched: bool
    observed: int


class Counter:
    """A counter of a region. Aligned words of 32 bits are read and written whole, and in order, on the machines that Python runs on here."""

    def __init__(self, region, offset):
        self._region, self._offset = region, offset

    def _word(self):
        return ctypes.c_int32.from_address(self._region.counter_base + self._offset)

    def notify(self, value, op=NotifyOp.Set):
        """Sets the counter, or adds to it: a reader that sees the new value sees what was written before."""
        self._region.check()
        word = self._word()
        word.value = value if NotifyOp(op) == NotifyOp.Set else word.value + value

    def test(self, value, cmp=WaitCmp.GE):
        """The counter now."""
        self._region.check()
        observed = self._word().value
        return SignalTestResult(_HOLDS[WaitCmp(cmp)](observed, value), observed)

    def wait(self, value, cmp=WaitCmp.GE, *, timeout):
        """Waits until the counter compares so; its value. TimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            result = self.test(value, cmp)
            if result.matched:
                return result.observed
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"the counter at {self._offset} of region {self._region.region_id} is {result.observed} after {timeout:g} s, "
                    f"and {WaitCmp(cmp).name} {value} is waited for"
                )
            time.sleep(_PAUSE_SECONDS)


class Region:
    """Payload and counters, from the host's side."""

    def __init__(self, payload_bytes, counter_bytes):
        if payload_bytes <= 0 or counter_bytes <= 0 or counter_bytes % 4:
            raise ValueError(f"a region of {payload_bytes} bytes and {counter_bytes} bytes of counters: give positive numbers, of counters a multiple of 4")
        room = -(-payload_bytes // _LINE) * _LINE
        self._memory = SharedMemory(room + counter_bytes)
        self.region_id = next(_numbers)
        self.payload_base, self.payload_bytes = self._memory.base, payload_bytes
        self.counter_base, self.counter_bytes = self._memory.base + room, counter_bytes
        self._is_released = False

    def check(self):
        """Refuses a region that was given back."""
        if self._is_released:
            raise WorkerStateError(f"region {self.region_id} was given back by free()")

    def descriptor_scalars(self):
        """The six words by which an orchestration finds the region."""
        self.check()
        return (_MAGIC, self.region_id, self.payload_base, self.payload_bytes, self.counter_base, self.counter_bytes)

    def counter(self, offset):
        """The counter at this byte."""
        if offset % 4 or not 0 <= offset < self.counter_bytes:
            raise ValueError(f"a counter at {offset}: give a multiple of 4 below {self.counter_bytes}")
        return Counter(self, offset)

    def _place(self, offset, nbytes):
        self.check()
        if offset < 0 or nbytes < 0 or offset + nbytes > self.payload_bytes:
            raise ValueError(f"{nbytes} bytes at {offset}: the region has {self.payload_bytes}")
        return self.payload_base + offset

    def payload_write(self, offset, source, *, nbytes=None):
        """Copies bytes into the region."""
        base, room, kept = _bytes_of(source)
        nbytes = room if nbytes is None else nbytes
        _check_room(nbytes, room)
        ctypes.memmove(self._place(offset, nbytes), base, nbytes)
        del kept

    def payload_read(self, offset, target, *, nbytes=None):
        """Copies bytes out of the region."""
        base, room, kept = _bytes_of(target)
        nbytes = room if nbytes is None else nbytes
        _check_room(nbytes, room)
        ctypes.memmove(base, self._place(offset, nbytes), nbytes)
        del kept

    def free(self):
        """Gives the region back. Its memory stays until the run ends, because its orchestration may still use it."""
        self._is_released = True


def _check_room(nbytes, room):
    if nbytes > room:
        raise ValueError(f"{nbytes} bytes of a buffer that has {room}")


def _bytes_of(thing):
    """Address, bytes, and what keeps them alive."""
    if isinstance(thing, bytes):
        held = ctypes.create_string_buffer(thing, len(thing) or 1)
        return ctypes.addressof(held), len(thing), held
    if isinstance(thing, (bytearray, memoryview)):
        held = (ctypes.c_char * len(thing)).from_buffer(thing)
        return ctypes.addressof(held), len(thing), held
    base, length = span(thing)
    return base, length, thing

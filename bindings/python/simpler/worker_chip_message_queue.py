"""Queues between a level-3 function and an orchestration that runs: messages in order, in each direction, on one region.

`orch.create_worker_chip_queue` makes them. Layout and protocol are those of `aicpu/worker_chip_message_queue.h`.
"""

import struct
import time
from dataclasses import dataclass
from enum import IntEnum

from .failure import WorkerStateError
from .worker_chip_orch_comm import Region

_MAGIC = 0x50544F5155450001
_SLOT = struct.Struct("<QQQQ")
_LINE = 64
_PAUSE_SECONDS = 50e-6
_WORD = 1 << 32
# Counters, each on a line of its own.
_INPUT_TAIL, _INPUT_HEAD, _OUTPUT_TAIL, _OUTPUT_HEAD, _HOST_ABORT, _CHIP_ABORT = (_LINE * number for number in range(6))
_COUNTER_BYTES = 6 * _LINE


class WorkerChipQueueOpcode(IntEnum):
    """What a message is."""

    DATA = 1
    STOP = 2
    ERROR = 3


@dataclass(frozen=True)
class QueueLayout:
    """Where the parts of a queue stand in its region."""

    input_desc_offset: int
    output_desc_offset: int
    input_arena_offset: int
    output_arena_offset: int
    payload_bytes: int
    counter_bytes: int


def layout_of(depth, input_arena_bytes, output_arena_bytes):
    """The layout of a queue of this depth."""
    if depth < 1 or depth & (depth - 1) or depth > 1 << 30:
        raise ValueError(f"a queue of depth {depth}: give a power of two up to 2**30")
    for arena in (input_arena_bytes, output_arena_bytes):
        if arena <= 0 or arena % _LINE:
            raise ValueError(f"an arena of {arena} bytes: give a positive multiple of {_LINE}")
    ring = -(-depth * _SLOT.size // _LINE) * _LINE
    arena = 2 * ring
    return QueueLayout(0, ring, arena, arena + input_arena_bytes, arena + input_arena_bytes + output_arena_bytes, _COUNTER_BYTES)


@dataclass(frozen=True)
class Message:
    """A message of the orchestration, still in its slot."""

    seq: int
    opcode: WorkerChipQueueOpcode
    payload_offset: int
    payload_nbytes: int


class _End:
    """What both directions share."""

    def __init__(self, queue, tail, head, ring):
        self._queue, self._ring = queue, ring
        self._tail, self._head = queue.region.counter(tail), queue.region.counter(head)

    def _slot(self, seq):
        return self._ring + (seq % self._queue.depth) * _SLOT.size

    def _until(self, attempt, timeout, what):
        deadline = time.monotonic() + timeout
        while (found := attempt()) in (None, False):
            self._queue.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} within {timeout:g} s")
            time.sleep(_PAUSE_SECONDS)
        return found


class QueueInput(_End):
    """Messages to the orchestration."""

    def __init__(self, queue, arena_offset, arena_bytes):
        super().__init__(queue, _INPUT_TAIL, _INPUT_HEAD, queue.layout.input_desc_offset)
        self._arena, self._room = arena_offset, arena_bytes
        self._sent = 0
        # Messages that may not have been consumed: number, begin and end in the arena.
        self._spans = []

    def try_enqueue(self, buffer_or_none, nbytes, opcode=WorkerChipQueueOpcode.DATA):
        """Sends a message; False: there is no room now."""
        self._queue.check()
        if nbytes > self._room:
            raise ValueError(f"a message of {nbytes} bytes: the arena has {self._room}")
        head = self._head.test(0).observed % _WORD
        self._spans = [one for one in self._spans if (head - one[0]) % _WORD >= _WORD // 2]
        if len(self._spans) >= self._queue.depth:
            return False
        offset = self._place(nbytes)
        if offset is None:
            return False
        if nbytes:
            self._queue.region.payload_write(self._arena + offset, buffer_or_none, nbytes=nbytes)
        address = self._arena + offset if nbytes else 0
        self._queue.region.payload_write(self._slot(self._sent), _SLOT.pack(self._sent + 1, opcode, address, nbytes))
        self._sent += 1
        self._spans.append((self._sent, offset, offset + nbytes))
        self._tail.notify(_signed(self._sent))
        return True

    def _place(self, nbytes):
        offset = -(-self._spans[-1][2] // _LINE) * _LINE if self._spans else 0
        if offset + nbytes > self._room:
            offset = 0
        is_taken = any(offset < end and begin < offset + nbytes for _number, begin, end in self._spans)
        return None if is_taken else offset

    def enqueue(self, buffer_or_none, *, nbytes, timeout, opcode=WorkerChipQueueOpcode.DATA):
        """Sends a message, when there is room."""
        self._until(lambda: self.try_enqueue(buffer_or_none, nbytes, opcode), timeout, "no room for a message")


class QueueOutput(_End):
    """Messages from the orchestration."""

    def __init__(self, queue):
        super().__init__(queue, _OUTPUT_TAIL, _OUTPUT_HEAD, queue.layout.output_desc_offset)
        self._taken = 0

    def try_peek(self):
        """The oldest message, which stays in its slot; None: there is none now."""
        self._queue.check()
        if self._tail.test(0).observed % _WORD == self._taken % _WORD:
            return None
        words = bytearray(_SLOT.size)
        self._queue.region.payload_read(self._slot(self._taken), words)
        seq, opcode, offset, nbytes = _SLOT.unpack(words)
        if seq != self._taken + 1:
            raise WorkerStateError(f"message {self._taken + 1} of a queue has the number {seq}: its descriptor is damaged")
        return Message(seq, WorkerChipQueueOpcode(opcode), offset, nbytes)

    def peek(self, *, timeout):
        """The oldest message, when there is one."""
        return self._until(self.try_peek, timeout, "no message came")

    def read_into(self, message, buffer_or_none):
        """Copies a message's bytes."""
        if message.payload_nbytes:
            self._queue.region.payload_read(message.payload_offset, buffer_or_none, nbytes=message.payload_nbytes)

    def release(self, message):
        """Gives the oldest message's room back."""
        if message.seq != self._taken + 1:
            raise ValueError(f"message {message.seq} is not the oldest one, which is {self._taken + 1}")
        self._taken += 1
        self._head.notify(_signed(self._taken))

    def try_dequeue_into(self, buffer_or_none):
        """Reads and releases the oldest message; None: there is none now."""
        message = self.try_peek()
        if message is not None:
            self.read_into(message, buffer_or_none)
            self.release(message)
        return message

    def dequeue_into(self, buffer_or_none, *, timeout):
        """Reads and releases the oldest message, when there is one."""
        return self._until(lambda: self.try_dequeue_into(buffer_or_none), timeout, "no message came")


class Queue:
    """Both directions, from the host's side."""

    def __init__(self, depth, input_arena_bytes, output_arena_bytes):
        self.depth, self.layout = depth, layout_of(depth, input_arena_bytes, output_arena_bytes)
        self._arenas = (input_arena_bytes, output_arena_bytes)
        self.region = Region(self.layout.payload_bytes, self.layout.counter_bytes)
        self.input = QueueInput(self, self.layout.input_arena_offset, input_arena_bytes)
        self.output = QueueOutput(self)
        self._abort = self.region.counter(_CHIP_ABORT)

    def check(self):
        """Refuses a queue that the orchestration has given up, or that was given back."""
        if self._abort.test(0).observed:
            raise WorkerStateError("the orchestration has given the queue up: the error of its run says why")

    def chip_task_arg_scalars(self):
        """The twelve words by which an orchestration finds the queue."""
        sizes = (self.layout.payload_bytes, self.layout.counter_bytes)
        return (*self.region.descriptor_scalars(), _MAGIC, self.depth, *self._arenas, *sizes)

    # In July 2026.
    l2_task_arg_scalars = chip_task_arg_scalars

    def try_request_stop(self):
        """Sends a STOP; False: there is no room now."""
        return self.input.try_enqueue(None, 0, WorkerChipQueueOpcode.STOP)

    def request_stop(self, *, timeout):
        """Sends a STOP, when there is room."""
        self.input.enqueue(None, nbytes=0, timeout=timeout, opcode=WorkerChipQueueOpcode.STOP)

    def free(self):
        """Gives the queue back. Its memory stays until the run ends."""
        self.region.free()


def _signed(number):
    """A count as the word of 32 bits that a counter holds."""
    word = number % _WORD
    return word - _WORD if word >= _WORD // 2 else word

"""Processes that run side by side and meet at channels."""

from __future__ import annotations

from collections import deque
from typing import Any, Callable, Iterable, Optional, Sequence

from .errors import ChannelClosed
from .loop_var import LoopVar
from .primitives import _added, _body, _workload
from .workload import Workload


class Channel:
    """A channel that holds `depth` tokens; with depth 0 sender and receiver meet.

    In a program the channel is part of the pipeline, and its tokens are not here. What `try_send` and `record` put into it on
    the host is."""

    def __class_getitem__(cls, _type: Any) -> type:
        return cls

    def __init__(self, name: str, depth: int = 1) -> None:
        if not isinstance(depth, int) or depth < 0:
            raise ValueError(f"Channel {name}: a depth of {depth!r} is not possible.")
        self.name = name
        self.depth = depth
        self._tokens: deque[Any] = deque()
        self._is_open = True

    def is_open(self) -> bool:
        """Whether it takes tokens."""
        return self._is_open

    def size(self) -> int:
        """The tokens in it."""
        return len(self._tokens)

    def empty(self) -> bool:
        """Whether no token is in it."""
        return not self._tokens

    def full(self) -> bool:
        """Whether it has no room."""
        return self.depth > 0 and len(self._tokens) >= self.depth

    def close(self) -> None:
        """No token is put into it any more."""
        self._is_open = False

    def __repr__(self) -> str:
        return f"Channel({self.name!r}, depth={self.depth})"


Event = Channel


class Process:
    """A process: what it consumes, what it produces, and what it does."""

    def __init__(
        self, name: str, consumes: Sequence[Channel], produces: Sequence[Channel], body: Workload, rank: int = 0
    ) -> None:
        self.name = name
        self.rank = rank
        self.consumes = list(consumes)
        self.produces = list(produces)
        self.body = body

    def __repr__(self) -> str:
        return f"Process({self.name!r})"


class ProcessBuilder:
    """A process that has no body yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._consumes: list[Channel] = []
        self._produces: list[Channel] = []
        self._rank = 0

    def on(self, rank: int) -> ProcessBuilder:
        """The rank of a group that has it: ours. Without a group one device has all processes."""
        if not isinstance(rank, int) or not 0 <= rank < 1 << 16:
            raise ValueError(f"Process {self.name}: there is no rank {rank!r}.")
        self._rank = rank
        return self

    def consumes(self, *channels: Channel) -> ProcessBuilder:
        """Takes tokens from these channels."""
        self._consumes.extend(channels)
        return self

    def produces(self, *channels: Channel) -> ProcessBuilder:
        """Sends tokens to these channels."""
        self._produces.extend(channels)
        return self

    def body(self, workload: Workload) -> Process:
        """The process, which does this."""
        body = _workload(workload, "The body of a process")
        return Process(self.name, self._consumes, self._produces, body, self._rank)


def process(name: str) -> ProcessBuilder:
    """Begins a process."""
    return ProcessBuilder(name)


def send(channel: Channel, value: Workload) -> Workload:
    """Runs a task, then sends a token: the task's first axis."""
    if not isinstance(value, Workload) or value._kind != "task":
        raise TypeError("send needs a task: it runs, and then its token is sent.")
    return _added(Workload("send", channel=channel, task=value), [value])


def try_send(channel: Channel, value: Any) -> bool:
    """Puts a value into a channel of the host, if it has room."""
    if not channel.is_open():
        raise ChannelClosed(f"The channel {channel.name} is closed.")
    if channel.full() or channel.depth == 0:
        return False
    channel._tokens.append(value)
    return True


def consume(channel: Channel, fn: Callable[[LoopVar], Any]) -> Workload:
    """The body for each token, until the channel is closed and empty."""
    variable = LoopVar("token")
    body = _body(fn, variable, "sequential")
    return _added(Workload("consume", channel=channel, var=variable, body=body), [])


def _flat(processes: Iterable[Any]) -> Iterable[Process]:
    for one in processes:
        if isinstance(one, (list, tuple)):
            yield from _flat(one)
        elif isinstance(one, Process):
            yield one
        else:
            raise TypeError(f"connect needs processes, not {type(one).__name__}. End each with .body(..).")


def connect(processes: Sequence[Any], channels: Optional[Sequence[Channel]] = None) -> Workload:
    """A pipeline of processes."""
    flat = list(_flat(processes))
    if channels is None:
        channels = []
        for one in flat:
            for channel in one.consumes + one.produces:
                if not any(channel is other for other in channels):
                    channels.append(channel)
    return _added(Workload("connect", processes=flat, channels=list(channels)), [])


def replicate(one: Process, n: int) -> list[Process]:
    """So many processes that do the same; they share its channels."""
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"replicate({one.name}, {n!r}): at least one process is needed.")
    return [Process(f"{one.name}_{number}", one.consumes, one.produces, one.body, one.rank) for number in range(n)]


def record(event: Channel) -> None:
    """Marks on the host that an event has happened."""
    if not event.is_open():
        raise ChannelClosed(f"The event {event.name} is closed.")
    event._tokens.clear()
    event._tokens.append(True)


def query(event: Channel) -> bool:
    """Whether an event has happened."""
    return not event.empty()


def synchronize(event: Channel) -> None:
    """Ends where the event has happened; nothing on the host could make it happen later."""
    if not query(event):
        raise ChannelClosed(f"The event {event.name} was not recorded: waiting for it would not end. Call record first.")

"""The tree of a workload: its nodes, its schedule, and its tasks as a list. A reader of a workload needs no more of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Optional, TypeVar

from .schedule import DispatchPolicy, TaskGraphConfig, TimingPolicy
from .source import user_line

Copied = TypeVar("Copied", bound="Node")


@dataclass
class Schedule:
    """What a workload says of its schedule."""

    dispatch: Optional[Any] = None
    streams: int = 1
    stream_by: Optional[Callable[[Any], Any]] = None
    timing: Optional[Any] = None

    def to_dict(self) -> dict[str, Any]:
        """What is not the default."""
        defaults = Schedule()
        fields = ("dispatch", "streams", "stream_by", "timing")
        return {name: getattr(self, name) for name in fields if getattr(self, name) != getattr(defaults, name)}


@dataclass
class Task:
    """A task, as `Workload.enumerate` gives it."""

    kernel: Any
    params: list[Any] = field(default_factory=list)
    resources: Any = None
    id: int = 0


class Node:
    """What a node of the tree is, and what is said of its schedule."""

    def __init__(self, kind: str, **kwargs: Any) -> None:
        self._kind = kind
        self._kwargs = kwargs
        self._name: Optional[str] = None
        self._params: list[tuple[str, Any]] = []
        self._schedule = Schedule()
        self._dispatch_policy: Optional[DispatchPolicy] = None
        self._stream_count: Optional[int] = None
        self._stream_by_fn: Optional[Callable[[Any], Any]] = None
        self._timing_policy: Optional[TimingPolicy] = None
        self._task_graph_config: Optional[TaskGraphConfig] = None
        self._spatial_map: Optional[Any] = None
        self._layouts: list[tuple[Any, tuple]] = []
        self._type_errors: list[Any] = []
        self._line = user_line()

    def _copy(self: Copied) -> Copied:
        copy = type(self)(self._kind, **self._kwargs)
        vars(copy).update(vars(self))
        copy._schedule = Schedule(**vars(self._schedule))
        copy._params = list(self._params)
        copy._layouts = list(self._layouts)
        return copy

"""Schedules: which worker runs a task, and how many tasks may be under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Optional


class _Policy:
    """A kind, and its arguments by name."""

    def __init__(self, kind: str, **kwargs: Any) -> None:
        self._kind = kind
        self._kwargs = kwargs

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and (self._kind, self._kwargs) == (other._kind, other._kwargs)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self._kind}({', '.join(f'{k}={v!r}' for k, v in self._kwargs.items())})"


class DispatchPolicy(_Policy):
    """What chooses the worker of a task."""

    @classmethod
    def round_robin(cls, num_aicpus: int = 1) -> DispatchPolicy:
        """Workers in turn."""
        return cls("round_robin", num_aicpus=num_aicpus)

    @classmethod
    def affinity(cls, key_fn: Callable[[Any], Any], num_aicpus: int = 0) -> DispatchPolicy:
        """Tasks with equal keys go to the same worker."""
        return cls("affinity", key_fn=key_fn, num_aicpus=num_aicpus)

    @classmethod
    def hash(cls, key_fn: Callable[[Any], Any], num_aicpus: int = 0) -> DispatchPolicy:
        """As `affinity`."""
        return cls("hash", key_fn=key_fn, num_aicpus=num_aicpus)

    @classmethod
    def work_steal(cls) -> DispatchPolicy:
        """Idle workers take work; on the v9 clock the same as in turn."""
        return cls("work_steal")

    @classmethod
    def dispatch_by(cls, fn: Callable[[Any], Any], num_aicpus: int = 0) -> DispatchPolicy:
        """The worker that a function of the task says."""
        return cls("dispatch_by", fn=fn, num_aicpus=num_aicpus)


class TimingPolicy(_Policy):
    """When tasks are issued."""

    immediate: TimingPolicy

    @classmethod
    def batched(cls, n: int) -> TimingPolicy:
        """So many at a time."""
        return cls("batched", n=n)

    @classmethod
    def interleaved(cls, streams: int) -> TimingPolicy:
        """Streams in turn."""
        return cls("interleaved", streams=streams)

    @classmethod
    def rate_limit(cls, tasks_per_ms: float) -> TimingPolicy:
        """At most so many in a millisecond."""
        return cls("rate_limit", tasks_per_ms=tasks_per_ms)


TimingPolicy.immediate = TimingPolicy("immediate")


class WindowMode(Enum):
    """What happens when the window is full."""

    STALL = "stall"
    ABORT = "abort"
    BENCHMARK = "benchmark"


@dataclass(frozen=True)
class TaskWindow:
    """How many tasks may be under way; 0: any number."""

    size: int = 8192
    unit: str = "tasks"
    mode: WindowMode = WindowMode.STALL

    def __post_init__(self) -> None:
        if self.unit not in ("tasks", "bytes", "entries"):
            raise ValueError(f"{self.unit!r} is no unit of a window. Use tasks, bytes or entries.")
        if not isinstance(self.size, int) or self.size < 0:
            raise ValueError(f"A window of {self.size!r} {self.unit} is not possible.")


class DepsMode(Enum):
    """How dependencies of tasks are found."""

    INFER_TENSOR_MAP_EXACT = "infer_tensor_map_exact"
    INFER_BYTES_OVERLAP = "infer_bytes_overlap"
    EXPLICIT = "explicit"
    HYBRID = "hybrid"


class Deps(_Policy):
    """How dependencies of tasks are found."""

    @property
    def mode(self) -> DepsMode:
        """The mode."""
        return DepsMode(self._kind)

    @classmethod
    def infer_tensor_map_exact(cls) -> Deps:
        """Between tasks with the same tile."""
        return cls("infer_tensor_map_exact")

    @classmethod
    def infer_bytes_overlap(cls) -> Deps:
        """Between tasks whose bytes overlap."""
        return cls("infer_bytes_overlap")

    @classmethod
    def explicit(cls) -> Deps:
        """Only as the program says."""
        return cls("explicit")

    @classmethod
    def hybrid(cls, infer: DepsMode = DepsMode.INFER_TENSOR_MAP_EXACT, explicit: bool = True) -> Deps:
        """Both."""
        return cls("hybrid", infer=infer, explicit=explicit)


class ReadyPolicy(_Policy):
    """Which task that is ready runs first."""

    @classmethod
    def fifo(cls) -> ReadyPolicy:
        """The one that was ready first."""
        return cls("fifo")

    @classmethod
    def work_steal(cls) -> ReadyPolicy:
        """Idle workers take work."""
        return cls("work_steal")

    @classmethod
    def priority(cls, priority_fn: Callable[[Any], Any]) -> ReadyPolicy:
        """The one with the lowest priority number."""
        return cls("priority", priority_fn=priority_fn)


class StartPolicy(_Policy):
    """When the first task starts."""

    @classmethod
    def threshold(cls, n: int) -> StartPolicy:
        """When so many tasks are submitted."""
        return cls("threshold", n=n)

    @classmethod
    def after_orchestration(cls) -> StartPolicy:
        """When all are."""
        return cls("after_orchestration")


class TracePolicy(_Policy):
    """What a task graph records."""

    @classmethod
    def none(cls) -> TracePolicy:
        """Nothing."""
        return cls("none")

    @classmethod
    def cycles(cls, cost_fn: Optional[Callable[[Any], Any]] = None) -> TracePolicy:
        """The cycles of each task."""
        return cls("cycles", cost_fn=cost_fn)


class Pools(_Policy):
    """Which kinds of workers there are."""

    @classmethod
    def single(cls) -> Pools:
        """One kind."""
        return cls("single")

    @classmethod
    def by_exec_unit(cls) -> Pools:
        """Vector and cube units."""
        return cls("by_exec_unit")

    @classmethod
    def custom(cls, pool_fn: Callable[[Any], Any]) -> Pools:
        """As a function of the task says."""
        return cls("custom", pool_fn=pool_fn)


@dataclass(frozen=True)
class TaskGraphConfig:
    """How a task graph runs."""

    deps: Deps = field(default_factory=Deps.infer_tensor_map_exact)
    window: TaskWindow = field(default_factory=TaskWindow)
    pools: Pools = field(default_factory=Pools.single)
    ready: ReadyPolicy = field(default_factory=ReadyPolicy.fifo)
    start: StartPolicy = field(default_factory=StartPolicy.after_orchestration)
    trace: TracePolicy = field(default_factory=TracePolicy.none)

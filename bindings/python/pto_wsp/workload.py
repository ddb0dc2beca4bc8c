"""Workloads: trees of loops over axes, whose leaves are calls of kernels."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable, Optional

from . import tracing
from .enumeration import tasks_of
from .program import Program
from .schedule import (
    Deps,
    DispatchPolicy,
    Pools,
    ReadyPolicy,
    StartPolicy,
    TaskGraphConfig,
    TaskWindow,
    TimingPolicy,
    TracePolicy,
)
from .tree import Node, Task
from .tree import Schedule as Schedule  # Programs take it from here.
from .type_checker import TypeCheckContext, TypeChecker


class Workload(Node):
    """A node of the tree, and with its schedule a whole workload. Methods give changed copies."""

    def named(self, name: str) -> Workload:
        """With a name, which errors and traces show."""
        copy = self._copy()
        copy._name = name
        return copy

    def with_params(self, *params: tuple[str, Any]) -> Workload:
        """With parameters: names and axes."""
        copy = self._copy()
        copy._params = list(params)
        return copy

    def dispatch(self, policy: DispatchPolicy) -> Workload:
        """With a policy that chooses the worker of each task."""
        copy = self._copy()
        copy._dispatch_policy = copy._schedule.dispatch = policy
        return copy

    def streams(self, count: int) -> Workload:
        """With so many workers, where the dispatch says no number."""
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"streams({count!r}): at least 1 stream is needed.")
        copy = self._copy()
        copy._stream_count = copy._schedule.streams = count
        return copy

    def stream_by(self, fn: Callable[[Any], Any]) -> Workload:
        """With a function that says the stream of a task."""
        copy = self._copy()
        copy._stream_by_fn = copy._schedule.stream_by = fn
        return copy

    def timing(self, policy: TimingPolicy) -> Workload:
        """With a policy that says when tasks are issued."""
        copy = self._copy()
        copy._timing_policy = copy._schedule.timing = policy
        return copy

    def spatial_map(self, grid: Any) -> Workload:
        """With a grid of workers: an annotation."""
        copy = self._copy()
        copy._spatial_map = grid
        return copy

    def task_graph(
        self,
        deps: Optional[Deps] = None,
        window: Optional[TaskWindow] = None,
        pools: Optional[Pools] = None,
        ready: Optional[ReadyPolicy] = None,
        start: Optional[StartPolicy] = None,
        trace: Optional[TracePolicy] = None,
    ) -> Workload:
        """As a task graph. Streams are dropped."""
        given: dict[str, Any] = {"deps": deps, "window": window, "pools": pools, "ready": ready, "start": start, "trace": trace}
        copy = self._copy()
        copy._task_graph_config = TaskGraphConfig(**{name: one for name, one in given.items() if one is not None})
        copy._stream_count = copy._stream_by_fn = None
        copy._schedule.streams, copy._schedule.stream_by = 1, None
        return copy

    def layout(self, tensor: Any, *dist: Any) -> Workload:
        """Deprecated: a layout belongs to its tensor."""
        message = "Workload.layout is deprecated. Use Tensor.with_layout."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        copy = self._copy()
        copy._layouts.append((tensor, dist))
        return copy

    @property
    def type_errors(self) -> list[Any]:
        """What was found when kernels were called."""
        return self._type_errors

    def has_type_errors(self) -> bool:
        """Whether anything was found."""
        return bool(self._type_errors)

    def enumerate(self) -> list[Task]:
        """All tasks in program order, as far as they are known before a run."""
        return tasks_of(self)

    def compile(
        self, target: Optional[str] = None, axis_sizes: Optional[dict[str, int]] = None, device: Any = None
    ) -> Any:
        """The program: `cpu_sim` runs on this machine on the v9 clock, `a2a3sim` on a device (`pto_runtime.Device`; one for all
        where none is given), `ascend_npu` is C++ source. No target: what `PTO_WSP_TARGET` says, else `cpu_sim`."""
        return Program(self, target, axis_sizes, device)

    def __repr__(self) -> str:
        return f"Workload({self._kind!r})"


def empty() -> Workload:
    """A workload that does nothing."""
    return Workload("empty")


def group(nodes: list[Workload], kind: str) -> Workload:
    """One node for several: `combine` or `sequential`."""
    if not nodes:
        return empty()
    return nodes[0] if len(nodes) == 1 else Workload(kind, workloads=list(nodes))


def workload(fn: Optional[Callable[..., Any]] = None, *, type_check: bool = True, fail_on_type_error: bool = False) -> Any:
    """Makes a function that builds a workload: a call gives its tree."""
    if fn is None:
        return functools.partial(workload, type_check=type_check, fail_on_type_error=fail_on_type_error)

    @functools.wraps(fn)
    def build(*args: Any, **kwargs: Any) -> Workload:
        return _build(fn, args, kwargs, (type_check, fail_on_type_error))

    return build


def _build(fn: Callable[..., Any], args: tuple, kwargs: dict, checks: tuple[bool, bool]) -> Workload:
    type_check, fail_on_type_error = checks
    checker = TypeChecker(TypeCheckContext(workload_name=fn.__name__)) if type_check else None
    building = tracing.Building(checker, Workload)
    tracing.begin(building)
    try:
        result = fn(*args, **kwargs)
    finally:
        tracing.end()
    if len(building.blocks) != 1:
        raise RuntimeError(f"Workload {fn.__name__}: a loop of P was left by break or return. Its body runs once: let it end.")
    if isinstance(result, Workload) and not any(result is node for node in building.blocks[0]):
        building.blocks[0].append(result)
    root = group(building.blocks[0], "combine")
    root = root._copy() if root._name is not None else root
    root._name = root._name or fn.__name__
    errors = checker.get_errors() if checker is not None else []
    root._type_errors = errors
    if errors and fail_on_type_error:
        listed = "\n".join(f"  {error}" for error in errors)
        raise TypeError(f"Type errors in workload {fn.__name__}:\n{listed}")
    outer = tracing.current()
    return root if outer is None else outer.add(root)

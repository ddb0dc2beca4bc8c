"""The schedule of a workload as text, or why the v9 clock does not do it."""

from __future__ import annotations

from typing import Any, Optional

from .errors import ScheduleError
from .scalar_expr import TaskView, as_expr
from .schedule import TaskGraphConfig, TaskWindow


def schedule_text(root: Any, names: Any) -> str:
    """The line of the schedule."""
    _check_timing(root._timing_policy)
    config = root._task_graph_config or TaskGraphConfig()
    _check_config(config)
    window = config.window
    dispatch, workers = _dispatch(root, names)
    return f"schedule {dispatch} workers {workers} window {window.size} {window.mode.value}"


def _key(fn: Any, names: Any, what: str) -> str:
    try:
        return names.text(as_expr(fn(TaskView())), is_key=True)
    except (TypeError, LookupError, AttributeError) as error:
        raise ScheduleError(f"The key of {what} is not possible: {error}") from error


def _dispatch(root: Any, names: Any) -> tuple[str, int]:
    """The dispatch, and how many workers there are: those that it names, else the streams, else one."""
    policy, streams = root._dispatch_policy, root._stream_count or 1
    if root._stream_by_fn is not None:
        if policy is not None:
            raise ScheduleError("The workload has a dispatch and stream_by, and both choose the worker. Drop one.")
        return f"by ({_key(root._stream_by_fn, names, 'stream_by')})", streams
    if policy is None:
        return "round_robin", streams
    options = policy._kwargs
    workers = options.get("num_aicpus", 0) or streams
    if not isinstance(workers, int) or workers < 1:
        raise ScheduleError(f"A dispatch to {workers!r} workers is not possible. It needs at least 1.")
    if policy._kind in ("round_robin", "work_steal"):
        return policy._kind, workers
    fn = options.get("key_fn", options.get("fn"))
    kind = "by" if policy._kind == "dispatch_by" else policy._kind
    return f"{kind} ({_key(fn, names, policy._kind)})", workers


def _refused(what: str) -> ScheduleError:
    return ScheduleError(f"{what} has no meaning on the v9 clock, on which cpu_sim runs tasks in program order. Leave it out.")


def _check_timing(policy: Optional[Any]) -> None:
    if policy is not None and policy._kind != "immediate":
        raise _refused(f"TimingPolicy.{policy._kind}")


def _check_config(config: TaskGraphConfig) -> None:
    window: TaskWindow = config.window
    if window.unit != "tasks":
        raise _refused(f"A window in {window.unit}")
    # Every kind of dependencies holds in program order.
    for policy, allowed in (
        (config.pools, ("single",)),
        (config.ready, ("fifo", "work_steal")),
        (config.start, ("after_orchestration",)),
    ):
        if policy._kind not in allowed:
            raise _refused(f"{type(policy).__name__}.{policy._kind}")
    if config.trace._kwargs.get("cost_fn") is not None:
        raise _refused("A cost function of TracePolicy.cycles")

"""The schedule of a workload as text, or why the v9 clock, or a device, does not do it."""

from __future__ import annotations

from typing import Any, Optional

from .errors import ScheduleError
from .scalar_expr import TaskView, as_expr
from .schedule import TaskGraphConfig, TaskWindow


def schedule_text(root: Any, names: Any, target: str = "cpu_sim") -> str:
    """The line of the schedule."""
    if target == "a2a3sim":
        return _device_text(root, names)
    _check_timing(root._timing_policy)
    config = root._task_graph_config or TaskGraphConfig()
    _check_config(config)
    dispatch, workers = _dispatch(root, names)
    return _line(dispatch, workers, config.window)


def _line(dispatch: str, workers: int, window: TaskWindow) -> str:
    return f"schedule {dispatch} workers {workers} window {window.size} {window.mode.value}"


def _device_text(root: Any, names: Any) -> str:
    """On a device a worker is a lane, which has its share of the cores, and a stream is in order."""
    config = root._task_graph_config or TaskGraphConfig()
    _check_window(config.window, _not_there)
    for policy, allowed in ((config.pools, ("single", "by_exec_unit")), (config.ready, ("fifo", "work_steal", "priority"))):
        if policy._kind not in allowed:
            raise _not_there(f"{type(policy).__name__}.{policy._kind}", "the unit of a kernel decides which cores it runs on")
    if config.trace._kwargs.get("cost_fn") is not None:
        raise _not_there("A cost function of TracePolicy.cycles", "it measures. Call enable_tracing")
    timing = root._timing_policy._kind if root._timing_policy is not None else "immediate"
    if timing == "rate_limit":
        raise _not_there("TimingPolicy.rate_limit", "a program on the AICPU has no clock")
    dispatch, workers = _interleaved(root) if timing == "interleaved" else _device_dispatch(root, names)
    line = _line(dispatch, workers, config.window)
    if config.ready._kind == "priority":
        line += f" priority ({_key(config.ready._kwargs['priority_fn'], names, 'the priority')})"
    if timing == "batched":
        line += f" batch {_count(root._timing_policy._kwargs['n'], 'a batch')}"
    if config.start._kind == "threshold":
        line += f" start {_count(config.start._kwargs['n'], 'a start threshold')}"
    return line


def _device_dispatch(root: Any, names: Any) -> tuple[str, int]:
    dispatch, workers = _dispatch(root, names)
    if root._stream_by_fn is not None:
        return dispatch.replace("by (", "stream (", 1), workers
    return ("streams", workers) if root._dispatch_policy is None and workers > 1 else (dispatch, workers)


def _interleaved(root: Any) -> tuple[str, int]:
    if root._dispatch_policy is not None or root._stream_by_fn is not None or (root._stream_count or 1) > 1:
        raise ScheduleError("TimingPolicy.interleaved chooses the stream of a task, and so do dispatch, streams and stream_by. Drop one.")
    return "streams", _count(root._timing_policy._kwargs["streams"], "an interleaving", at_least=1)


def _count(value: Any, what: str, at_least: int = 0) -> int:
    if not hasattr(value, "__index__") or value.__index__() < at_least:
        raise ScheduleError(f"{value!r} is no number of tasks or streams for {what}. Give an integer from {at_least} on.")
    return value.__index__()


def _not_there(what: str, why: str) -> ScheduleError:
    return ScheduleError(f"{what} cannot be kept on a device: {why}. Leave it out.")


def _check_window(window: TaskWindow, refused: Any) -> None:
    if window.unit != "tasks":
        raise refused(f"A window in {window.unit}", "its ring counts tasks")


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

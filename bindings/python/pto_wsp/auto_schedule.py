"""A search for the schedule with the fewest cycles on the v9 clock. Each trial runs the workload on copies of its tensors."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass, field
from typing import Any, Optional, Sequence

from .errors import PtoError
from .schedule import DispatchPolicy, TimingPolicy

DISPATCHES = ("round_robin", "affinity", "hash", "work_steal")


@dataclass(frozen=True)
class ScheduleConfig:
    """A schedule: streams, and a dispatch to so many workers. Keys are the first axis of a task."""

    streams: int = 1
    dispatch: str = "round_robin"
    dispatch_param: int = 4
    timing: str = "immediate"
    timing_param: Optional[int] = None

    def to_dict(self) -> dict[str, Any]:
        """The fields."""
        return asdict(self)

    def applied(self, workload: Any) -> Any:
        """A workload with this schedule."""
        return workload.streams(self.streams).dispatch(self._policy()).timing(self._timing())

    def _policy(self) -> DispatchPolicy:
        if self.dispatch == "round_robin":
            return DispatchPolicy.round_robin(self.dispatch_param)
        if self.dispatch == "work_steal":
            return DispatchPolicy.work_steal()
        make = {"affinity": DispatchPolicy.affinity, "hash": DispatchPolicy.hash}[self.dispatch]
        return make(lambda t: t.params[0], self.dispatch_param)

    def _timing(self) -> TimingPolicy:
        if self.timing == "immediate":
            return TimingPolicy.immediate
        return TimingPolicy(self.timing, n=self.timing_param)


@dataclass
class ExplorationResult:
    """What a trial gave."""

    config: ScheduleConfig
    execute_time_ms: float = 0.0
    compile_time_ms: float = 0.0
    task_count: int = 0
    error: Optional[str] = None
    total_cycles: int = 0

    @property
    def total_time_ms(self) -> float:
        """Of this machine, for compiling and running."""
        return self.compile_time_ms + self.execute_time_ms

    @property
    def success(self) -> bool:
        """Whether it ran."""
        return self.error is None


@dataclass
class ExplorationSummary:
    """All trials, and the best one."""

    results: list[ExplorationResult] = field(default_factory=list)
    best_config: Optional[ScheduleConfig] = None
    best_cycles: int = 0
    #: Of one worker.
    baseline_cycles: int = 0

    @property
    def speedup(self) -> float:
        """Cycles of one worker for each of the best schedule."""
        return self.baseline_cycles / self.best_cycles if self.best_cycles else 1.0

    def top_configs(self, n: int = 5) -> list[tuple[ScheduleConfig, int]]:
        """The best schedules, with their cycles."""
        ranked = sorted((one for one in self.results if one.success), key=_rank)
        return [(one.config, one.total_cycles) for one in ranked[:n]]

    def print_summary(self) -> None:
        """Prints the best schedules."""
        print(f"{len(self.results)} schedules, one worker takes {self.baseline_cycles} cycles")
        for config, cycles in self.top_configs():
            print(f"{cycles:>12} cycles: streams {config.streams}, {config.dispatch}({config.dispatch_param})")


def _rank(result: ExplorationResult) -> tuple[int, int, int]:
    """Fewer cycles first, and of equal ones fewer workers."""
    return (result.total_cycles, result.config.dispatch_param, result.config.streams)


class SearchSpace:
    """The schedules that are tried."""

    def __init__(self) -> None:
        self._streams: list[int] = [1]
        self._dispatches: list[tuple[str, int]] = []
        self._timings: list[tuple[str, Optional[int]]] = []

    def add_streams(self, values: Sequence[int]) -> SearchSpace:
        """These numbers of streams."""
        self._streams = list(values)
        return self

    def add_dispatch(self, policies: Sequence[str], params: Optional[Sequence[int]] = None) -> SearchSpace:
        """These policies, each with these numbers of workers."""
        unknown = [policy for policy in policies if policy not in DISPATCHES]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no dispatch. Use {', '.join(DISPATCHES)}.")
        self._dispatches += list(itertools.product(policies, params or [4]))
        return self

    def add_timing(self, policies: Sequence[str], params: Optional[Sequence[Optional[int]]] = None) -> SearchSpace:
        """These timing policies."""
        self._timings += list(itertools.product(policies, params or [None]))
        return self

    def enumerate_configs(self) -> list[ScheduleConfig]:
        """All schedules."""
        dispatches = self._dispatches or [("round_robin", 4)]
        timings = self._timings or [("immediate", None)]
        product = itertools.product(self._streams, dispatches, timings)
        return [ScheduleConfig(streams, *dispatch, *timing) for streams, dispatch, timing in product]

    def size(self) -> int:
        """How many."""
        return len(self.enumerate_configs())


class AutoScheduler:
    """Tries schedules of a workload."""

    def __init__(self, workload: Any) -> None:
        self.workload = workload

    def _trial(self, config: ScheduleConfig) -> ExplorationResult:
        try:
            stats = config.applied(self.workload).compile().measure()
        except PtoError as error:
            return ExplorationResult(config, error=str(error))
        return ExplorationResult(
            config, stats.execute_time_ms, stats.compile_time_ms, stats.task_count, None, stats.total_cycles
        )

    def explore(
        self, space: SearchSpace, trials: int = 1, warmup: int = 0, verbose: bool = False
    ) -> tuple[ScheduleConfig, ExplorationSummary]:
        """The best schedule, and all trials. Cycles are the same in each trial: one is enough."""
        baseline = self._trial(ScheduleConfig(1, "round_robin", 1))
        summary = ExplorationSummary(baseline_cycles=baseline.total_cycles)
        summary.results = [self._trial(config) for config in space.enumerate_configs()]
        best = min((one for one in summary.results if one.success), key=_rank, default=baseline)
        if not best.success:
            raise PtoError(f"No schedule ran. The first error: {best.error}")
        summary.best_config, summary.best_cycles = best.config, best.total_cycles
        if verbose:
            summary.print_summary()
        return best.config, summary

    def find_best(self, max_streams: int = 8, trials: int = 1) -> ScheduleConfig:
        """The best dispatch in turn to 1, 2, 4, .. workers."""
        workers = [1 << power for power in range(max_streams.bit_length()) if 1 << power <= max_streams]
        return self.explore(SearchSpace().add_dispatch(["round_robin"], workers), trials)[0]


def auto_schedule(workload: Any, verbose: bool = False) -> Any:
    """The workload with the best schedule that was found."""
    space = SearchSpace().add_dispatch(["round_robin", "affinity"], [1, 2, 4, 8])
    return AutoScheduler(workload).explore(space, verbose=verbose)[0].applied(workload)

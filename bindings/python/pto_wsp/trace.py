"""The record of a run: its tasks, with their times on the v9 clock, or on that of the device that ran them."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


#: The kind of core that every lane is shown as.
_AIV = 1
_MOST_LANES = 128
_TASK_COLUMNS = [
    "func_id",
    "kind",
    "core",
    "scheduler",
    "added",
    "published",
    "ready",
    "dispatched",
    "started",
    "finished",
    "completed",
]


class TraceLevel(Enum):
    """What is recorded."""

    NONE = 0
    SUMMARY = 1
    TIMING = 2
    FULL = 3


@dataclass(frozen=True)
class TraceEvent:
    """A task: kernel, axes, lane (a worker, or a process of a pipeline), begin and end in cycles. Of a device: the lane is a core,
    and the times are nanoseconds; a device knows no axes."""

    kernel: str
    axes: tuple[int, ...]
    lane: int
    start: int
    end: int

    @property
    def cycles(self) -> int:
        """How long it ran."""
        return self.end - self.start


@dataclass
class ExecutionTrace:
    """The tasks of the last run, in program order."""

    level: TraceLevel = TraceLevel.NONE
    events: list[TraceEvent] = field(default_factory=list)
    total_cycles: int = 0
    #: By kernel: how many tasks, and their cycles.
    by_kernel: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: The timeline of a device, a `pto_runtime.Trace`; None: the run was on the v9 clock.
    timeline: Any = None

    def record(self, events: list[tuple], total_cycles: int) -> None:
        """Takes the tasks of a run, as far as the level asks for them."""
        self.clear()
        self.total_cycles = total_cycles
        for kernel, axes, lane, start, end in events:
            tasks, cycles = self.by_kernel.get(kernel, (0, 0))
            self.by_kernel[kernel] = (tasks + 1, cycles + end - start)
            if self.level.value >= TraceLevel.TIMING.value:
                self.events.append(TraceEvent(kernel, tuple(axes), lane, start, end))

    def record_device(self, timeline: Any, total_cycles: int) -> None:
        """Takes the timeline of a device."""
        lanes: dict[str, int] = {}
        rows = []
        for _, kernel, core, start, end in timeline.kernels:
            if core is not None and start is not None and end is not None:
                lane = lanes.setdefault(core, len(lanes))
                rows.append((kernel, (), lane, round(1e9 * start), round(1e9 * end)))
        self.record(rows, total_cycles)
        self.timeline = timeline

    def beside_another(self) -> int:
        """How many tasks began before an earlier one had ended."""
        count, last_end = 0, 0
        for event in sorted(self.events, key=lambda event: event.start):
            count += event.start < last_end
            last_end = max(last_end, event.end)
        return count

    def clear(self) -> None:
        """Forgets them."""
        self.events, self.by_kernel, self.total_cycles, self.timeline = [], {}, 0, None

    def summary(self) -> dict[str, Any]:
        """Cycles, tasks, and both by kernel."""
        kernels = {name: {"tasks": tasks, "cycles": cycles} for name, (tasks, cycles) in self.by_kernel.items()}
        tasks = sum(tasks for tasks, _ in self.by_kernel.values())
        return {"total_cycles": self.total_cycles, "tasks": tasks, "kernels": kernels}

    def to_chrome_trace(self) -> dict[str, Any]:
        """The timeline for chrome://tracing and Perfetto; one cycle of the v9 clock is shown as a microsecond."""
        if self.timeline is not None:
            return _saved(self.timeline)
        events = [
            {
                "name": event.kernel,
                "ph": "X",
                "ts": event.start,
                "dur": event.cycles,
                "pid": 0,
                "tid": event.lane,
                "args": {"axes": list(event.axes)},
            }
            for event in self.events
        ]
        trace: dict[str, Any] = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"clock": "v9 cycles"}}
        # Its pictures have room for so many lanes.
        if all(event.lane < _MOST_LANES for event in self.events):
            trace["pto"] = self._timeline()
        return trace

    def _timeline(self) -> dict[str, Any]:
        """What `pto view` reads. A cycle is shown as a nanosecond, and a lane as a core."""
        kernels = {name: number for number, name in enumerate(self.by_kernel)}
        lanes = max((event.lane for event in self.events), default=0) + 1
        known = [[kernels[e.kernel], _AIV, e.lane, 0, -1, -1, -1, e.start, e.start, e.end, e.end] for e in self.events]
        return {
            "schema": "pto-timeline",
            "version": 3,
            "run": {"clock": "v9 cycles, shown as nanoseconds", "program": "pto_wsp"},
            "end_ns": self.total_cycles,
            "instances": 1,
            "cores": ["aiv"] * lanes,
            "kernels": {str(number): name for name, number in kernels.items()},
            "lanes": [{"lane": f"core {lane}", "recorded": 0, "dropped": 0} for lane in range(lanes)],
            "task_columns": _TASK_COLUMNS,
            "tasks": known,
            "part_columns": ["task", "block", "lane", "run"],
            "parts": [],
            "edges": [],
        }

    def save(self, path: str) -> None:
        """Writes the timeline to a file, for `pto view`, Perfetto and chrome://tracing."""
        if self.timeline is not None:
            self.timeline.save(path)
            return
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_chrome_trace(), file)


def _saved(timeline: Any) -> dict[str, Any]:
    """What a device's timeline writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "timeline.json")
        timeline.save(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

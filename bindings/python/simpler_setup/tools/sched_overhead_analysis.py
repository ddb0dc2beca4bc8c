"""Where a run's time went that is not in kernels: a report of `chip_swimlane_records.json` (level 3 or 4) and `deps.json`.

python -m simpler_setup.tools.sched_overhead_analysis --chip-swimlane-records-json outputs/CASE/chip_swimlane_records.json

A kind of core is held up by the scheduler where a core of that kind is idle while a task of that kind is ready and has no core yet. A task
is ready when the kernels of its producers have ended.
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from .swimlane_converter import read_perf_data

_MASK = (1 << 64) - 1


def edges_of(path):
    """Each pair of producer and consumer once."""
    found = {(int(edge["pred"]) & _MASK, int(edge["succ"]) & _MASK) for edge in json.loads(Path(path).read_text())["edges"]}
    return sorted(found)


class Timeline:
    """The calls of kernels by task, with what each task waited for."""

    def __init__(self, data, edges):
        self.data, self.calls = data, data["tasks"]
        if not self.calls:
            raise ValueError("the records have no calls of kernels")
        self.begin = min(call["start_time_us"] for call in self.calls)
        self.end = max(call["end_time_us"] for call in self.calls)
        self.by_task = defaultdict(list)
        for call in self.calls:
            self.by_task[call["task_id"]].append(call)
        self.producers, self.consumers = defaultdict(list), defaultdict(list)
        for producer, consumer in edges:
            self.producers[consumer].append(producer)
            self.consumers[producer].append(consumer)

    @property
    def makespan(self):
        """From the first start to the last end."""
        return max(self.end - self.begin, 1e-9)

    def ended(self, task):
        """When the last kernel of a task ended; None: no core ran it."""
        calls = self.by_task.get(task)
        return max(call["end_time_us"] for call in calls) if calls else None

    def ready(self, task):
        """When its last producer ended; its own doorbell where no producer ran on a core."""
        ends = [end for producer in self.producers[task] if (end := self.ended(producer)) is not None]
        first = min(call["dispatch_time_us"] for call in self.by_task[task])
        return min(max(ends), first) if ends else first

    def held_up(self, kinds):
        """The share of the makespan in which every one of the kinds is held up, and that in which all kinds with ready work are."""
        cores = {kind: len({call["core_id"] for call in self.calls if call["core_type"] == kind}) for kind in kinds}
        changes = []
        for task, calls in self.by_task.items():
            ready = self.ready(task)
            for kind in {call["core_type"] for call in calls}:
                given = min(call["dispatch_time_us"] for call in calls if call["core_type"] == kind)
                changes += [(ready, kind, 0, 1), (max(given, ready), kind, 0, -1)]
            for call in calls:
                changes += [(call["start_time_us"], call["core_type"], 1, 1), (call["end_time_us"], call["core_type"], 1, -1)]
        changes.sort(key=lambda change: change[0])
        state = {kind: [0, 0] for kind in kinds}
        every, working, single, before = 0.0, 0.0, dict.fromkeys(kinds, 0.0), self.begin
        for at, kind, which, by in changes:
            span = min(at, self.end) - before
            if span > 0:
                held = {one: ready > 0 and running < cores[one] for one, (ready, running) in state.items()}
                for one in kinds:
                    single[one] += span * held[one]
                every += span * all(held.values())
                with_work = [held[one] for one in kinds if state[one][0] > 0]
                working += span * (bool(with_work) and all(with_work))
                before = min(at, self.end)
            state[kind][which] += by
        return {one: spent / self.makespan for one, spent in single.items()}, every / self.makespan, working / self.makespan

    def switches(self):
        """For each core the time between kernels of which the next one had been given already."""
        found = defaultdict(float)
        by_core = defaultdict(list)
        for call in self.calls:
            by_core[call["core_id"]].append(call)
        for core, calls in by_core.items():
            calls.sort(key=lambda call: call["start_time_us"])
            found[core] = sum(
                max(after["start_time_us"] - call["end_time_us"], 0.0)
                for call, after in zip(calls, calls[1:], strict=False)
                if after["dispatch_time_us"] < call["end_time_us"]
            )
        return found

    def chain(self):
        """From the task that ended last, each time to the producer that ended last: time in kernels and time between them."""
        task = max(self.by_task, key=self.ended)
        kernels, between = 0.0, 0.0
        while True:
            start = min(call["start_time_us"] for call in self.by_task[task])
            kernels += self.ended(task) - start
            ran = [producer for producer in self.producers[task] if producer in self.by_task]
            if not ran:
                return kernels, between + start - self.begin
            before = max(ran, key=self.ended)
            between += max(start - self.ended(before), 0.0)
            task = before


def _spread(values):
    if not values:
        return "none"
    return f"least {min(values):.2f}, median {statistics.median(values):.2f}, most {max(values):.2f} us"


def _degrees(line, threads, ran):
    """Edges of the tasks that a known scheduler completed, and the most of one task."""
    counts = [len(line[task]) for task in ran if threads(task)]
    return f"total edges={sum(counts)}, max_degree={max(counts, default=0)}"


def report(timeline):
    """The lines of the report."""
    data, calls = timeline.data, timeline.calls
    kinds = sorted({call["core_type"] for call in calls})
    single, every, working = timeline.held_up(kinds)
    yield f"{len(calls)} calls of kernels of {len(timeline.by_task)} tasks in {timeline.makespan:.2f} us"
    yield "\nPart 1: Held up by the scheduler  (an idle core, and a ready task without a core; shares of the makespan)"
    for kind in kinds:
        yield f"  {kind:<4} {single[kind]:7.1%}"
    yield f"  every kind at once {every:.1%}, every kind with ready work {working:.1%}"
    yield "\nPart 2: Switches  (a core between two kernels, of which it had the second one already; by core)"
    yield f"  {_spread(list(timeline.switches().values()))}"
    yield "\nPart 3: From doorbell to start"
    yield f"  {_spread([call['start_time_us'] - call['dispatch_time_us'] for call in calls if call['finish_time_us']])}"
    yield "\nPart 4: From the kernel's end until its scheduler saw it"
    yield f"  {_spread([call['finish_time_us'] - call['end_time_us'] for call in calls if call['finish_time_us']])}"
    yield "\nPart 5: Schedulers"
    yield from _schedulers(timeline)
    kernels, between = timeline.chain()
    yield "\nPart 6: The chain that the last task waited for"
    yield f"  in kernels {kernels:.2f} us ({kernels / timeline.makespan:.1%}), before and between them {between:.2f} us"
    threads = [thread for thread in data["aicpu_scheduler_phases"] if thread]
    rounds = sum(max(record["loop_iter"] for record in thread) for thread in threads)
    yield f"  Avg scheduler loop iteration: {1000 * timeline.makespan * len(threads) / max(rounds, 1):.1f} ns"


def _schedulers(timeline):
    data = timeline.data
    for number, thread in enumerate(data["aicpu_scheduler_phases"]):
        spent, count = defaultdict(float), defaultdict(int)
        for record in thread:
            spent[record["phase"]] += record["end_time_us"] - record["start_time_us"]
            count[record["phase"]] += record["tasks_processed"]
        if thread:
            yield f"  Sched_{number}: " + ", ".join(f"{phase} {count[phase]} in {spent[phase]:.2f} us" for phase in sorted(spent))
    records = [record for thread in data["aicpu_scheduler_phases"] for record in thread]
    hit, miss = (sum(record.get(name, 0) for record in records) for name in ("pop_hit", "pop_miss"))
    yield f"  Pop: hit={hit}, miss={miss}  (looks into empty queues are not counted by the simulator)"
    threads = data["core_to_thread"]
    core = {task: calls[0]["core_id"] for task, calls in timeline.by_task.items()}
    known = lambda task: core[task] < len(threads) and threads[core[task]] >= 0  # noqa: E731
    yield f"  Fanout (consumers told): {_degrees(timeline.consumers, known, core)}"
    yield f"  Fanin  (producers awaited): {_degrees(timeline.producers, known, core)}"


def main(given=None):
    """0: the report is written; 2: the files are not those of such a run."""
    parser = argparse.ArgumentParser(
        description="Says where a run's time went that is not in kernels.",
        epilog="example: python -m simpler_setup.tools.sched_overhead_analysis --chip-swimlane-records-json outputs/CASE/chip_swimlane_records.json",
    )
    parser.add_argument("--chip-swimlane-records-json", required=True, metavar="FILE", help="records of level 3 or 4")
    parser.add_argument("--deps-json", metavar="FILE", help="the edges (default: deps.json beside the records)")
    values = parser.parse_args(given)
    records = Path(values.chip_swimlane_records_json)
    deps = Path(values.deps_json) if values.deps_json else records.with_name("deps.json")
    for path, option in ((records, "--enable-chip-swimlane"), (deps, "--enable-dep-gen")):
        if not path.is_file():
            print(f"{path} is not there: run the case with {option}", file=sys.stderr)
            return 2
    data = read_perf_data(records)
    if data["chip_swimlane_level"] < 3:
        print(f"{records} has level {data['chip_swimlane_level']}: run the case with --enable-chip-swimlane=4", file=sys.stderr)
        return 2
    print("\n".join(report(Timeline(data, edges_of(deps)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())

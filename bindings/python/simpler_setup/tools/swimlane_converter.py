"""`chip_swimlane_records.json` for Perfetto, and as Python reads it.

python -m simpler_setup.tools.swimlane_converter outputs/CASE/chip_swimlane_records.json -o trace.json
"""

import argparse
import json
import sys
from pathlib import Path


def _func_ids(path):
    """The kernels of each task, from the deps.json next to the records, if it is there."""
    deps = Path(path).with_name("deps.json")
    if not deps.is_file():
        return {}
    return {int(task["task_id"]): task["kernel_ids"] for task in json.loads(deps.read_text())["tasks"]}


def _func_id(kernels, core_type):
    if kernels is None:
        return -1
    return kernels[0] if core_type == "aic" else next((one for one in kernels[1:] if one >= 0), -1)


def _phases(threads, scale):
    """The records of each thread with times in microseconds and the kind of phase under the name that readers know."""
    def row(record):
        rest = {key: value for key, value in record.items() if key not in ("kind", "start_cycles", "end_cycles")}
        times = {"start_time_us": record["start_cycles"] * scale, "end_time_us": record["end_cycles"] * scale}
        return {"phase": record.get("kind", "orch_submit"), **times, **rest}

    return [[row(record) for record in thread] for thread in threads]


def read_perf_data(path):
    """The records with times in microseconds: `tasks`, `core_to_thread`, phases where there are any."""
    data = json.loads(Path(path).read_text())
    scale, kinds = 1e6 / data["metadata"]["clock_freq_hz"], data["metadata"]["core_types"]
    kernels = _func_ids(path)
    seen = {(core, token): times for core, token, *times in data["aicpu_tasks"]}
    tasks = []
    for core, task, token, start, end in data["aicore_tasks"]:
        dispatch, finish = seen.get((core, token), (0, 0))
        tasks.append({
            "task_id": task,
            "ring_id": task >> 32 & 0xFF,
            "func_id": _func_id(kernels.get(task), kinds[core]),
            "core_id": core,
            "core_type": kinds[core],
            "start_time_us": start * scale,
            "end_time_us": end * scale,
            "duration_us": (end - start) * scale,
            # The simulator calls a kernel as soon as its core has the task.
            "receive_time_us": start * scale,
            "local_setup_us": 0.0,
            "dispatch_time_us": dispatch * scale,
            "finish_time_us": finish * scale,
        })  # fmt: skip
    return {
        "chip_swimlane_level": data["chip_swimlane_level"],
        "tasks": sorted(tasks, key=lambda task: task["start_time_us"]),
        "core_to_thread": data["metadata"].get("core_to_thread", []),
        "aicpu_scheduler_phases": _phases(data.get("aicpu_scheduler_phases", []), scale),
        "aicpu_orchestrator_phases": _phases(data.get("aicpu_orchestrator_phases", []), scale),
    }


def _named(pid, name, threads):
    """The names of a process and of its threads."""
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    for number, thread in threads:
        yield {"ph": "M", "pid": pid, "tid": number, "name": "thread_name", "args": {"name": thread}}


def _slice(pid, tid, name, start, end, **more):
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": start, "dur": max(end - start, 0.0), "args": more}


# A phase within another phase has a lane of its own.
_INNER = ("resolve", "drain_prepare", "drain_publish", "dummy_task", "predicated_skip")


def _aicpu_events(data):
    """The builder, the schedulers with two lanes each, and the tasks as schedulers saw them."""
    submissions = [record for thread in data["aicpu_orchestrator_phases"] for record in thread]
    if submissions:
        yield from _named(1, "Orchestrator", [(0, "submissions")])
    for record in submissions:
        yield _slice(1, 0, f"submit {record['submit_idx']}", record["start_time_us"], record["end_time_us"], task_id=record["task_id"])
    busy = [(number, thread) for number, thread in enumerate(data["aicpu_scheduler_phases"]) if thread]
    if busy:
        yield from _named(2, "AICPU Scheduler", [(2 * number + inner, f"Sched_{number}") for number, _ in busy for inner in (0, 1)])
    for number, thread in busy:
        for record in thread:
            lane = 2 * number + (record["phase"] in _INNER)
            yield _slice(2, lane, record["phase"], record["start_time_us"], record["end_time_us"], tasks=record["tasks_processed"])


def perfetto_of(data, names):
    """The records as events of Perfetto's JSON: a lane for each core, and the AICPU's side from level 2 on."""
    cores = sorted({(task["core_id"], task["core_type"]) for task in data["tasks"]})
    labels = [(core, f"{kind} {core}") for core, kind in cores]
    events = list(_aicpu_events(data))
    events += _named(4, "Worker View", labels)
    if data["chip_swimlane_level"] >= 2:
        events += _named(3, "Scheduler View", labels)
    for task in data["tasks"]:
        label = names.get(str(task["func_id"]), f"func {task['func_id']}")
        name = f"{label} r{task['ring_id']}t{task['task_id'] & 0xFFFFFFFF}"
        events.append(_slice(4, task["core_id"], name, task["start_time_us"], task["end_time_us"]))
        if task["finish_time_us"]:
            events.append(_slice(3, task["core_id"], name, task["dispatch_time_us"], task["finish_time_us"]))
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def main(given=None):
    """0: it is written."""
    parser = argparse.ArgumentParser(
        description="Makes a timeline for Perfetto.",
        epilog="example: python -m simpler_setup.tools.swimlane_converter outputs/CASE/chip_swimlane_records.json",
    )
    parser.add_argument("records", help="a chip_swimlane_records.json")
    parser.add_argument("-o", "--output", help="the file to write (default merged_swimlane.json beside it)")
    parser.add_argument("--func-names", help="a JSON file with the names of func ids")
    values = parser.parse_args(given)
    names = json.loads(Path(values.func_names).read_text()) if values.func_names else {}
    target = Path(values.output) if values.output else Path(values.records).with_name("merged_swimlane.json")
    data = read_perf_data(values.records)
    target.write_text(json.dumps(perfetto_of(data, names.get("callable_id_to_name", names))))
    print(f"{len(data['tasks'])} calls of kernels: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`chip_swimlane_records.json` for Perfetto, and as Python reads it.

python -m simpler_setup.tools.swimlane_converter outputs/CASE/chip_swimlane_records.json -o trace.json
"""

import argparse
import json
import sys
from pathlib import Path


def _func_ids(path):
    """The kernels of each task, from the deps.json beside the records, if it is there."""
    beside = Path(path).with_name("deps.json")
    if not beside.is_file():
        return {}
    return {int(task["task_id"]): task["kernel_ids"] for task in json.loads(beside.read_text())["tasks"]}


def _func_id(kernels, core_type):
    if kernels is None:
        return -1
    return kernels[0] if core_type == "aic" else next((one for one in kernels[1:] if one >= 0), -1)


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
        "aicpu_scheduler_phases": data.get("aicpu_scheduler_phases", []),
        "aicpu_orchestrator_phases": data.get("aicpu_orchestrator_phases", []),
    }


def perfetto_of(data, names):
    """The tasks as events of Perfetto's JSON: a lane for each core."""
    cores = sorted({(task["core_id"], task["core_type"]) for task in data["tasks"]})
    events = [{"ph": "M", "pid": 1, "tid": core, "name": "thread_name", "args": {"name": f"{kind} {core}"}} for core, kind in cores]
    for task in data["tasks"]:
        label = names.get(str(task["func_id"]), f"func {task['func_id']}")
        name = f"{label} r{task['ring_id']}t{task['task_id'] & 0xFFFFFFFF}"
        times = {"ts": task["start_time_us"], "dur": task["duration_us"]}
        events.append({"ph": "X", "pid": 1, "tid": task["core_id"], "name": name, **times})
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

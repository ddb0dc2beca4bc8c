"""What a run from Python costs beyond the same run from Rust: one empty task, both in turn, a thousand times.

`--rounds N` for another number. Both are in this process and of this build, so that a machine that is used by others slows
both; the figure is the median of the differences of pairs.
"""

import argparse
import statistics
import time

from pto_runtime import Device, Graph


def measured(rounds):
    """Seconds of each run: (from Python, from Rust, makespan)."""
    with Device(aic=2, aiv=4, gm_bytes=64 << 20, os_threads=1) as device:
        device.register_library()
        empty = next(func_id for func_id, name, _ in device.kernels if name == "empty_aiv")
        graph = Graph()
        graph.add_task(empty, "aiv", [])
        options = {"aicpu_instances": 2}
        device.run(graph, **options)
        rows = []
        for _ in range(rounds):
            start = time.perf_counter()
            report = device.run(graph, **options)
            whole = time.perf_counter() - start
            rows.append((whole, device._run_from_rust(graph, **options), report.makespan))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    rows = measured(parser.parse_args().rounds)
    python, rust, makespan = (1e6 * statistics.median(column) for column in zip(*rows))
    beyond = 1e6 * statistics.median(python - rust for python, rust, _ in rows)
    print(f"a run from Python: {python:.0f} us; from Rust: {rust:.0f} us; its makespan: {makespan:.0f} us")
    print(f"beyond Rust: {beyond:.0f} us (median of {len(rows)} pairs), {python / rust:.2f} times as long")


if __name__ == "__main__":
    main()

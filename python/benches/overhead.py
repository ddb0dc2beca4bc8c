"""What a run from Python costs beyond the run itself: one empty task, a thousand times.

The run's own time is the makespan that the runtime reports, plus what the same calls cost in Rust (launching, reading the
report); `cargo run --release -p pto-native --example overhead` measures that.
"""

import statistics
import time

from pto_runtime import Device, Graph


def main(rounds=1000):
    with Device(aic=2, aiv=4, gm_bytes=64 << 20, os_threads=1) as device:
        device.register_library()
        empty = next(func_id for func_id, name, _ in device.kernels if name == "empty_aiv")
        graph = Graph()
        graph.add_task(empty, "aiv", [])
        options = {"aicpu_instances": 2}
        device.run(graph, **options)
        whole, inside = [], []
        for _ in range(rounds):
            start = time.perf_counter()
            report = device.run(graph, **options)
            whole.append(time.perf_counter() - start)
            inside.append(report.makespan)
    beyond = statistics.median(a - b for a, b in zip(whole, inside))
    print(f"a run from Python: {1e6 * statistics.median(whole):.0f} us, its makespan {1e6 * statistics.median(inside):.0f} us")
    print(f"beyond the makespan: {1e6 * beyond:.0f} us (median of {rounds})")


if __name__ == "__main__":
    main()

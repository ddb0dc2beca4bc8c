"""Devices, memory, graphs and runs from Python."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pto_runtime
from pto_runtime import Device, FaultError, Graph, HostBuffer, HostError, ProgressBar, PtoError, download, upload

ADD = 0


def kernel(device, name):
    return next(func_id for func_id, held, _ in device.kernels if held == name)


def sum_graph(device, a, b):
    addresses = [upload(device, array) for array in (a, b, np.zeros_like(a))]
    graph = Graph()
    graph.add_task(kernel(device, "add"), "aiv", [*addresses, a.size])
    return graph, addresses


def test_a_graph_computes(device):
    a, b = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    graph, addresses = sum_graph(device, a, b)
    add = kernel(device, "add")
    second = graph.add_task(add, 1, [addresses[2], addresses[1], addresses[2], 100], after=[0])
    assert (second, graph.task_count, graph.edge_count) == (1, 2, 1)
    report = device.run(graph, build_mode="sequential", fanout="locked", aicpu_instances=2)
    assert np.array_equal(download(device, addresses[2], 100, np.float32), a + 2)
    assert (report.tasks, report.edges, report.parts_run, report.runtime) == (2, 1, (0, 2), "host_build_graph")
    assert report.makespan > 0 and report.trace is None and "2 tasks" in repr(report)
    for address in addresses:
        device.free(address)
    assert device.memory[0] == 64 << 20


def test_a_small_device_takes_the_default_options():
    with Device(aic=1, aiv=2, gm_bytes=16 << 20) as small:
        small.register_library()
        graph, _addresses = sum_graph(small, np.ones(8, np.float32), np.ones(8, np.float32))
        assert small.run(graph).tasks == 1
        with pytest.raises(FaultError, match="SCHEDULE_NO_CORES"):
            small.run(graph, aicpu_instances=4)


@pytest.mark.parametrize("factor", [0.5, np.float32(0.5), np.float64(0.5), 0x3F000000, np.int64(0x3F000000)])
def test_an_argument_is_an_integer_or_a_float(device, factor):
    addresses = [upload(device, np.ones(64, np.float32)) for _ in range(2)]
    graph = Graph()
    graph.add_task(kernel(device, "add_scalar"), "aiv", [addresses[0], factor, addresses[0], 32])
    graph.add_range(kernel(device, "add_scalar"), "aiv", [addresses[1], [factor], addresses[1], 32])
    device.run(graph)
    for address in addresses:
        assert download(device, address, 64, np.float32).tolist() == [1.5] * 32 + [1] * 32
        device.free(address)


def test_an_argument_that_no_word_can_hold_is_refused():
    graph = Graph()
    for wrong, says in [(1e300, "beyond the largest f32"), (1 << 64, "64 bits"), (-1, "64 bits"), ("x", "'x'")]:
        with pytest.raises(HostError, match=says):
            graph.add_task(1, "aiv", [wrong])
    assert graph.task_count == 0


def test_tasks_have_their_names_in_a_timeline(device, tmp_path):
    graph = Graph()
    graph.add_task(14, "aiv", [], name="first")
    graph.add_task(14, "aiv", [])
    graph.add_task(14, "aiv", [], name="last")
    file = tmp_path / "run.json"
    device.run(graph, trace=True).trace.save(file)
    assert json.loads(file.read_text())["pto"]["task_names"] == ["first", "", "last"]


@pytest.mark.parametrize(
    "name, kind, args, says",
    [
        ("exp", "aiv", "a b", r"task 1: exp takes 3 arguments \(a, out, n\), and the task has 2"),
        ("exp", "aiv", "", "exp takes 3 arguments"),
        ("exp", "aiv", "a b 4 7", "and the task has 4"),
        ("exp", "aiv", "0 b 4", "task 1: exp: argument 0, a, is an address, and 0x0 lies in no allocation"),
        ("exp", "aiv", "a b 5", "exp: argument 0, a, reaches to byte 20 of the allocation at 0x[0-9a-f]+, which has 16"),
        ("exp", "aiv", "a b 500000000", "argument 0, a, reaches to byte 2000000000"),
        ("exp", "aic", "a b 4", "exp runs on aiv cores, and the task is for aic"),
        ("empty_aiv", "aic", "", "empty_aiv runs on aiv cores"),
    ],
)
def test_a_call_that_its_kernel_cannot_take_is_refused(device, name, kind, args, says):
    graph, addresses = sum_graph(device, np.ones(4, np.float32), np.ones(4, np.float32))
    places = dict(zip("ab", addresses))
    func = kernel(device, name)
    graph.add_task(func, kind, [places[word] if word in places else int(word) for word in args.split()])
    with pytest.raises(HostError, match=says) as caught:
        device.run(graph)
    assert caught.value.name == "KERNEL_CALL"
    right, addresses = sum_graph(device, np.ones(4, np.float32), np.ones(4, np.float32))
    device.run(right)
    assert (download(device, addresses[2], 4, np.float32) == 2).all(), "the device goes on"


def test_what_a_graph_names_is_registered_and_not_freed(device):
    graph = Graph()
    graph.add_task(900, "aiv", [])
    with pytest.raises(FaultError, match="BUILD_KERNEL_MISSING"):
        device.run(graph)
    graph, addresses = sum_graph(device, np.ones(4, np.float32), np.ones(4, np.float32))
    device.run(graph)
    device.free(addresses[1])
    with pytest.raises(HostError, match="task 0: add: argument 1, b, is an address"):
        device.run(graph)


def test_arrays_are_not_copied_and_their_kind_is_checked(device):
    address = device.malloc(64)
    target = np.zeros(16, np.float32)
    device.copy_to_device(address, np.full(16, 3, np.float32))
    device.copy_from_device(target, address)
    assert (target == 3).all()
    with pytest.raises(ValueError, match="not contiguous"):
        device.copy_to_device(address, np.zeros((8, 8), np.float32)[:, 0])
    with pytest.raises(ValueError, match="not contiguous"):
        upload(device, np.zeros((4, 4))[::2].T)
    with pytest.raises(TypeError, match="NumPy array"):
        device.copy_to_device(address, [1, 2, 3])
    with pytest.raises(TypeError, match="no bytes"):
        device.copy_to_device(address, np.array([object()]))
    target.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        device.copy_from_device(target, address)


def test_errors_have_code_name_and_remedy(device):
    with pytest.raises(HostError) as caught:
        device.malloc(0)
    assert (caught.value.name, caught.value.code) == ("ZERO_SIZE", 0x40000012)
    assert "What to do:" in str(caught.value)
    with pytest.raises(HostError, match="COPY_OUT_OF_RANGE"):
        device.copy_to_device(64, np.zeros(4))
    graph = Graph()
    for wrong, name in [((4000, 0, []), "BUILD_UNKNOWN_FUNC"), ((0, 3, []), "BUILD_UNKNOWN_KIND"),
                        ((0, 0, [0] * 129), "BUILD_TOO_MANY_ARGS")]:
        with pytest.raises(FaultError, match=name):
            graph.add_task(*wrong)
    with pytest.raises(ValueError, match="unknown core type \"cube\""):
        graph.add_task(0, "cube", [])
    with pytest.raises(FaultError, match="BUILD_UNKNOWN_TASK"):
        graph.add_task(0, 0, [], after=[5])
    assert graph.task_count == 0
    graph.add_task(0, 0, [])
    graph.add_task(0, 0, [], after=[0])
    graph.add_edge(1, 0)
    with pytest.raises(FaultError, match="GRAPH_CYCLE"):
        device.run(graph)
    with pytest.raises(TypeError, match='no option "mode"'):
        device.run(graph, mode=1)
    with pytest.raises(ValueError, match="unknown build mode"):
        device.run(graph, build_mode=7)
    with pytest.raises(PtoError):
        Device(aic=0, aiv=0)
    device.close()
    with pytest.raises(HostError, match="INVALID_HANDLE"):
        device.run(graph)


def test_a_range_is_its_tasks(device):
    x = upload(device, np.zeros((3, 64), np.float32))
    ones = upload(device, np.ones(64, np.float32))
    add, tile = kernel(device, "add"), 8 * 4
    graph, above = Graph(), None
    for row in range(3):
        to = range(x + row * 256, x + row * 256 + 256, tile)
        source = ones if row == 0 else range(to.start - 256, to.stop - 256, tile)
        near = None if above is None else [above[max(n - 1, 0) : n + 2] for n in range(8)]
        above = graph.add_range(add, "aiv", [source, ones, to, 8], after_each=near)
        assert above == range(8 * row, 8 * row + 8)
    # Two tasks that differ in nothing, after all of the last row; each of them adds a row of ones to itself.
    last = graph.add_range(add, 1, [ones, ones, x, 8], count=2, after=above, after_each=[0, 1])
    graph.add_edge(last[0], last[1])
    assert (graph.task_count, graph.edge_count) == (26, 2 * 22 + 2 * 8 + 2 + 1)
    device.run(graph)
    held = download(device, x, 3 * 64, np.float32).reshape(3, 64)
    assert np.array_equal(held, np.repeat([[2], [3], [4]], 64, axis=1))
    assert graph.add_range(add, "aiv", [[], 1]) == range(26, 26)


@pytest.mark.parametrize(
    "given, options, error, says",
    [
        ((0, 0, [1]), {}, ValueError, "nothing says how many tasks"),
        ((0, 0, [range(3), [1, 2]]), {}, ValueError, "argument 0 is for 3 tasks, and argument 1 for 2 tasks"),
        ((0, 0, [range(3)]), {"count": 1}, ValueError, "count is for 1 task, and argument 0 for 3 tasks"),
        ((0, 0, [range(3)]), {"after_each": [[0], [0]]}, ValueError, "and after_each for 2 tasks"),
        ((0, 0, [range(3)]), {"after": [7]}, FaultError, "BUILD_UNKNOWN_TASK"),
        ((0, 0, [range(3)]), {"after_each": [0, 0, [0, 1]]}, FaultError, "BUILD_UNKNOWN_TASK"),
        ((4000, 0, [range(3)]), {}, FaultError, "BUILD_UNKNOWN_FUNC"),
        ((0, 3, [range(3)]), {}, FaultError, "BUILD_UNKNOWN_KIND"),
        ((0, 0, [range(3)] * 129), {}, FaultError, "BUILD_TOO_MANY_ARGS"),
        ((0, 0, []), {"count": 1 << 40}, FaultError, "BUILD_TASKS_FULL"),
        ((0, 0, ["x"]), {}, TypeError, "args"),
    ],
)
def test_a_range_that_does_not_fit_adds_nothing(given, options, error, says):
    graph = Graph()
    graph.add_task(0, 0, [])
    with pytest.raises(error, match=says):
        graph.add_range(*given, **options)
    assert (graph.task_count, graph.edge_count) == (1, 0)


def test_the_environment_chooses_the_build_mode(device, monkeypatch):
    graph, _ = sum_graph(device, np.ones(4, np.float32), np.ones(4, np.float32))
    monkeypatch.setenv("PTO_AICPU_BUILD_GRAPH_BUILD_MODE", "fast")
    with pytest.raises(HostError, match="BUILD_MODE_VARIABLE"):
        device.run(graph)
    monkeypatch.setenv("PTO_AICPU_BUILD_GRAPH_BUILD_MODE", "0")
    assert device.run(graph).tasks == 1


def test_a_trace_is_an_object_and_a_picture(device, tmp_path):
    graph, _ = sum_graph(device, np.ones(4, np.float32), np.ones(4, np.float32))
    report = device.run(graph, trace=True)
    trace = report.trace
    (slot, name, core, start, end), = trace.tasks
    assert (slot, name) == (0, "add") and core.startswith("aiv") and end >= start
    assert 0 < trace.graph == report.graph <= trace.makespan == report.makespan
    assert trace.dropped == 0 and dict(trace.run)["runtime"] == "host_build_graph"
    assert "<svg" in trace._repr_svg_() and "<html" in trace.html().lower() and "makespan" in trace.analyze()
    trace.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").stat().st_size > 0


def spins(device, milliseconds, count=1):
    """A graph that takes about as long for each task, one after another; by count, as machines differ."""
    spin = kernel(device, "spin_aiv")
    graph = Graph()
    for task in range(count):
        graph.add_task(spin, "aiv", [milliseconds * 500_000], after=[task - 1] if task else [])
    return graph


def test_the_gil_is_free_during_a_run(device):
    graph = spins(device, 300)
    thread = threading.Thread(target=device.run, args=(graph,))
    thread.start()
    ticks = 0
    while thread.is_alive():
        ticks += 1
        time.sleep(0.001)
    assert ticks > 20


@pytest.mark.parametrize("fails", [False, True])
def test_memory_that_is_freed_during_a_run_is_free_after_it(device, fails):
    freed, next_block = device.malloc(64), device.malloc(64)
    seen = []

    def progress(completed, added):
        if not seen:
            device.free(freed)
            with pytest.raises(HostError, match="DOUBLE_FREE"):
                device.free(freed)
            seen.append(device.malloc(64))
            device.free(seen[0])
            if fails:
                raise ValueError("enough")

    graph = spins(device, 100, 20)
    if fails:
        with pytest.raises(ValueError, match="enough"):
            device.run(graph, progress=progress)
    else:
        device.run(graph, progress=progress)
    assert seen and seen[0] != freed
    assert device.malloc(64) == freed and next_block


def test_progress_is_told_and_its_exceptions_end_the_run(device):
    seen = []
    device.run(spins(device, 100, 3), progress=lambda completed, added: seen.append((completed, added)))
    assert seen and all(completed <= 3 for completed, _ in seen)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    bar = ProgressBar(Terminal())
    device.run(spins(device, 200), progress=bar)
    bar.close()
    assert "of 1 tasks" in bar.stream.getvalue()

    def fails(completed, added):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        device.run(spins(device, 100, 50), progress=fails)
    assert device.run(spins(device, 1)).tasks == 1


def test_an_interrupt_ends_a_run_and_the_device_works_on():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_device import *\n"
        "device = Device(aic=4, aiv=8); device.register_library()\n"
        "print('ready', flush=True)\n"
        "try: device.run(spins(device, 50, 2000))\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        "print(device.run(spins(device, 1)).tasks, flush=True)\n"
    )
    child = subprocess.Popen(
        # Where the tests run in the background, children would ignore the signal.
        ["env", "--default-signal=INT", sys.executable, "-c", program, os.path.dirname(__file__)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n1\n"


def test_two_devices_and_many_threads_do_not_disturb_each_other():
    failures = []

    def work(seed):
        try:
            with Device(aic=4, aiv=8, gm_bytes=16 << 20) as device:
                device.register_library()
                a = np.full(64, seed, np.float32)
                graph, addresses = sum_graph(device, a, a)
                for _ in range(10):
                    device.run(graph)
                assert (download(device, addresses[2], 64, np.float32) == 2 * seed).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("given, says", [
    ({"seed": 3}, "seed is an option of hosting=\"virtual\", and the hosting is \"pool\""),
    ({"hosting": "threads", "kernel_cost": "5us"}, "kernel_cost is an option of hosting=\"virtual\""),
    ({"hosting": "virtual", "os_threads": 2}, "os_threads is an option of hosting=\"pool\""),
    ({"os_threads": 0}, "os_threads is 0: give at least 1"),
    ({"gm_bytes": 2**63}, ""), ({"gm_bytes": 2**64 - 1}, ""), ({"gm_bytes": 0}, ""), ({"aic": 2**32 - 1}, ""), ({"aic": 0, "aiv": 0}, ""),
])
def test_options_that_a_device_has_not_are_refused(given, says):
    with pytest.raises(HostError) as caught:
        Device(**given)
    assert says in caught.value.message


@pytest.mark.parametrize("nbytes", [2**60, 2**63, 2**64 - 1])
def test_memory_of_the_host_that_nobody_has_is_an_error(nbytes):
    with pytest.raises(HostError, match="host buffer of"):
        HostBuffer(nbytes)


def test_numbers_and_texts_that_cannot_be_are_errors(device, tmp_path):
    class Endless:
        __array_interface__ = {"shape": (2**40, 2**40), "typestr": "<f4", "data": (64, False), "version": 3}

    session = Device(aic=2, aiv=4, gm_bytes=64 << 20).session()
    programs, kernels = session.stream(), session.kernel_stream()
    for call in [
        lambda: HostBuffer(-1), lambda: device.malloc(-1), lambda: kernels.fill(0, -1, 8), lambda: kernels.fill(0, 256, 8),
        lambda: kernels.launch(-1, []), lambda: kernels.launch(0, [], blocks=-1),
        lambda: programs.zeros("f32", [-1]), lambda: session.stream(overlap=-1),
    ]:
        with pytest.raises(OverflowError):
            call()
    for call in [
        lambda: device.malloc(0), lambda: device.malloc(2**64 - 1), lambda: device.copy_to_device(0, Endless()),
        lambda: device.register_kernel(3, "aiv", str(tmp_path / "no.so")), lambda: device.register_library_kernel(3, "a\0b"),
        lambda: device.register_kernel(3, "aiv", "a\0b.so"), lambda: Device("a2a3sim\0"), lambda: kernels.launch(14, [2**64]),
        lambda: kernels.launch(14, [-1]), lambda: kernels.reduce("sum\0", "f32", 0, 0, 8), lambda: kernels.launch(14, [], blocks=0),
        lambda: programs.zeros("f32", [2**40, 2**40]), lambda: programs.zeros("f32", [2**60]), lambda: programs.zeros("f\0", [1]),
        lambda: programs.zeros("f32", [1] * 100),
        lambda: programs.synchronize(-1.0), lambda: programs.synchronize(float("nan")), lambda: session.load("a\0b"),
        lambda: Device(aic=2, aiv=4, gm_bytes=64 << 20).session(on_chip_bytes=2**63),
    ]:
        with pytest.raises((HostError, ValueError)):
            call()
    assert programs.to_host(programs.zeros("f32", [3])).shape == (3,)


def test_a_part_of_a_shared_object_is_refused(device, tmp_path):
    import pto_runtime._native as native

    with open(native.__file__, "rb") as file:
        part = file.read(9000)
    (tmp_path / "part.so").write_bytes(part)
    for source in [tmp_path / "part.so", part]:
        with pytest.raises(HostError, match="is no shared object") as caught:
            device.register_kernel(900, "aiv", source, symbol="x")
        assert caught.value.name == "LOAD_FAILED"


def test_a_trace_that_cannot_be_written_is_an_error(device):
    graph = Graph()
    graph.add_task(14, "aiv", [])
    trace = device.run(graph, trace=True).trace
    with pytest.raises(OSError, match="No space left"):
        trace.save("/dev/full")


def test_the_package_says_its_version():
    assert pto_runtime.__version__.count(".") == 2
    assert (pto_runtime.include_dir() / "runtime.h").is_file()

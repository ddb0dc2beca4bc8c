"""Workloads on devices: the bits of program order, in every hosting mode; arrays that share memory; errors; timelines; seeds."""

import json
import os
import runpy
from pathlib import Path

import numpy as np
import pytest
from wsp import F32, TILE, copy, tensor, tiles

from pto_runtime import Device, HostError
from pto_wsp import (
    CompileError,
    DenseDyn,
    DType,
    DispatchPolicy,
    ExecutionError,
    In,
    InOut,
    Out,
    P,
    Pools,
    ReadyPolicy,
    Scalar,
    StartPolicy,
    TaskWindow,
    Tensor,
    TimingPolicy,
    TracePolicy,
    WindowMode,
    kernel,
    pto,
    workload,
)
from pto_wsp.scalar_expr import symbol_u64
from pto_wsp.seeds import Seeds, watch

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
SMALL = {"aic": 4, "aiv": 8, "gm_bytes": 1 << 28}


@kernel
def add(x: In[TILE], y: In[TILE], out: Out[TILE]):
    pto.store(out, pto.add(x, y))


@kernel
def grow(x: InOut[TILE], by: Scalar[F32]):
    pto.store(x, pto.add(x, by))


def ran(program):
    program.execute()
    program.synchronize()
    return program


@pytest.fixture(params=["pool", "threads", "virtual"])
def device(request):
    with Device(hosting=request.param, **SMALL) as found:
        yield found


def test_a_chain_through_tensors(device):
    x, y = tiles(6)
    out = np.zeros_like(x)
    X, Y, OUT = tensor(x), tensor(y), tensor(out)

    @workload
    def chain():
        for i in P(6):
            copy[i](src=X[i], dst=Y[i])
            add[i](x=X[i], y=Y[i], out=OUT[i])
            for _ in P.seq(3):
                grow[i](x=OUT[i], by=1.0)

    program = ran(chain().compile(target="a2a3sim", device=device))
    assert (y == x).all() and (out == x + x + 1 + 1 + 1).all()
    stats = program.stats
    assert stats.task_count == 30 == program.tasks_done and stats.device_ns > 0
    # 16 elements: loads of all operands, the operation, the store; with the expansion of no scalar.
    assert stats.total_cycles == sum(cycles * 6 for cycles in (32, 64, 3 * 48))


def test_views_of_one_array(device):
    """Reads of a transposed view wait for writes of the array; overlapping windows are one after the other."""
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    expected = a.copy()
    A, T, W = tensor(a), Tensor(a.T, (8, 8), F32), Tensor(a[2:6, 1:5], (4, 4), F32)
    b = np.zeros((4, 4), np.float32)
    B = tensor(b)

    @workload
    def views():
        for _ in P.seq(5):
            grow[0](x=A[0:4, 0:4], by=1.0)
            grow[1](x=W, by=2.0)
        copy[2](src=T[4:8, 0:4], dst=B)
        copy[3](src=B, dst=A[4:8, 4:8])

    ran(views().compile(target="a2a3sim", device=device))
    for _ in range(5):
        expected[0:4, 0:4] += 1
        expected[2:6, 1:5] += 2
    block = expected.T[4:8, 0:4].copy()
    expected[4:8, 4:8] = block
    assert (b == block).all() and (a == expected).all()


def test_any_strides(device):
    """An array that shares nothing may go backwards, or be every second element."""
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    y = np.full((8, 8), 7, np.float32)
    X, Y = Tensor(x[::-2, ::-2], (4, 4), F32), Tensor(y[::2, 1::2], (4, 4), F32)

    @workload
    def copies():
        copy[0](src=X, dst=Y)

    ran(copies().compile(target="a2a3sim", device=device))
    assert (y[::2, 1::2] == x[::-2, ::-2]).all()
    assert (y[1::2] == 7).all() and (y[:, ::2] == 7).all(), "what is between the elements stays"


def test_what_a_device_cannot_share():
    x = np.zeros((4, 4), np.float32)
    A, B = tensor(x), Tensor(x[::-1], (4, 4), F32)

    @workload
    def copies():
        copy[0](src=A, dst=B)

    program = copies().compile(target="a2a3sim")
    with pytest.raises(ExecutionError, match="shares memory with another one and goes backwards"):
        ran(program)


def test_other_sizes_and_symbols_compile_nothing():
    x, y = tiles(6)
    X, Y = tensor(x), tensor(y)

    @workload
    def some():
        for b in P(DenseDyn(6)):
            with P.when(b < symbol_u64("n")):
                copy[b](src=X[b], dst=Y[b])

    with Device(hosting="virtual", **SMALL) as device:
        program = some().compile(target="a2a3sim", device=device)
        for size, n in ((6, 2), (3, 9), (0, 9)):
            y[:] = 0
            program.set_axis_sizes({"b": size})
            program.set_symbol_u64("n", n)
            assert ran(program).stats.task_count == min(size, n)
            assert (y[: min(size, n)] == x[: min(size, n)]).all() and not y[min(size, n) :].any()


def test_errors_name_the_line():
    x, y = tiles(4)
    X, Y = tensor(x), tensor(y)

    @workload
    def far():
        for i in P(DenseDyn(4)):
            copy[i](src=X[i + 1], dst=Y[i])

    program = far().compile(target="a2a3sim")
    with pytest.raises(ExecutionError, match=r"test_wsp_device.py:\d+: .*loop b in dyn b, kernel copy, argument src, with b = 3: the index is 4"):
        ran(program)
    for found, expected in zip(y[:3], x[1:]):
        assert (found == expected).all() or not found.any(), "a task is done, or has not begun"


def test_what_has_no_device():
    x, y = tiles(1)
    program = copy_once(x, y)
    with pytest.raises(CompileError, match="The target cpu_sim has no device"):
        program.compile(device=Device(**SMALL))
    with pytest.raises(CompileError, match="The device is a str"):
        program.compile(target="a2a3sim", device="virtual")
    device = Device(**SMALL)
    device.close()
    with pytest.raises(ExecutionError, match="the device is closed"):
        ran(program.compile(target="a2a3sim", device=device))


def copy_once(x, y):
    X, Y = tensor(x), tensor(y)

    @workload
    def once():
        copy[0](src=X[0], dst=Y[0])

    return once()


def test_the_variable_names_the_target(monkeypatch):
    monkeypatch.setenv("PTO_WSP_TARGET", "a2a3sim")
    x, y = tiles(1)
    program = ran(copy_once(x, y).compile())
    assert program.target == "a2a3sim" and (x == y).all()
    monkeypatch.setenv("PTO_WSP_TARGET", "moon")
    with pytest.raises(CompileError, match="no target 'moon'"):
        copy_once(x, y).compile()


def test_the_trace_is_the_devices_timeline(tmp_path):
    x, y = tiles(8)
    X, Y = tensor(x), tensor(y)

    @workload
    def both():
        for i in P(8):
            copy[i](src=X[i], dst=Y[i])
            grow[i](x=Y[i], by=1.0)

    with Device(hosting="virtual", kernel_cost="5us", **SMALL) as device:
        program = both().compile(target="a2a3sim", device=device)
        program.enable_tracing()
        ran(program)
    trace = program.trace
    assert trace.summary()["kernels"].keys() == {"copy", "grow"} and len(trace.events) == 16
    lanes = {event.lane for event in trace.events}
    assert 1 < len(lanes) <= 8, "several of the eight vector cores had tasks"
    assert program.stats.parallel_tasks > 0
    trace.save(str(tmp_path / "timeline.json"))
    saved = json.loads((tmp_path / "timeline.json").read_text())["pto"]
    assert saved["schema"] == "pto-timeline" and set(saved["kernels"].values()) >= {"copy", "grow"}
    assert trace.to_chrome_trace()["pto"]["makespan_ns"] == saved["makespan_ns"]
    # In addition to the times of the device, what the kernels say on the v9 clock.
    facts = {name: fact for name, fact in saved["run"].items() if name.startswith("v9")}
    assert facts == {
        "v9 cycles": str(8 * (32 + 48)),
        "v9 cycles of copy": "32 on whole tiles",
        "v9 cycles of grow": "48 on whole tiles",
    }


def lanes_used(program):
    """The tasks of a traced run in program order: kernel, begin, end."""
    return sorted((event.start, event.end) for event in ran(program).trace.events)


def most_at_once(times):
    """How many tasks were under way at once, at most."""
    return max(sum(a <= start < b for a, b in times) for start, _ in times)


def many(count):
    x, y = tiles(count)
    X, Y = tensor(x), tensor(y)

    @workload
    def copies():
        for i in P(count):
            copy[i](src=X[i], dst=Y[i])

    return copies()


SCHEDULES = [
    # 12 cores, of which 8 run these tasks; a task takes 5 us, and is submitted in far less.
    (lambda w: w, 8),
    (lambda w: w.dispatch(DispatchPolicy.work_steal()), 8),
    (lambda w: w.dispatch(DispatchPolicy.round_robin(4)), 8),
    (lambda w: w.dispatch(DispatchPolicy.affinity(lambda t: t.params[0] * 0, num_aicpus=4)), 3),
    (lambda w: w.dispatch(DispatchPolicy.affinity(lambda t: t.params[0] % 2, num_aicpus=6)), 4),
    (lambda w: w.streams(3), 3),
    (lambda w: w.streams(4).stream_by(lambda t: t.params[0] % 2), 2),
    (lambda w: w.timing(TimingPolicy.interleaved(5)), 5),
    (lambda w: w.timing(TimingPolicy.batched(2)), 8),
    (lambda w: w.task_graph(window=TaskWindow(4)), 4),
    (lambda w: w.task_graph(window=TaskWindow(1)), 1),
    (lambda w: w.task_graph(pools=Pools.by_exec_unit()), 8),
]


@pytest.mark.parametrize("schedule, most", SCHEDULES)
def test_schedules_act_on_cores(schedule, most):
    with Device(hosting="virtual", kernel_cost="5us", **SMALL) as device:
        program = schedule(many(24)).compile(target="a2a3sim", device=device)
        program.enable_tracing()
        times = lanes_used(program)
    assert len(times) == 24 and most_at_once(times) == most, program.text.splitlines()[1]


def test_tasks_are_held_until_enough_are_there():
    first = {}
    for n in (0, 200):
        with Device(hosting="virtual", kernel_cost="1us", **SMALL) as device:
            root = many(256).task_graph(start=StartPolicy.threshold(n))
            program = root.compile(target="a2a3sim", device=device)
            program.enable_tracing()
            first[n] = lanes_used(program)[0][0]
    assert first[200] > 5 * first[0], "the first task starts when 200 are submitted"


@pytest.mark.parametrize("count", [None, 8])
def test_a_batch_is_published_together(count):
    with Device(hosting="virtual", kernel_cost="1us", **SMALL) as device:
        root = many(24) if count is None else many(24).timing(TimingPolicy.batched(count))
        program = root.compile(target="a2a3sim", device=device)
        # Each call is a task of its own, as it is where the schedule has batches.
        program.set_grain(1)
        program.enable_tracing()
        ran(program)
    pto_timeline = program.trace.to_chrome_trace()["pto"]
    added, published = (pto_timeline["task_columns"].index(name) for name in ("added", "published"))
    tasks = sorted(pto_timeline["tasks"], key=lambda task: task[added])
    batches = [tasks[first : first + 8] for first in range(0, 24, 8)]
    waits = [min(task[published] for task in batch) >= max(task[added] for task in batch) for batch in batches]
    assert waits == [count is not None] * 3, "no scheduler sees a task of a batch before its last one is there"


def test_the_lowest_priority_goes_first():
    with Device(hosting="virtual", kernel_cost="20us", **SMALL) as device:
        config = {"ready": ReadyPolicy.priority(lambda t: 3 - t.params[0] // 32), "start": StartPolicy.threshold(128)}
        program = many(128).task_graph(**config).compile(target="a2a3sim", device=device)
        program.enable_tracing()
        ran(program)
    # Slots are in program order. Up to two tasks for each core are on their way before the others are there.
    started = [slot for slot, *_ in sorted(program.trace.timeline.tasks, key=lambda task: task[3])]
    others = [slot for slot in started if slot >= 16]
    assert set(others[:32]) == set(range(96, 128)) and set(others[-16:]) == set(range(16, 32))


@pytest.mark.parametrize(
    "schedule, what",
    [
        (lambda w: w.timing(TimingPolicy.rate_limit(5)), "TimingPolicy.rate_limit cannot be kept on a device"),
        (lambda w: w.timing(TimingPolicy.interleaved(2)).streams(3), "Drop one"),
        (lambda w: w.timing(TimingPolicy.batched(-1)), "-1 is no number of tasks"),
        (lambda w: w.timing(TimingPolicy.batched(300)), "300 tasks in a batch, and a plan holds 256"),
        (lambda w: w.task_graph(pools=Pools.custom(lambda t: 0)), "Pools.custom cannot be kept on a device"),
        (lambda w: w.task_graph(window=TaskWindow(8, "bytes")), "A window in bytes"),
        (lambda w: w.task_graph(window=TaskWindow(8, mode=WindowMode.ABORT)), "window in mode abort"),
        (lambda w: w.task_graph(start=StartPolicy.threshold(9), window=TaskWindow(8)), "9 tasks before the first one starts"),
        (lambda w: w.dispatch(DispatchPolicy.round_robin(129)), "129 workers"),
        (lambda w: w.dispatch(DispatchPolicy.hash(lambda t: t.params[1], num_aicpus=2)), "argument 1 of a task"),
        (lambda w: w.task_graph(trace=TracePolicy.cycles(lambda t: 1)), "A cost function"),
    ],
)
def test_what_a_device_does_not_keep_is_an_error(schedule, what):
    with pytest.raises(CompileError, match=what):
        schedule(many(2)).compile(target="a2a3sim")


DOUBLE = """
  const float* x = (const float*)task->tensor_ptrs[0];
  float* y = (float*)task->tensor_ptrs[1];
  const uint64_t* s = task->tensor_strides;
  const int64_t rows = task->args[2], cols = task->args[3];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c)
      y[r * (int64_t)s[2] + c * (int64_t)s[3]] = 2 * x[r * (int64_t)s[0] + c * (int64_t)s[1]];
  cycles = task->args[task->num_axis_args] + 10 * task->args[0] + task->args[1];
"""


@pytest.mark.parametrize("options", [{"hosting": "threads"}, {"hosting": "pool"}, {"hosting": "virtual", "seed": 3}], ids=str)
def test_bodies_in_cpp_run_on_the_simulator(options):
    """Axes, partial tiles, strides and scalars arrive as they do in program order, and cycles come back."""

    @kernel(cpp_src=DOUBLE)
    def double(x: In[TILE], y: Out[TILE], n: Scalar[DType.I32]):
        raise AssertionError("it is not called")

    x = np.random.default_rng(0).standard_normal((2, 3, 10, 4), dtype=np.float32)

    def program(**where):
        y = np.zeros((2, 3, 4, 10), np.float32)
        X, Y = tensor(x), tensor(y.swapaxes(2, 3))

        @workload
        def all_of_them():
            for i, j in P(2, 3):
                for part in P(3):
                    double[i, j](X[i][j].slice(4 * part, 4 * part + 4), Y[i][j].slice(4 * part, 4 * part + 4), 100)

        done = ran(all_of_them().compile(**where))
        return y, done.stats.total_cycles, done.stats.task_count

    with Device(**options, **SMALL) as device:
        y, cycles, tasks = program(target="a2a3sim", device=device)
    np.testing.assert_array_equal(y.swapaxes(2, 3), 2 * x)
    assert (cycles, tasks) == (18 * 100 + 9 * 10 + 6 * (0 + 1 + 2), 18)
    np.testing.assert_array_equal(program()[0], y)


def test_a_body_in_cpp_has_one_number_of_axes_on_a_device():
    @kernel(cpp_src=DOUBLE)
    def double(x: In[TILE], y: Out[TILE], n: Scalar[DType.I32]):
        pass

    x, y = tiles(2)

    @workload
    def both():
        double[0](tensor(x)[0], tensor(y)[0], 1)
        double[0, 1](tensor(x)[1], tensor(y)[1], 1)

    with pytest.raises(CompileError, match="same number of axes in each call: 1 before, 2 here"):
        both().compile(target="a2a3sim")


def run_watched(path, monkeypatch, seeds):
    """Runs an example to its end, which is a good one, while `seeds` sees each of its runs."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    undo = watch(seeds)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        assert not end.code
    finally:
        undo()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_give_the_same_bits_with_every_seed(path, monkeypatch):
    """Every run of every example, on threads, on a pool, and with 40 seeds; `python -m pto_wsp.seeds PROGRAM --seeds 1000` does more."""
    seeds = Seeds(range(40), ("threads", "pool"))
    run_watched(path, monkeypatch, seeds)
    # The module that the examples share runs nothing.
    assert seeds.runs >= 42 or path.stem == "outcome"
    assert seeds.failures == []


@pytest.fixture(scope="module")
def qemu():
    """The emulated machine with what is flashed to it. `cargo xtask` builds and flashes that; by hand, `pto fw build` and `pto fw flash` do."""
    if not os.environ.get("PTO_HOME"):
        pytest.skip("PTO_HOME names no folder with images that are flashed to qemu")
    seeds = Seeds(range(0), qemu=True)
    yield seeds
    seeds.close()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_give_the_same_bits_on_qemu(path, monkeypatch, qemu):
    """Every run of every example once on the emulated machine; the one with a body in C++ is refused there, by its name."""
    qemu.runs, qemu.failures, qemu.refused = 0, [], []
    run_watched(path, monkeypatch, qemu)
    assert qemu.runs >= 1 or path.stem == "outcome"
    assert qemu.failures == []
    assert len(qemu.refused) == (path.stem == "top_scores")
    assert all("cannot run on qemu" in refused for refused in qemu.refused)


def test_qemu_refuses_bodies_in_cpp(qemu):
    @kernel(cpp_src=DOUBLE)
    def double(x: In[TILE], y: Out[TILE], n: Scalar[DType.I32]):
        pass

    x, y = tiles(1)

    @workload
    def once():
        double[0](tensor(x)[0], tensor(y)[0], 1)
        copy[0](tensor(x)[0], tensor(y)[0])

    with Device("qemu") as device:
        program = once().compile(target="a2a3sim", device=device)
        with pytest.raises(ExecutionError, match="kernel double is a function of this process, and cannot run on qemu: "):
            ran(program)
        assert not y.any(), "nothing has run"
        # The machine is in order: another program runs.
        ran(copy_once(x, y).compile(target="a2a3sim", device=device))
    assert (x == y).all()


@pytest.mark.parametrize("option", [{"hosting": "pool"}, {"seed": 3}, {"os_threads": 1}, {"kernel_cost": "5us"}], ids=str)
def test_qemu_has_no_options_of_the_simulator(option):
    with pytest.raises(HostError, match=f"{next(iter(option))} is an option of a2a3sim; qemu runs in real time"):
        Device("qemu", **option)
    with pytest.raises(ValueError, match="unknown device \"moon\": use \"a2a3sim\" or \"qemu\""):
        Device("moon")


def test_a_wrong_order_is_found(monkeypatch):
    """The comparison can fail: a run that changes nothing has other bits."""
    x, y = tiles(1)
    seeds = Seeds(range(1))
    monkeypatch.setattr("pto_wsp.on_device.OnDevice.run", lambda *_, **__: None)
    undo = watch(seeds)
    try:
        ran(copy_once(x, y).compile())
    finally:
        undo()
    assert seeds.failures == ["once, seed 0: 1 of 2 arrays differ from program order."] and (x == y).all()

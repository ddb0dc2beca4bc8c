"""Programs, sessions and tensors from Python: the training loop, what is refused, and that a copy more is seen."""

import gc
import importlib.util
import resource
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import pto_wsp
from pto_runtime import Device, HostError, Program, PtoError, program_of, program_of_tasks, task_range
from pto_wsp import DType, In, Out, P, Tensor, Tile, kernel, pto, workload

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "programs" / "training_loop" / "train.py"

TWICE = """workload twice {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[32, 32]
  tensor Y : f32[32, 32]
  kernel double(x: in f32[32, 32], y: out f32[32, 32], by: f32) {
    %0 = load x : f32[32, 32]
    %1 = scalar by : f32
    %2 = mul %0, %1 by one : f32[32, 32]
    store y, %2
  }
  do sequential {
    parallel i in dense 1 {
      double[i](x = X, y = Y, by = number(symbol by))
    }
  }
}
"""


def module(path=EXAMPLE):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def session():
    with Device(aic=2, aiv=4, gm_bytes=64 << 20).session() as opened:
        yield opened


@pytest.fixture
def x():
    return np.arange(1024, dtype=np.float32).reshape(32, 32)


@pytest.mark.parametrize(
    "kind, args, says",
    [
        ("aiv", ["a", "b"], r"task 0 \(exp\) cannot run: exp takes 3 arguments \(a, out, n\), and the task has 2"),
        ("aiv", ["a", "b", 4, 1], "and the task has 4"),
        ("aiv", [0, "b", 4], "exp: argument 0, a, is an address, and the program has the number 0 there"),
        ("aiv", ["a", "b", "a"], "exp: argument 2, n, is a number, and a tensor is given"),
        ("aiv", ["a", "b", 5], "exp: argument 0, a, reaches to byte 20 of tensor a, which has 16"),
        ("aiv", [("a", 4), "b", 4], "exp: argument 0, a, reaches to byte 20 of tensor a"),
        ("aiv", ["a", "b", 500_000_000], "reaches to byte 2000000000"),
        ("aic", ["a", "b", 4], "exp runs on aiv cores, and the task is for aic"),
    ],
)
def test_a_program_with_a_call_that_its_kernel_cannot_take_is_refused(kind, args, says):
    tensors = {"a": ("input", "f32", [4]), "b": ("output", "f32", [4])}
    with pytest.raises(HostError, match=says):
        program_of_tasks("wrong", tensors, [("exp", kind, args)])


def test_a_program_that_calls_an_unknown_kernel_is_not_loaded(session):
    program = program_of_tasks("unknown", {"a": ("updated", "f32", [4])}, [("no_such", "aiv", ["a"])])
    with pytest.raises(HostError, match="calls kernel no_such, which the library does not have"):
        session.load(program)


def test_a_training_loop_copies_nothing_after_the_first_round(tmp_path, capsys):
    module().main(tmp_path)
    assert "33 runs" in capsys.readouterr().out


def test_one_copy_more_is_counted_and_fails_the_check(tmp_path):
    train = module()
    train.write(tmp_path)

    def copy(stream, weights, number):
        if number == 5:
            stream.to_host(weights)

    with Device(aic=4, aiv=8, gm_bytes=64 << 20).session() as session:
        result = train.train(session, tmp_path, copy)
    assert result[3]["copied_to_host_bytes"] == 4 * 64 * 96
    with pytest.raises(AssertionError, match="'copied_to_host_bytes': 24576"):
        train.check(*result)


def test_outputs_feed_the_next_run_and_layouts_are_converted(session, x):
    program = session.load(program_of(TWICE, layouts={"X": "column-major"}))
    stream = session.stream()
    given = stream.to_device(x)
    with pytest.raises(HostError, match="needs X in the layout 'device, strides") as refused:
        stream.run(program, {"X": given}, numbers={"by": 2.0})
    assert refused.value.name == "TENSOR_LAYOUT" and "to_layout" in refused.value.remedy
    y = stream.run(program, {"X": stream.to_layout(given, program.layout("X"))}, numbers={"by": 2.0})["Y"]
    assert y.layout == "device, row-major" and y.shape == (32, 32) and y.dtype == "f32" and y.nbytes == 4096
    again = stream.run(program, {"X": stream.to_layout(y, program.layout("X"))}, numbers={"by": 3})["Y"]
    assert np.array_equal(stream.to_host(again), 6 * x)
    assert session.counters["conversions"] == 2 and session.counters["converted_bytes"] == 8192
    assert stream.to_layout(y, "row-major").is_here and session.counters["conversions"] == 2


def test_a_tensor_that_was_given_is_told_apart(session, x):
    program, stream = session.load(program_of(TWICE)), session.stream()
    given = stream.to_device(x)
    other = given
    with pytest.raises(HostError, match="no number bye"):
        stream.run(program, {}, give={"X": given}, numbers={"bye": 2.0})
    # A run that is refused takes nothing.
    assert given.is_here
    stream.run(program, {}, give={"X": given}, numbers={"by": 2.0})
    with pytest.raises(HostError, match="was given to program twice") as gone:
        stream.run(program, {"X": other}, numbers={"by": 2.0})
    assert gone.value.name == "TENSOR_MOVED" and not other.is_here and "program twice" in repr(other)


def test_references_count(session, x):
    program, stream = session.load(program_of(TWICE)), session.stream()
    given = stream.to_device(x)
    first = stream.run(program, {"X": given}, numbers={"by": 2.0})
    before = session.counters
    kept = first["Y"]
    del first
    gc.collect()
    assert np.array_equal(stream.to_host(kept), 2 * x)
    del kept
    # Its memory is there for the next output.
    second = stream.run(program, {"X": given}, numbers={"by": 2.0})["Y"]
    after = session.counters
    assert after["allocations"] == before["allocations"] and after["pool_hits"] == before["pool_hits"] + 1
    # An output goes into a tensor that there is.
    stream.run(program, {"X": given, "Y": second}, numbers={"by": 5.0})
    assert np.array_equal(stream.to_host(second), 5 * x) and session.counters["allocations"] == after["allocations"]


def test_memory_that_runs_use_stays_theirs(session, x):
    program, stream, other = session.load(program_of(TWICE)), session.stream(), session.stream()
    garbage = np.full((32, 32), -1, dtype=np.float32)
    for _ in range(20):
        tensor = stream.to_device(x)
        for _ in range(30):
            # The input goes as soon as the run that reads it is submitted. A stream that waits for nothing fills new memory of its size.
            tensor = stream.run(program, {"X": tensor}, numbers={"by": 2.0})["Y"]
            other.to_device(garbage)
        assert np.array_equal(stream.to_host(tensor), x * 2.0**30)


def test_streams_take_over_and_other_types_are_converted(session, x):
    program, first, second = session.load(program_of(TWICE)), session.stream(), session.stream()
    y = first.run(program, {"X": first.to_device(x)}, numbers={"by": 2.0})["Y"]
    with pytest.raises(HostError, match="belongs to"):
        second.run(program, {"X": y}, numbers={"by": 2.0})
    z = second.run(program, {"X": second.take_over(y, first)}, numbers={"by": 2.0})["Y"]
    half = second.to_dtype(z, "f16")
    assert np.array_equal(second.to_host(half), (4 * x).astype(np.float16)) and not y.is_here
    second.synchronize(timeout=10)
    brain = (x.view(np.uint32) >> 16).astype(np.uint16)
    assert np.array_equal(second.to_host(second.to_device(brain, dtype="bf16")), brain)


@pytest.mark.parametrize(
    "given, said",
    [
        (lambda stream, x: stream.to_device(x, "fractal"), "no layout"),
        (lambda stream, x: stream.to_device(x, dtype="f16"), "takes 2 bytes"),
        (lambda stream, x: stream.to_device(x.astype(complex)), "no elements of type"),
        (lambda stream, x: stream.to_device(x.astype(">f4")), "other order"),
        (lambda stream, x: stream.zeros("f32", (4, 4, 4), "nz"), "tiles need two dimensions"),
        (lambda stream, x: stream.zeros("f33", (4, 4)), "f33"),
        (lambda stream, x: stream.synchronize(timeout=-1), "timeout"),
    ],
)
def test_bad_input_is_refused(session, x, given, said):
    with pytest.raises((PtoError, ValueError), match=said):
        given(session.stream(), x)


def test_a_session_has_the_device_for_itself():
    device = Device(aic=1, aiv=1, gm_bytes=64 << 20)
    with device.session() as session:
        with pytest.raises(HostError, match="closed"):
            device.malloc(4)
    with pytest.raises(HostError, match="the session is closed"):
        session.stream()


def test_program_files_are_read_without_trust(tmp_path):
    path = tmp_path / "twice.ptop"
    program_of(TWICE).save(path)
    program = Program.load(path)
    assert program.name == "twice" and program.target == "any" and program.source.startswith("workload twice")
    assert program.tensors["Y"] == {"role": "output", "dtype": "f32", "shape": (32, 32), "layout": "device, row-major", "nbytes": 4096}
    damaged = bytearray(path.read_bytes())
    damaged[100] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(HostError, match="damaged"):
        Program.load(path)
    with pytest.raises(HostError, match="no task writes it"):
        program_of(TWICE, roles={"X": "output"})
    with pytest.raises(HostError, match="line"):
        program_of("workload {")


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path):
    program, path = program_of(TWICE), tmp_path / "twice.ptop"
    program.save(path)
    good = path.read_bytes()
    with pytest.raises(HostError, match="No space left"):
        program.save("/dev/full")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(good) // 2, before[1]))
        with pytest.raises(HostError, match="File too large"):
            program.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == good and list(tmp_path.iterdir()) == [path]


def test_a_program_of_pto_wsp_is_saved_and_runs_in_a_session(tmp_path, session, x):
    tile = Tile[16, 16, DType.F32]

    @kernel
    def triple(a: In[tile], b: Out[tile]):
        pto.store(b, pto.add(pto.add(pto.load(a), pto.load(a)), pto.load(a)))

    tiles = x.reshape(4, 16, 16)
    a, b = Tensor(tiles, tiles.shape, DType.F32), Tensor(np.zeros_like(tiles), tiles.shape, DType.F32)

    @workload
    def tripled():
        for i in P(4):
            triple[i](a[i], b[i])

    program = tripled().compile()
    program.save(tmp_path / "tripled.ptop")
    loaded = session.load(tmp_path / "tripled.ptop")
    names = list(loaded.program.tensors)
    stream = session.stream()
    outputs = stream.run(loaded, {names[0]: stream.to_device(tiles)})
    assert np.array_equal(stream.to_host(outputs[names[1]]), 3 * tiles)
    with pytest.raises(pto_wsp.CompileError, match="no task writes it"):
        program.save(tmp_path / "x.ptop", roles={names[0]: "output"})


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The kernels of the example as a shared object."""
    to = tmp_path_factory.mktemp("kernels") / "kernels.so"
    source, headers = ROOT / "examples" / "kernels" / "scale.c", ROOT / "bindings" / "include"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-I", headers, "-o", to, source], check=True)
    return to


def test_a_program_with_kernels_of_ones_own_is_written_and_run(kernels, tmp_path):
    assert module(ROOT / "examples" / "programs" / "own_kernels" / "own_kernels.py").main(kernels, tmp_path / "own.ptop") == 999


def of_tasks(tasks, tensors=None, **options):
    tensors = tensors or {"x": ("input", "f32", [64]), "y": ("output", "f32", [64])}
    return program_of_tasks("sum", tensors, tasks, **options)


def test_tasks_take_bytes_of_tensors_and_words(session):
    tasks = [("add", "aiv", ["x", ("x", 128), "y", np.int64(32)]), ("add_scalar", "aiv", ["y", np.float32(0.5), ("y", 128), 32], [0])]
    program, stream = session.load(of_tasks(tasks)), session.stream()
    x = np.arange(64, dtype=np.float32)
    y = stream.to_host(stream.run(program, {"x": stream.to_device(x)})["y"])
    assert np.array_equal(y[:32], x[:32] + x[32:]) and np.array_equal(y[32:], y[:32] + 0.5)


def test_ranges_of_tasks_are_their_tasks(session):
    tensors = {"x": ("input", "f32", [64]), "y": ("temporary", "f32", [64]), "z": ("output", "f32", [64])}
    tiles = range(0, 256, 32)
    tasks = task_range(8, "add_scalar", "aiv", [("x", tiles), [0.5 * n for n in range(8)], ("y", tiles), 8])
    tasks += task_range(8, "add", "aiv", [("y", tiles), "x", ("z", list(tiles)), 8], after_each=range(8))
    assert tasks[1] == ("add_scalar", "aiv", [("x", 32), 0.5, ("y", 32), 8], [])
    assert tasks[9] == ("add", "aiv", [("y", 32), "x", ("z", 32), 8], [1])
    assert task_range(1, "add", "aiv", [], after=[3], after_each=[[1, 2]]) == [("add", "aiv", [], [3, 1, 2])]
    program, stream = session.load(of_tasks(tasks, tensors)), session.stream()
    x = np.arange(64, dtype=np.float32)
    z = stream.to_host(stream.run(program, {"x": stream.to_device(x)})["z"])
    assert np.array_equal(z, x + np.repeat(np.arange(8, dtype=np.float32) / 2, 8) + np.tile(x[:8], 8))
    with pytest.raises(ValueError, match="argument 1 has 2 entries for a range of 3 tasks"):
        task_range(3, "add", "aiv", ["x", range(2)])
    with pytest.raises(ValueError, match="after_each has 1 entries"):
        task_range(3, "add", "aiv", ["x"], after_each=[0])


@pytest.mark.parametrize(
    "given, said",
    [
        (lambda kernels: of_tasks([("add", "aiv", ["z"])]), "task 0 names tensor z; there are x, y"),
        (lambda kernels: of_tasks([("add", "aix", [])]), "aix"),
        (lambda kernels: of_tasks([("add", "aiv", [1 << 64])]), "does not fit 64 bits"),
        (lambda kernels: of_tasks([("add", "aiv", [], [0])]), "waits for task 0"),
        (lambda kernels: of_tasks([("add", "aiv", [("x", 256)])]), "byte 256 of tensor x, which has 256"),
        (lambda kernels: of_tasks([], {"x": ("constant", "f32", [1])}), "'constant' is no role here"),
        (lambda kernels: of_tasks([], {"x": ("input", "f32", [4, 4, 4], "nz")}), "tiles need two dimensions"),
        (lambda kernels: of_tasks([("mean", "aiv", [])], kernels=[kernels]), "on aiv cores"),
        (lambda kernels: of_tasks([], kernels=["/nowhere.so"]), "/nowhere.so"),
    ],
)
def test_tasks_that_no_program_has_are_refused(kernels, given, said):
    with pytest.raises((PtoError, ValueError), match=said):
        given(kernels)


RAGGED = """workload spread {
  schedule round_robin workers 1 window 8192 stall
  tensor X : f32[3, 16]
  tensor Y : f32[6, 16]
  kernel copy(x: in f32[1, 16], y: out f32[1, 16]) {
    %0 = load x : f32[1, 16]
    store y, %0
  }
  do parallel p (row, at) in ragged(rows, lengths) { copy[p](x = X[row], y = Y[p]) }
}
"""


def test_an_array_of_an_axis_is_a_tensor(session):
    program, stream = session.load(program_of(RAGGED)), session.stream()
    x = np.arange(48, dtype=np.float32).reshape(3, 16)
    lengths = stream.to_device(np.array([2, 1, 3], dtype=np.int32))
    given = {"X": stream.to_device(x), "lengths": lengths}
    y = stream.run(program, given, numbers={"rows": 3})["Y"]
    assert np.array_equal(stream.to_host(y), x[[0, 0, 1, 2, 2, 2]])
    with pytest.raises(HostError, match="the array lengths as i32"):
        stream.run(program, {**given, "lengths": given["X"]}, numbers={"rows": 3})

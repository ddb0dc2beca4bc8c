"""The sources of `ascend_npu`: complete, and, compiled for this machine, right. The emitted expander makes the tasks of the
program that runs here, and the emitted kernels compute the same elements in the same cycles."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from wsp import F32, I32, TILE, copy, mark, tensor, tiles

from pto_wsp import (
    Channel,
    CompileError,
    Constexpr,
    DenseDyn,
    DispatchPolicy,
    DType,
    In,
    InOut,
    Out,
    P,
    Ragged,
    Scalar,
    Sparse,
    Symbol,
    Tile,
    connect,
    consume,
    for_each,
    kernel,
    process,
    pto,
    ptoisa,
    ptoisa_kernel,
    send,
    slot_load_u64,
    slot_set_u64,
    task,
    workload,
)
from pto_wsp.emit_kernels import kernel_body
from pto_wsp.scalar_expr import slot_i64, slot_u64, symbol_u64

needs_compiler = pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="there is no C++ compiler")


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("base", ctypes.c_uint64),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("extents", ctypes.POINTER(ctypes.c_int64)),
    ]


class Emitted:
    """The sources of a workload, compiled for this machine."""

    def __init__(self, node, folder):
        self.lowered = node.compile()._lowered
        self.folder = Path(node.compile(target="ascend_npu").codegen_artifact_dir)
        library = folder / "program.so"
        compiler = shutil.which("c++") or shutil.which("g++")
        sources = [str(path) for path in self.folder.rglob("*.cpp")]
        command = [compiler, "-std=c++17", "-O0", "-Wall", "-ffp-contract=off", "-Wno-unused", "-Werror", "-shared", "-fPIC", "-D__CPU_SIM"]
        done = subprocess.run(
            command + [f"-I{self.folder / 'include'}", *sources, "-o", str(library)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        self.library = ctypes.CDLL(str(library))

    def table(self, name):
        """A table of names of the expander."""
        found, table = [], (ctypes.c_char_p * 64).in_dll(self.library, name)
        for entry in table:
            if entry is None:
                return found
            found.append(entry.decode())

    def run(self, symbols=None, arrays=None):
        """Tasks and cycles of all tasks."""
        keep, tensors = [], []
        for name in self.table("pto_wsp_tensors"):
            data = self.lowered.tensors[name].data
            strides = (ctypes.c_int64 * data.ndim)(*(stride // data.itemsize for stride in data.strides))
            extents = (ctypes.c_int64 * data.ndim)(*data.shape)
            keep += [strides, extents]
            tensors.append(_Tensor(data.ctypes.data, strides, extents))
        names = self.table("pto_wsp_symbols")
        values = (ctypes.c_uint64 * 16)(*((symbols or {})[name] for name in names))
        lists = [np.array((arrays or {})[name], np.int32) for name in self.table("pto_wsp_arrays")]
        pointers = (ctypes.c_void_p * 16)(*(one.ctypes.data for one in lists))
        tasks, cycles = ctypes.c_uint64(), ctypes.c_uint64()
        fault = self.library.pto_wsp_run((_Tensor * 16)(*tensors), values, pointers, ctypes.byref(tasks), ctypes.byref(cycles))
        assert keep is not None
        return fault, tasks.value, cycles.value


def same(node, arrays, folder, symbols=None, lists=None, bind=lambda program: None):
    """Runs here, and from the sources; both must leave the same elements."""
    program, start = node.compile(), [array.copy() for array in arrays]
    bind(program)
    program.execute()
    program.synchronize()
    here = [array.copy() for array in arrays]
    for array, before in zip(arrays, start):
        array[:] = before
    found = Emitted(node, folder).run(symbols, lists)
    for array, expected in zip(arrays, here):
        np.testing.assert_array_equal(array, expected)
    assert found == (0, program.stats.task_count, program.stats.total_cycles)


@kernel
def dense(a: In[Tile[4, 8, F32]], b: In[Tile[8, 4, F32]], out: Out[TILE], s: Scalar[F32] = 0.5):
    x = pto.matmul(a, b)
    x = pto.div(pto.exp(pto.sub(pto.mul(x, s), pto.rowmax(x))), pto.rowsum(pto.abs(x)))
    x = pto.add(pto.colmul(pto.gelu(x), pto.colsum(x)), pto.rowmean(x))
    pto.store(out, pto.matmul(x, pto.max(pto.sub(1.0, x), pto.min(x, 0.25)), acc=pto.silu(x)))


@needs_compiler
@pytest.mark.parametrize("seed", range(2))
def test_kernels_compute_the_same(seed, tmp_path):
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((3, 4, 8), (3, 4, 8)))
    out = np.zeros((3, 4, 4), np.float32)

    @workload
    def loop():
        for i in P(3):
            dense[i](tensor(a)[i], columns[i], target[i], Symbol("s"))

    columns, target = tensor(b.swapaxes(1, 2)), tensor(out)
    bits = int(np.float32(0.75).view(np.uint32))
    same(loop(), [out], tmp_path, {"s": bits}, bind=lambda program: program.set_symbol_f32("s", 0.75))


@needs_compiler
def test_loops_make_the_same_tasks(tmp_path):
    counts = np.zeros((16, 1, 1), np.int32)
    y, flags = tensor(counts), tensor(np.array([[[2]], [[-3]], [[7]]], np.int64))
    ragged, sparse = Ragged(2, [1, 3]), Sparse(2, [0, 2, 3], [4, 9, 5])

    @workload
    def loops():
        for t in P.seq(ragged):
            mark[t](y[t.row * 4 + t.place])
        for e in P.sel(sparse):
            mark[e](y[e])
            with P.when(e.row == 1):
                mark[e](y[e + 1])
        for n in P(DenseDyn(0), names=["n"]):
            mark[n](y[n + 10])
        for i in P(3):
            slot_load_u64(0, flags[i])
            slot_set_u64(1, (slot_i64(0) // 2) % 3 + (symbol_u64("n") << 1).cast_i64())
            with P.when((slot_i64(1) > 8) | (slot_u64(0) == 2)):
                mark[i](y[13 + i])
            with P.otherwise():
                mark[i](y[12])

    lists = {f"lengths_{id(ragged)}": [1, 3], f"indptr_{id(sparse)}": [0, 2, 3], f"indices_{id(sparse)}": [4, 9, 5]}
    symbols = {f"outer_{id(ragged)}": 2, f"outer_{id(sparse)}": 2, "n": 2}

    def bind(program):
        program.set_axis_sizes({"n": 2})
        program._symbols["n"] = 2

    same(loops(), [counts], tmp_path, symbols, lists, bind)


@needs_compiler
def test_views_and_remainders(tmp_path):
    x, y = np.arange(70, dtype=np.float32).reshape(10, 7), np.zeros((7, 10), np.float32)

    @workload
    def loop():
        for i in P(3):
            for j in P(2):
                copy[i, j](source[i * 4 : i * 4 + 4, j * 4 : j * 4 + 4], target[i * 4 : i * 4 + 4, j * 4 : j * 4 + 4])

    source, target = tensor(x), tensor(y.T)
    same(loop(), [y], tmp_path)
    np.testing.assert_array_equal(y.T, x)


@needs_compiler
def test_other_kinds_of_kernels(tmp_path):
    x, y = tiles(4)

    @kernel(cpp_src="*(float*)task->tensor_ptrs[0] = 5; cycles = 3;")
    def body(y: Out[TILE]):
        pass

    @ptoisa_kernel
    def instructions(x: In[TILE], y: Out[TILE], n: Scalar[I32]):
        ptoisa.tstore(y, ptoisa.TADDS(ptoisa.TMUL(ptoisa.tload(x), ptoisa.tload(x)), 2.0))
        ptoisa.cpu_sim_add_cycles("n > 3 ? n * 2 : 0")

    @kernel
    def times(x: In[TILE], y: Out[TILE], n: Constexpr[int]):
        pto.store(y, pto.mul(x, float(n)))

    @workload
    def tasks():
        body[0](tensor(y)[0])
        instructions[1](tensor(x)[1], tensor(y)[1], 6)
        times[2](tensor(x)[2], tensor(y)[2], n=3)
        times[3](tensor(x)[3], tensor(y)[3], n=4)

    same(tasks(), [y], tmp_path)


@needs_compiler
def test_an_index_outside_is_a_fault(tmp_path):
    counts = np.zeros((2, 1, 1), np.int32)
    y = tensor(counts)

    @workload
    def loop():
        for i in P(DenseDyn(0)):
            mark[i](y[i])

    emitted = Emitted(loop(), tmp_path)
    assert emitted.run({"b": 2})[:2] == (0, 2)
    assert emitted.run({"b": 3})[:2] == (2, 2)


def test_the_folder_is_complete():
    x, y = tiles(2)

    @workload
    def loop():
        for i in P(2):
            copy[i](tensor(x)[i], tensor(y)[i])

    program = loop().dispatch(DispatchPolicy.affinity(lambda t: t.get("b") + 1, 3)).compile(target="ascend_npu")
    folder = Path(program.codegen_artifact_dir)
    names = {str(path.relative_to(folder)) for path in folder.rglob("*.cpp")}
    assert names == {"host/runner_stub.cpp", "aicpu/expand.cpp", "aicore/dispatch.cpp", "aicore/kernel_copy.cpp"}
    assert all(name in (folder / "CMakeLists.txt").read_text() for name in names)
    expander = (folder / "aicpu" / "expand.cpp").read_text()
    assert "plan->dispatch_num_targets = 3;" in expander and re.search(r"target_id = .*\(b \+ INT64_C\(1\)\)", expander)
    with pytest.raises(RuntimeError, match="is source"):
        program.execute()
    assert os.path.isdir(folder / "include")


FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
INTEGERS = (DType.I8, DType.I16, DType.I64, DType.U8, DType.U32)


def sources(text):
    """Numbers of all magnitudes, and what is no number."""
    random = np.random.default_rng(7)
    x = (random.standard_normal((4, 16)) * 2.0 ** random.integers(-30, 30, (4, 16))).astype(np.float32)
    x[:, :4] = [[0.0, -0.0, 1.0, -1.0], [np.inf, -np.inf, np.nan, 65520.0], [1e-7, 6e-8, 3e38, -2e38], [255.5, 1e10, -129.0, 2.5]]
    return x if text == "floats" else np.clip(np.nan_to_num(x), -300, 300)


def every_function(dtype):
    """A kernel in which every function takes elements of a type."""

    @kernel
    def functions(src: In[Tile[4, 16, F32]], out: Out[Tile[4, 16, DType.F64]]):
        x = pto.cast(src, dtype)
        results = [pto.abs(x), pto.relu(x), pto.max(x, pto.mul(x, x)), pto.min(3, x), pto.sub(x, pto.add(x, x))]
        results += [pto.rowsum(x), pto.rowmean(x), pto.rowmax(x), pto.colsum(x), pto.colmax(x)]
        if dtype.is_float:
            results += [getattr(pto, name)(x) for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "silu", "gelu", "sin", "cos")]
            results += [pto.neg(x), pto.div(1.0, x), pto.matmul(x, pto.cast(pto.alloc((16, 2), F32), dtype))]
        else:
            results += [pto.div(x, 3), pto.mul(x, pto.mul(x, x))]
        for number, result in enumerate(results):
            result = pto.cast(pto.rowsum(result) if result.shape == (4, 2) else result, DType.F64)
            pto.store(out, pto.broadcast(result, (4, 16)), offset=(4 * number, 0))

    return functions


@needs_compiler
@pytest.mark.parametrize("dtypes", (FLOATS, INTEGERS))
def test_all_types_and_functions_have_the_same_bits(dtypes, tmp_path):
    x = np.stack([sources("floats" if dtypes is FLOATS else "integers")] * len(dtypes))
    y = np.full((len(dtypes), 4 * 28, 16), -7, np.float64)
    kernels = [every_function(dtype) for dtype in dtypes]

    @workload
    def tasks():
        for number, one in enumerate(kernels):
            one[number](tensor(x)[number], tensor(y, DType.F64)[number])

    same(tasks(), [y], tmp_path)
    assert not (y[:, :48] == -7).all(axis=(1, 2)).any()


@needs_compiler
def test_masks_offsets_and_comparisons(tmp_path):
    random = np.random.default_rng(3)
    x = random.standard_normal((9, 11)).astype(np.float32)
    y, z = np.full((9, 11), 7, np.float32), np.zeros((9, 11), np.float32)

    @kernel
    def chosen(x: In[TILE], y: Out[TILE], z: Out[TILE], limit: Scalar[F32] = 0.25):
        here, there = pto.load(x), pto.load(x, offset=(1, 2))
        mask = pto.less(here, there)
        pto.store(y, pto.where(mask, here, pto.sub(0.0, there)), mask=pto.greater_equal(pto.abs(here), limit))
        rows = pto.equal(here, pto.rowmax(here))
        kept = pto.load(x, offset=(0, 1), mask=pto.not_equal(mask, rows))
        pto.store(z, pto.add(kept, pto.cast(pto.less_equal(there, pto.colmax(there)), F32)), offset=(1, 0))

    @workload
    def tasks():
        for i in P(2):
            for j in P(2):
                source, target = tensor(x), tensor(y)
                part = (slice(i * 4, i * 4 + 4), slice(j * 4, j * 4 + 4))
                chosen[i, j](source[part], target[part], other[part])

    other = tensor(z)
    same(tasks(), [y, z], tmp_path)
    assert (y == 7).any() and (y != 7).any()


@needs_compiler
def test_a_masked_access_needs_only_the_elements_of_the_mask(tmp_path):
    x, y = np.arange(20, dtype=np.float32).reshape(5, 4), np.zeros((5, 4), np.float32)

    @kernel
    def last(x: In[TILE], y: Out[TILE]):
        mask = pto.less(pto.load(x), 8.0)
        pto.store(y, pto.load(x, offset=(3, 0), mask=mask), offset=(3, 0), mask=mask)

    same(workload(lambda: last(tensor(x), tensor(y)))(), [y], tmp_path)
    np.testing.assert_array_equal(y[3:], x[3:])


@needs_compiler
def test_columns_are_taken_apart_and_put_together(tmp_path):
    x = np.random.default_rng(5).standard_normal((5, 22)).astype(np.float32)
    y, z = np.zeros((5, 22), np.float32), np.zeros((5, 22), np.float32)

    @kernel
    def turned(x: In[Tile[4, 8, F32]], y: Out[Tile[4, 8, F32]], z: Out[Tile[4, 8, F32]]):
        even, odd = pto.slice_even(x), pto.slice_odd(x)
        pto.store(y, pto.interleave(pto.sub(0.0, odd), even))
        pto.store(z, pto.add(pto.broadcast(pto.rowsum(even), (4, 8)), pto.broadcast(pto.colmax(x), (4, 8))))

    @workload
    def tasks():
        for i in P(2):
            for j in P(3):
                part = (slice(i * 4, i * 4 + 4), slice(j * 8, j * 8 + 8))
                turned[i, j](tensors[0][part], tensors[1][part], tensors[2][part])

    tensors = [tensor(one) for one in (x, y, z)]
    same(tasks(), [y, z], tmp_path)
    np.testing.assert_array_equal(y[:, 0::2], -x[:, 1::2])


@kernel
def fold(src: In[TILE], total: InOut[TILE]):
    """The order of the tokens is in the result."""
    pto.store(total, pto.add(pto.mul(pto.load(total), 0.5), src))


@kernel
def slow(src: In[TILE], dst: Out[TILE]):
    pto.store(dst, pto.exp(pto.exp(pto.exp(src))))


def two_producers(arrays, depth, axes=None):
    """One producer is slow, and sends more where a slot says so; the other one goes through a ragged and a sparse loop."""
    x, y, total, counts = (tensor(one) for one in arrays)
    ragged, sparse = axes or (Ragged(2, [1, 2]), Sparse(2, [0, 1, 3], [6, 7, 5]))
    tokens, marks = Channel("tokens", depth), Channel("marks", depth)

    def slowly():
        for t in P.seq(4, name="t"):
            slot_set_u64(0, (t % 2).cast_u64())
            with P.when(slot_u64(0) == 1):
                slow[t](x[t], y[t + 8])
            send(tokens, task(slow, [t], {"src": x[t], "dst": y[t]}))

    def quick():
        for t in P.seq(ragged):
            send(tokens, task(copy, [t + 4], {"src": x[t + 4], "dst": y[t + 4]}))
            send(marks, task(mark, [t.row], {"y": counts[t.row]}))
        for e in P.sel(sparse):
            send(tokens, task(copy, [e], {"src": x[e], "dst": y[e]}))
        # This process ends last, so that the time shows when it had room for its tokens.
        for t in P.seq(12):
            slow[t](x[0], y[12])

    first = process("slow one").produces(tokens).body(workload(slowly)())
    second = process("quick").produces(tokens, marks).body(workload(quick)())
    folds = consume(tokens, lambda t: task(fold, [t], {"src": y[t], "total": total[0]}))
    folding = process("folds").consumes(tokens).body(folds)
    marking = process("marks").consumes(marks).body(consume(marks, lambda t: task(mark, [t], {"y": counts[t + 2]})))
    return connect([first, [second, folding], marking]), ragged, sparse


def arrays_of_producers():
    x = np.random.default_rng(11).standard_normal((8, 4, 4)).astype(np.float32)
    return [x, np.zeros((16, 4, 4), np.float32), np.zeros((1, 4, 4), np.float32), np.zeros((4, 1, 1), np.int32)]


@needs_compiler
@pytest.mark.parametrize("depth, latency", ((0, 0), (1, 0), (2, 30)))
def test_pipelines_have_the_same_order_and_time(depth, latency, tmp_path):
    arrays = arrays_of_producers()
    pipeline, ragged, sparse = two_producers(arrays, depth)
    lists = {f"lengths_{id(ragged)}": [1, 2], f"indptr_{id(sparse)}": [0, 1, 3], f"indices_{id(sparse)}": [6, 7, 5]}
    name = "__pto_wsp_channel_latency_cycles"
    symbols = {f"outer_{id(ragged)}": 2, f"outer_{id(sparse)}": 2, name: latency}
    same(pipeline, arrays[1:], tmp_path, symbols, lists, lambda program: program.set_symbol_u64(name, latency))
    assert arrays[3].ravel().tolist() == [1, 2, 1, 2]


@needs_compiler
def test_a_deadlock_names_the_processes(tmp_path):
    x, y = tiles(4)
    there, back = Channel("there", 1), Channel("back", 1)

    def answers(one, other):
        return consume(one, lambda t: send(other, task(copy, [t], {"src": tensor(x)[t], "dst": tensor(y)[t]})))

    body = workload(lambda: copy[0](tensor(x)[0], tensor(y)[0]))()
    names = [process("done").body(body), process("a").consumes(back).produces(there).body(answers(back, there))]
    pipeline = connect([*names, process("b").consumes(there).produces(back).body(answers(there, back))])
    emitted = Emitted(pipeline, tmp_path)
    fault, tasks, _ = emitted.run({"__pto_wsp_channel_latency_cycles": 0})
    assert (fault, tasks) == (4, 1)
    assert ctypes.c_uint64.in_dll(emitted.library, "pto_wsp_waiting").value == 0b110
    assert emitted.table("pto_wsp_processes") == ["done", "a", "b"]


@needs_compiler
def test_what_has_no_result_is_a_fault(tmp_path):
    x, y = np.ones((6, 4), np.int32), np.zeros((6, 4), np.int32)

    @kernel
    def divided(x: In[Tile[4, 4, I32]], y: Out[Tile[4, 4, I32]], n: Scalar[I32]):
        pto.store(y, pto.div(x, n))

    @kernel
    def below(x: In[Tile[4, 4, I32]], y: Out[Tile[4, 4, I32]]):
        pto.store(y, pto.load(x, offset=(3, 0)))

    @kernel
    def short(x: In[Tile[4, 4, I32]], y: Out[Tile[4, 4, I32]]):
        pto.store(y, x)

    def emitted(number, body):
        (tmp_path / str(number)).mkdir()
        return Emitted(workload(body)(), tmp_path / str(number)).run({"n": 0})[0]

    assert emitted(0, lambda: divided(tensor(x), tensor(y), Symbol("n"))) == 3
    assert emitted(1, lambda: below(tensor(x), tensor(y))) == 2
    assert emitted(2, lambda: short(tensor(x)[4:8], tensor(y)[0:4])) == 3
    assert not y.any()


@needs_compiler
def test_names_that_cpp_has(tmp_path):
    x, y = tiles(2)

    @kernel
    def new(task: In[TILE], v0: Out[TILE], int: Scalar[F32] = float("inf")):
        pto.store(v0, pto.min(pto.add(task, 1.0), int))

    @workload
    def tasks():
        for plan in P(2, names=["switch"]):
            new[plan](tensor(x)[plan], tensor(y)[plan])

    same(tasks().dispatch(DispatchPolicy.affinity(lambda t: t.get("switch"), 1)), [y], tmp_path)


def test_an_instruction_without_a_source_is_an_error():
    text = "kernel k() {\n  %0 = fold %1 : f32[1, 1]\n}\n"
    with pytest.raises(CompileError, match="Kernel k: `fold` has no C\\+\\+ form. Compile it for cpu_sim."):
        kernel_body("k", (), text)

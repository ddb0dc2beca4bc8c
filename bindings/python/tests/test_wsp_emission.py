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
    In,
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
        command = [compiler, "-std=c++17", "-O0", "-Wall", "-Wno-unused", "-Werror", "-shared", "-fPIC", "-D__CPU_SIM"]
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


def test_what_has_no_source_is_an_error():
    x, y = tiles(2)
    channel = Channel("c")
    sends = for_each(2, lambda t: send(channel, task(copy, [t], {"src": tensor(x)[t], "dst": tensor(y)[t]})))
    pipeline = connect(
        [
            process("a").produces(channel).body(sends),
            process("b")
            .consumes(channel)
            .body(consume(channel, lambda t: task(copy, [t], {"src": tensor(x)[t], "dst": tensor(y)[t]}))),
        ]
    )
    with pytest.raises(CompileError, match="pipeline has no C\\+\\+ form"):
        pipeline.compile(target="ascend_npu")

    @kernel
    def masked(x: In[TILE], y: Out[TILE]):
        pto.store(y, x, mask=pto.greater(x, 0.0))

    with pytest.raises(CompileError, match="Kernel masked: .* has no C\\+\\+ form"):
        workload(lambda: masked(tensor(x)[0], tensor(y)[0]))().compile(target="ascend_npu")

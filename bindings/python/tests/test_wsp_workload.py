"""Loops, axes, conditions, slots and symbols: what a run does, and what is an error."""

import numpy as np
import pytest
from wsp import F32, I32, TILE, copy, mark, run, tensor, tiles

from pto_wsp import (
    CompileError, Dense, DenseDyn, DType, ExecutionError, In, Out, P, Ragged, Scalar, Sparse, Symbol, Tensor, Tile,
    WorkloadWarning, combine, cond, for_each, kernel, parallel_for, pto, select, sequential, slot_load_u64, slot_set_u64,
    task, workload,
)  # fmt: skip
from pto_wsp.scalar_expr import axis, slot_i64, slot_u64, symbol_u64


def marks(count=8):
    array = np.zeros((count, 1, 1), np.int32)
    return array, tensor(array)


def marked(node, array):
    array[:] = 0
    run(node if hasattr(node, "execute") else node.compile())
    return array.ravel().tolist()


def test_a_dynamic_axis_needs_no_other_program():
    array, y = marks()

    @workload
    def loop():
        for _ in P(DenseDyn(0)):
            mark[_](y[_])

    program = loop().compile()
    assert marked(program, array) == [0] * 8
    program.set_axis_sizes({"b": 3})
    assert marked(program, array) == [1] * 3 + [0] * 5
    program.set_axis_sizes({"b": 9})
    program.execute()
    with pytest.raises(ExecutionError, match=r"test_wsp_workload.py:\d+|dimension 0"):
        program.synchronize()
    with pytest.raises(ValueError, match="no dynamic axis 'c'"):
        program.set_axis_sizes({"c": 1})


def test_loops_are_named_in_their_order_or_as_the_program_says():
    array, y = marks()

    @workload
    def loop():
        for one, two in P(DenseDyn(2), DenseDyn(1)):
            for other in P(DenseDyn(1), names=["t"]):
                for last in P(DenseDyn(1)):
                    mark[one, two, other, last](y[one])

    program = loop().compile()
    program.set_axis_sizes({"b": 5, "h": 1, "t": 1, "s": 1})
    assert marked(program, array) == [1] * 5 + [0] * 3
    with pytest.raises(ValueError, match=r"no dynamic axis 'one'. It has: b, h, t, s. A loop is named by"):
        program.set_axis_sizes({"one": 5})
    assert "b, h, s, d, i, j, k, l, m, n in the order" in DenseDyn.__doc__


@pytest.mark.parametrize("order", ["lambda", "cond", "loop"])
def test_a_dynamic_axis_works_everywhere(order):
    array, y = marks()
    one = lambda i: task(mark, [i], {"y": y[i]})  # noqa: E731
    if order == "lambda":
        node = parallel_for(DenseDyn(5), one)
    elif order == "cond":
        node = cond(symbol_u64("on") == 1, for_each(DenseDyn(5), one))
    else:
        node = for_each(2, lambda j: parallel_for(DenseDyn(3), lambda i: task(mark, [i], {"y": y[i + 3 * j]})))
    program = node.compile()
    if order == "cond":
        program.set_symbol_u64("on", 1)
    assert sum(marked(program, array)) == (6 if order == "loop" else 5)


def test_ragged_rows():
    array, y = marks()
    ragged = Ragged(2, [1, 1])

    @workload
    def loop():
        for t in P.seq(ragged, name="t"):
            mark[t](y[t.row * 4 + t.place])

    program = loop().compile()
    assert marked(program, array) == [1, 0, 0, 0, 1, 0, 0, 0]
    program.set_symbol_ptr(f"lengths_{id(ragged)}", np.array([3, 2], np.int32))
    assert marked(program, array) == [1, 1, 1, 0, 1, 1, 0, 0]
    program.set_symbol_u64(f"outer_{id(ragged)}", 3)
    program.execute()
    with pytest.raises(ExecutionError, match="has 2 elements, and the axis needs 3"):
        program.synchronize()


def test_sparse_columns_and_rows():
    array, y = marks()
    sparse = Sparse(2, [0, 2, 3], [0, 2, 5])

    @workload
    def all_columns():
        for e in P.sel(sparse):
            mark[e](y[e])

    assert marked(all_columns(), array) == [1, 0, 1, 0, 0, 1, 0, 0]

    @workload
    def by_row():
        for r in P(2):
            for e in P.sel(sparse[r]):
                mark[r, e](y[e + r])

    assert marked(by_row(), array) == [1, 0, 1, 0, 0, 0, 1, 0]
    assert marked(select([7, 1], lambda e: task(mark, [e], {"y": y[e]})), array) == [0, 1, 0, 0, 0, 0, 0, 1]


def test_when_needs_no_otherwise():
    array, y = marks()

    @workload
    def loop():
        for i in P(8):
            with P.when(axis("b") < 3):
                mark[i](y[i])
            with P.pipe():
                with P.when(2 - i < -3):
                    mark[i](y[i])
                with P.otherwise():
                    pass

    assert marked(loop(), array) == [1, 1, 1, 0, 0, 0, 1, 1]


def test_combine_and_cond_count_in_a_workload():
    array, y = marks()

    @workload
    def tree():
        combine(mark[0](y[0]), mark[1](y[1]))
        cond(symbol_u64("s") > 3, mark[2](y[2]), sequential(mark[3](y[3]), mark[3](y[3])))

    program = tree().compile()
    program.set_symbol_u64("s", 4)
    assert marked(program, array)[:4] == [1, 1, 1, 0]
    program.set_symbol_u64("s", 3)
    assert marked(program, array)[:4] == [1, 1, 0, 2]


def test_an_empty_workload_runs():
    @workload
    def nothing():
        pass

    assert run(nothing().compile()) == 0


def test_slots_are_state_in_program_order():
    array, y = marks()
    flags = np.array([[[3]], [[-1]], [[250]]], np.int16)
    f = tensor(flags)

    @workload
    def loop():
        for i in P(3):
            slot_load_u64(1, f[i])
            slot_set_u64(2, slot_i64(1) + 1)
            with P.when(slot_u64(2) == 4):
                mark[i](y[i])
            with P.otherwise():
                with P.when(slot_i64(2) == 0):
                    mark[i](y[i + 3])
                with P.otherwise():
                    mark[i](y[i + 4])

    assert marked(loop(), array) == [1, 0, 0, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("target", ["cpu_sim", "a2a3sim"])
def test_a_slot_counts_from_the_beginning_of_a_slice(target):
    x, y = np.arange(24, dtype=np.int32).reshape(4, 6), np.zeros((4, 1, 1), np.int32)
    X, Y = tensor(x), tensor(y)

    @kernel
    def keep(to: Out[Tile[1, 1, I32]], value: Scalar[I32]):
        pto.store(to, pto.broadcast(value, (1, 1)))

    @workload
    def reads():
        for i in P.seq(4):
            slot_load_u64(0, X[i : i + 1, 2:6], row=0, col=1)
            keep[i](Y[i], slot_u64(0))

    run(reads().compile(target=target))
    assert y.ravel().tolist() == x[:, 3].tolist()


def test_missing_symbols_have_names():
    array, y = marks()

    @workload
    def loop():
        with P.when(symbol_u64("limit") > 3):
            mark[0](y[0])

    program = loop().compile()
    program.execute()
    with pytest.raises(ExecutionError, match="limit is not bound"):
        program.synchronize()
    with pytest.warns(WorkloadWarning, match="no symbol limits"):
        program.set_symbol_u64("limits", 4)


def test_loops_of_one_name_are_told_apart():
    array, y = marks()
    nested = parallel_for(2, lambda i: parallel_for(4, lambda j: task(mark, [i, j], {"y": y[i * 4 + j]})))
    assert marked(nested, array) == [1] * 8
    with pytest.raises(CompileError, match="2 loops around it have the name i"):
        parallel_for(2, lambda i: parallel_for(4, lambda j: task(mark, [axis("i")], {"y": y[j]}))).compile()


def test_a_scalar_symbol_and_a_default():
    x, y = tiles(1)

    @kernel
    def scale(x: In[TILE], y: Out[TILE], s: Scalar[F32], t: Scalar[I32] = 2):
        pto.store(y, pto.mul(pto.mul(x, s), t))

    @workload
    def one():
        scale(tensor(x)[0], tensor(y)[0], Symbol("s"))

    program = one().compile()
    for value in (2.0, -0.5):
        program.set_symbol_f32("s", value)
        run(program)
        np.testing.assert_allclose(y, x * value * 2)
    with pytest.raises(ValueError, match="for f32, not for u64"):
        program.set_symbol_u64("s", 2)


def test_kernels_of_one_name_stay_apart():
    x, y = tiles(2)

    def kernel_of(factor):
        @kernel
        def scale(x: In[TILE], y: Out[TILE]):
            pto.store(y, pto.mul(x, factor))

        return scale

    twice, thrice = kernel_of(2.0), kernel_of(3.0)

    @workload
    def both():
        twice[0](tensor(x)[0], tensor(y)[0])
        thrice[1](tensor(x)[1], tensor(y)[1])

    run(both().compile())
    np.testing.assert_allclose(y, x * np.array([2, 3], np.float32)[:, None, None])


def test_views_of_any_strides_slices_and_shared_memory():
    x = np.random.default_rng(0).standard_normal((16, 24)).astype(np.float32)
    y = np.zeros((16, 24), np.float32)
    a, b = tensor(x[::-2, ::3]), tensor(y.T.reshape(24, 16)[:8, :8])

    @workload
    def pieces():
        for i in P.seq(2):
            for j in P.seq(2):
                copy[i, j](a[i * 4 : i * 4 + 4, j * 4 : j * 4 + 4], b[i * 4 : i * 4 + 4, j * 4 : j * 4 + 4])

    run(pieces().compile())
    np.testing.assert_array_equal(y.T[:8, :8], x[::-2, ::3])
    shared = np.arange(48, dtype=np.float32).reshape(3, 4, 4)
    source, target = tensor(shared), tensor(shared[1:])

    @workload
    def chain():
        for i in P(2):
            copy[i](source[i], target[i])

    run(chain().compile())
    np.testing.assert_array_equal(shared, np.broadcast_to(shared[0], (3, 4, 4)))


def test_a_slice_of_a_slice_and_a_remainder():
    x, y = np.arange(60, dtype=np.float32).reshape(15, 4), np.full((15, 4), -1, np.float32)

    @workload
    def rows():
        for i in P(4):
            copy[i](tensor(x).slice(4 * i, 4 * i + 4), target.slice(4 * i, 4 * i + 4))

    target = tensor(y)
    run(rows().compile())
    np.testing.assert_array_equal(y, x)
    inner = tensor(x).slice(4, 12).slice(2, 6)
    y[:] = -1
    part = workload(lambda: copy(inner, target.slice(0, 4)))
    run(part().compile())
    np.testing.assert_array_equal(y[:4], x[6:10])
    assert (y[4:] == -1).all()


def wrong_calls():
    x, y = tiles(2)
    a, b = tensor(x), tensor(y)
    half = Tensor(x.astype(np.float16), x.shape, DType.F16)

    @kernel
    def scalar(s: Scalar[I32], y: Out[Tile[1, 1, I32]]):
        pto.store(y, s)

    marks_of = tensor(np.zeros((1, 1), np.int32))
    return [
        (lambda: copy(src=a[0]), "argument dst: It is missing"),
        (lambda: copy(src=a[0], dst=None), "None is no Tensor"),
        (lambda: copy(src=x[0], dst=b[0]), "is no Tensor"),
        (lambda: copy(src=a[0], dst=b[0], third=1), "no parameter third"),
        (lambda: copy(half[0], b[0]), "is of type f16"),
        (lambda: copy(a, b[0]), "Index the leading ones"),
        (lambda: scalar(1.5, marks_of), "1.5 is no i32"),
        (lambda: scalar(2**31, marks_of), "is no i32"),
        (lambda: scalar(a[0], marks_of), "is no number"),
        (lambda: slot_set_u64(256, 1), "no slot 256"),
        (lambda: slot_load_u64(0, x), "needs a tensor"),
        (lambda: task("copy", [0], []), "Give the @kernel function"),
    ]


@pytest.mark.parametrize("number", range(12))
def test_wrong_calls_have_lines(number):
    call, message = wrong_calls()[number]

    @workload
    def wrong():
        for _ in P.seq(1, name="rounds"):
            call()

    with pytest.raises(CompileError, match=message) as error:
        wrong().compile()
    assert "test_wsp_workload.py:" in str(error.value) or "slot 256" in str(error.value)
    assert "wrong" in str(error.value)


def test_what_stands_in_the_wrong_place():
    array, y = marks()
    for outside in (lambda: list(P(2)), lambda: P.seq(2), lambda: P.when(True).__enter__(), lambda: mark[0](y[0])):
        with pytest.raises(RuntimeError, match="workload"):
            outside()

    @workload
    def otherwise():
        with P.otherwise():
            pass

    @workload
    def left():
        for _ in P(2):
            break

    with pytest.raises(RuntimeError, match="follows no P.when"):
        otherwise()
    with pytest.raises(RuntimeError, match="left by break"):
        left()
    with pytest.raises(TypeError, match="no truth value"):
        workload(lambda: [i for i in P(2) if i > 1])()
    outside_of_its_loop = []

    @workload
    def escaped():
        for i in P(2):
            outside_of_its_loop.append(i)
        mark[0](y[outside_of_its_loop[0]])

    with pytest.raises(CompileError, match="outside of its loop"):
        escaped().compile()
    with pytest.raises(IndexError):
        y[8]
    with pytest.raises(TypeError, match="no axis"):
        parallel_for("b", lambda i: None)


def test_a_tile_that_leaves_its_tensor_is_a_fault():
    x, y = tiles(2)
    small, target = Tensor(x.reshape(8, 2, 2), (8, 2, 2), F32), tensor(y)

    @kernel
    def row(x: In[TILE], y: Out[TILE]):
        pto.store(y, x)

    @workload
    def outside():
        for i in P(8):
            row[i](small[i], target[0])

    with pytest.warns(WorkloadWarning, match="is not the view"):
        program = outside().compile()
    program.execute()
    with pytest.raises(ExecutionError, match=r"test_wsp_workload.py:\d+.*b = \d.*Kernel row.*operand x"):
        program.synchronize()


def test_data_must_fit_its_tensor():
    x, y = tiles(1)
    cases = [
        (Tensor(x.astype(np.float64), x.shape, F32), "data of type float64"),
        (Tensor(x, (1, 2, 8), F32), "has the shape"),
        (Tensor([1, 2], (1, 4, 4), F32), "DLPack"),
    ]
    for wrong, message in cases:
        program = workload(lambda: copy(wrong[0], tensor(y)[0]))  # noqa: B023
        with pytest.warns() if "shape" in message else _nothing():
            compiled = program().compile()
        with pytest.raises(ExecutionError, match=message):
            run(compiled)
    y.flags.writeable = False
    with pytest.raises(ExecutionError, match="read-only"):
        run(workload(lambda: copy(tensor(x)[0], tensor(y)[0]))().compile())


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_dlpack_in_and_out():
    x, y = tiles(1)

    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    target = Tensor(Foreign(y), y.shape, F32)
    run(workload(lambda: copy(Tensor(Foreign(x), x.shape, F32)[0], target[0]))().compile())
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(np.from_dlpack(target), x)


def test_traces_and_statistics():
    x, y = tiles(4)

    @workload
    def tasks():
        for t in P(4):
            copy[t](tensor(x)[t], tensor(y)[t])

    program = tasks().streams(2).compile()
    program.enable_tracing()
    assert run(program) == 64
    assert [(e.kernel, e.axes, e.lane, e.start, e.end) for e in program.trace.events] == [
        ("copy", (t,), t % 2, t // 2 * 32, t // 2 * 32 + 32) for t in range(4)
    ]
    assert program.trace.summary()["kernels"] == {"copy": {"tasks": 4, "cycles": 128}}
    chrome = program.trace.to_chrome_trace()
    assert len(chrome["traceEvents"]) == 4
    assert chrome["pto"]["kernels"] == {"0": "copy"} and chrome["pto"]["end_ns"] == 64
    assert all(len(row) == len(chrome["pto"]["task_columns"]) for row in chrome["pto"]["tasks"])
    assert program.tasks_done == 4
    program.disable_tracing()
    program.clear_trace()
    run(program)
    assert not program.trace.events
    assert (program.stats.task_count, program.stats.parallel_tasks) == (4, 2)
    assert program.stats.compile_time_ms > 0 and program.stats.execute_time_ms > 0


def test_tasks_are_enumerated():
    w = parallel_for(2, lambda i: cond(i < 1, task("a", [i], []), task("b", [i * 3], [])))
    assert [(t.kernel, t.params, t.id) for t in w.enumerate()] == [("a", [0], 0), ("b", [3], 1)]
    with pytest.raises(RuntimeError, match="before"):
        cond(slot_u64(0) == 0, w).enumerate()


def test_unknown_targets():
    with pytest.raises(CompileError, match="no target 'gpu'"):
        combine().compile(target="gpu")

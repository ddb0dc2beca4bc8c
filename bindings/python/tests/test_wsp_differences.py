"""What PTO-WSP 0.1.0 leaves out, gets wrong or does not tell, in the order of the list of its defects: it works here, or is an error with a
sentence. Defects that have a test where the feature is tested are named there: conditions without `otherwise`, empty workloads, `P.pipe`, errors of
runs, `combine` and `cond`, `A[i + 1]`, `2 - expr`, kernels of one name, `replicate`, traces, dynamic axes in lambdas, conditions and processes."""

import numpy as np
import pytest
from wsp import F32, TILE, copy, mark, run, tensor, tiles

from pto_wsp import (
    CompileError, DenseDyn, DispatchPolicy, DType, ExecutionError, In, InOut, KernelError, MemLayout, Out, P, Scalar, Sparse,
    TaskWindow, Tensor, TensorLayout, TensorReplicate, Tile, WindowMode, kernel, pto, ptoisa, ptoisa_kernel, workload,
)  # fmt: skip
from pto_wsp.scalar_expr import symbol_u64

RANDOM = np.random.default_rng(3)
#: Types that NumPy has as well.
NUMPY = [dtype for dtype in DType if dtype is not DType.BF16]


def stored(value, source, target):
    """What a tile of `source` is after a store to a tensor of `target`."""
    x, y = np.asarray(value).astype(source.numpy), np.zeros((3, 4), target.numpy)

    def store(x, y):
        pto.store(y, x)

    store.__annotations__ = {"x": In[Tile[3, 4, source]], "y": Out[Tile[3, 4, target]]}
    made = kernel(store)
    run(workload(lambda: made(tensor(x, source), tensor(y, target)))().compile())
    return y


@pytest.mark.parametrize("source", NUMPY, ids=lambda dtype: dtype.value)
def test_a_store_converts_every_type_to_every_other(source):
    values = RANDOM.integers(0, 100, (3, 4))
    for target in NUMPY:
        np.testing.assert_array_equal(stored(values, source, target), values.astype(target.numpy), err_msg=target.value)


@pytest.mark.parametrize("dtype", list(DType), ids=lambda dtype: dtype.value)
def test_scalars_of_every_type(dtype):
    y = np.zeros((2, 2), dtype.numpy)

    def spread(y, s):
        pto.store(y, pto.broadcast(s, (2, 2)))

    spread.__annotations__ = {"y": Out[Tile[2, 2, dtype]], "s": Scalar[dtype]}
    made = kernel(spread)
    run(workload(lambda: made(tensor(y, dtype), 3))().compile())
    # A brain float of 3 in the bits that NumPy has for it.
    assert (y == (0x4040 if dtype is DType.BF16 else 3)).all()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum"])
@pytest.mark.parametrize("shape", [(6, 1), (1, 6), (1, 10), (10, 1), (1, 1), (3, 10)], ids=str)
def test_every_broadcast_or_an_error(name, shape):
    function = {"sub": np.subtract, "mul": np.multiply, "div": np.divide}.get(name) or getattr(np, name)
    x, b = (RANDOM.uniform(1, 2, of).astype(np.float32) for of in ((6, 10), shape))
    y = np.zeros((6, 10), np.float32)

    def pair(x, b, y):
        pto.store(y, getattr(pto, name)(x, b))

    pair.__annotations__ = {"x": In[Tile[6, 10, F32]], "b": In[Tile[shape[0], shape[1], F32]], "y": Out[Tile[6, 10, F32]]}
    made = kernel(pair)
    if shape == (3, 10):
        with pytest.raises(KernelError, match="one element for each row, for each column, or for all"):
            made.trace()
        return
    run(workload(lambda: made(tensor(x), tensor(b), tensor(y)))().compile())
    by_row = {(6, 1): (6, 1), (1, 6): (6, 1), (1, 1): (1, 1)}
    np.testing.assert_array_equal(y, function(x, b.reshape(by_row.get(shape, (1, 10)))))


def marked(schedule):
    y = np.zeros((8, 1, 1), np.int32)
    of = tensor(y)

    @workload
    def tasks():
        for i in P(8):
            mark[i](of[i])

    program = schedule(tasks()).compile()
    return run(program), program.stats.window_overflows


@pytest.mark.parametrize("schedule", [lambda w: w, lambda w: w.dispatch(DispatchPolicy.round_robin(1))], ids=["alone", "dispatch"])
def test_windows_count_without_a_dispatch_policy(schedule):
    window = lambda mode: lambda w: schedule(w).task_graph(window=TaskWindow(2, "tasks", mode))  # noqa: E731
    assert marked(window(WindowMode.STALL)) == (24, 0)
    assert marked(window(WindowMode.BENCHMARK)) == (24, 6)
    with pytest.raises(ExecutionError, match="At b = 2: 2 tasks under way, and the window takes no more"):
        marked(window(WindowMode.ABORT))


@pytest.mark.parametrize("mem", [None, MemLayout.row_major((8, 4)), MemLayout.col_major((8, 4)), MemLayout((1, 8), swizzle="x")], ids=str)
@pytest.mark.parametrize("target", ["cpu_sim", "a2a3sim"])
def test_a_layout_changes_no_view(mem, target):
    x = RANDOM.standard_normal((8, 4)).astype(np.float32)
    y = np.zeros_like(x)
    layout = TensorLayout((TensorReplicate(),) * 2, mem)
    X, Y = (Tensor(array, array.shape, F32, layout=layout) for array in (x, y))

    @workload
    def halves():
        for i in P(2):
            copy[i](X.slice(4 * i, 4 * i + 4), Y[4 * i : 4 * i + 4])

    run(halves().compile(target=target))
    np.testing.assert_array_equal(y, x)


def test_tasks_are_counted_where_they_run():
    y = np.zeros((8, 1, 1), np.int32)
    of = tensor(y)

    @workload
    def some():
        for i in P(DenseDyn(0)):
            with P.when(i < symbol_u64("n")):
                mark[i](of[i])

    for target in ("cpu_sim", "a2a3sim"):
        program = some().compile(target=target)
        program.set_axis_sizes({"b": 5})
        program.set_symbol_u64("n", 3)
        run(program)
        assert program.stats.task_count == 3


def test_tload_reads_what_was_stored():
    y = np.ones((1, 8), np.float32)

    @ptoisa_kernel
    def twice(y: InOut[Tile[1, 8, F32]]):
        for _ in range(2):
            ptoisa.tstore(y, ptoisa.TADDS(ptoisa.tload(y), 1.0))

    run(workload(lambda: twice(tensor(y)))().compile())
    assert (y == 3).all()


EXPANDS = [("ROW", name) for name in ("ADD", "SUB", "MUL", "DIV", "MAX", "MIN")] + [("COL", name) for name in ("SUB", "MUL", "DIV")]


@pytest.mark.parametrize("side, name", EXPANDS)
def test_expands_take_a_vector(side, name):
    function = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide, "MAX": np.maximum, "MIN": np.minimum}[name]
    shape = (4, 1) if side == "ROW" else (1, 6)
    x, v = (RANDOM.uniform(1, 2, of).astype(np.float32) for of in ((4, 6), shape))
    y = np.zeros_like(x)

    def expand(x, v, y):
        ptoisa.tstore(y, getattr(ptoisa, f"T{side}EXPAND{name}")(ptoisa.tload(x), ptoisa.tload(v)))

    expand.__annotations__ = {"x": In[Tile[4, 6, F32]], "v": In[Tile[shape[0], shape[1], F32]], "y": Out[Tile[4, 6, F32]]}
    made = ptoisa_kernel(expand)
    run(workload(lambda: made(*map(tensor, (x, v, y))))().compile())
    np.testing.assert_array_equal(y, function(x, v))


@pytest.mark.parametrize("dims", range(1, 7))
def test_tensors_of_many_dimensions(dims):
    """Eight dimensions on this machine; five on a device, which says so."""
    shape = (2,) * dims + (4, 4)
    x = RANDOM.standard_normal(shape).astype(np.float32)
    y = np.zeros_like(x)
    X, Y = tensor(x), tensor(y)

    @workload
    def copies():
        for at in P(*[2] * dims):
            copy[at](X[at], Y[at])

    run(copies().compile())
    np.testing.assert_array_equal(y, x)
    y[:] = 0
    if dims > 3:
        with pytest.raises(CompileError, match="dimensions"):
            copies().compile(target="a2a3sim")
        return
    run(copies().compile(target="a2a3sim"))
    np.testing.assert_array_equal(y, x)


def test_a_plan_that_is_too_long_is_an_error():
    y = tensor(np.zeros((1, 1, 1), np.int32))

    @workload
    def long():
        for i in range(1000):
            mark[i](y[0])

    assert run(long().compile()) == 3000, "only a plan has an end"
    with pytest.raises(CompileError, match=r"Workload long has \d+ words of plan, and a plan holds \d+\. Take less"):
        long().compile(target="a2a3sim")


def test_the_eleventh_loop_has_the_name_of_the_first():
    y = np.zeros((2, 1, 1), np.int32)
    of = tensor(y)

    @workload
    def nested():
        for _ in P(*[1] * 10):
            for q in P(2):
                mark[q](of[q])

    run(nested().compile())
    assert y.ravel().tolist() == [1, 1], "loop variables are distinguished by their loops"


def test_what_a_selection_goes_over():
    y = np.zeros((8, 1, 1), np.int32)
    of, sparse = tensor(y), Sparse(2, [0, 2, 3], [0, 2, 5])

    @workload
    def by_expression():
        for r in P(2):
            for e in P.sel(sparse[1 - r]):
                mark[e](of[e + r])

    run(by_expression().compile())
    assert y.ravel().tolist() == [0, 1, 0, 1, 0, 1, 0, 0]
    for wrong in (5, symbol_u64("n") + 1):
        with pytest.raises(TypeError, match="goes over a sparse axis or a list of indices, not over"):
            workload(lambda: [None for _ in P.sel(wrong)])()  # noqa: B023


def test_the_size_of_an_axis_is_bound_by_its_name():
    with pytest.raises(TypeError, match="the size of an axis is an integer"):
        DenseDyn(symbol_u64("n"))


def test_a_tile_at_the_end_has_what_is_there():
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    y = np.full((6, 4), -1, np.float32)
    X, Y = tensor(x), tensor(y)

    @kernel
    def mean(x: In[TILE], y: Out[TILE]):
        pto.store(y, pto.coladd(pto.sub(x, x), pto.colsum(x)))

    @workload
    def parts():
        for i in P(2):
            mean[i](X[4 * i : 4 * i + 4], Y[4 * i : 4 * i + 4])

    run(parts().compile())
    np.testing.assert_array_equal(y[:4], np.broadcast_to(x[:4].sum(0), (4, 4)))
    np.testing.assert_array_equal(y[4:], np.broadcast_to(x[4:].sum(0), (2, 4)), "two rows are summed, not four")


def test_nothing_is_lost_where_a_run_fails():
    x, y = tiles(2)
    X, Y = tensor(x), tensor(y)

    @workload
    def far():
        for i in P.seq(DenseDyn(3), name="i"):
            copy[i](X[i], Y[i])

    program = far().compile()
    program.execute()
    with pytest.raises(ExecutionError, match=r"i = 2"):
        program.synchronize()
    assert (y == x).all()
    program.set_axis_sizes({"i": 2})
    run(program)

"""Groups: collectives and layouts move data as NumPy says that they must."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from pto_runtime import Group
from pto_runtime.errors import HostError
from pto_wsp import (
    Channel, DistributedTensor, LayoutIncompatibleError, TensorLayout, TensorReplicate, TensorShard, allgather, allreduce,
    distribute, partial_results, process, reduce_scatter, relayout,
)  # fmt: skip

R, S0, S1 = TensorReplicate(), TensorShard(0), TensorShard(1)
SMALL = {"gm_bytes": 512 << 20}


@pytest.fixture(scope="module", params=["local", "virtual"])
def mesh(request):
    with getattr(Group, request.param)((2, 3), **SMALL) as group:
        yield group


@pytest.fixture(scope="module")
def four():
    with Group.local(4, **SMALL) as group:
        yield group


def draw(ranks, shape, dtype="float32", seed=0):
    random = np.random.default_rng(seed)
    return [random.integers(-9, 10, shape).astype(dtype) for _ in range(ranks)]


def same(found, expected):
    for rank, (a, b) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"rank {rank}")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint16"])
@pytest.mark.parametrize("op", ["sum", "max", "min", "prod"])
def test_all_reduce_of_every_type(four, dtype, op):
    arrays = draw(4, (5, 7), dtype)
    with np.errstate(over="ignore"):
        reduce = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[op].reduce
        same(four.all_reduce(arrays, op), [reduce(arrays, dtype=dtype)] * 4)


def test_the_mean(four):
    arrays = draw(4, (3,), "float64")
    same(four.all_reduce(arrays, "mean"), [np.mean(arrays, axis=0)] * 4)
    with pytest.raises(TypeError, match="floating point"):
        four.all_reduce(draw(4, (3,), "int32"), "mean")


@pytest.mark.parametrize("dtype, large", [("float16", 60000), ("float32", 3e38), ("float64", 1.7e308)])
def test_a_mean_is_finite_where_its_sum_is_not(four, dtype, large):
    most, inf = np.finfo(dtype).max, np.inf
    columns = [[large] * 4, [-large] * 4, [most] * 4, [large, large, -large, -large], [inf, most, 1, 2], [np.nan, most, 1, 2], [1, 2, 3, 6]]
    expected = np.array([large, -large, most, 0, inf, np.nan, 3], dtype)
    arrays = list(np.array(columns, dtype).T)
    for found in four.all_reduce(arrays, "mean"):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)


def test_collectives_of_all_ranks(four):
    arrays = draw(4, (8, 3))
    total = np.sum(arrays, axis=0)
    same(four.reduce_scatter(arrays), np.split(total, 4))
    same(four.all_gather(arrays), [np.concatenate(arrays)] * 4)
    parts = [np.split(array, 4) for array in arrays]
    same(four.all_to_all(arrays), [np.concatenate([part[rank] for part in parts]) for rank in range(4)])
    same(four.broadcast(arrays, 2), [arrays[2]] * 4)


def test_collectives_of_an_axis(mesh):
    arrays = draw(6, (6, 2), seed=3)
    rows, columns = [[0, 1, 2], [3, 4, 5]], [[0, 3], [1, 4], [2, 5]]
    for axis, lines in ((1, rows), (0, columns)):
        line_of = {rank: line for line in lines for rank in line}
        total = [np.sum([arrays[of] for of in line_of[rank]], axis=0) for rank in range(6)]
        same(mesh.all_reduce(arrays, axis=axis), total)
        own = [np.split(total[rank], len(line_of[rank]))[line_of[rank].index(rank)] for rank in range(6)]
        same(mesh.reduce_scatter(arrays, axis=axis), own)
        same(mesh.all_gather(arrays, axis=axis), [np.concatenate([arrays[of] for of in line_of[r]]) for r in range(6)])
    assert [mesh.coordinates(rank) for rank in (0, 2, 3)] == [(0, 0), (0, 2), (1, 0)]


def test_large_arrays_get_larger_windows(four):
    for elements in (1 << 10, 1 << 19, 1 << 12):
        arrays = draw(4, (elements,), "int32")
        same(four.all_reduce(arrays), [np.sum(arrays, axis=0, dtype="int32")] * 4)


@pytest.mark.parametrize("before, after", list(itertools.product([(R, R), (S0, R), (R, S1), (S0, S1), (S1, S0)], repeat=2)))
def test_relayout_moves_parts(mesh, before, after):
    whole = np.arange(12 * 6, dtype="float32").reshape(12, 6)
    found = relayout(distribute(mesh, whole, TensorLayout(before)), TensorLayout(after))
    same(found.shards, distribute(mesh, whole, TensorLayout(after)).shards)
    np.testing.assert_array_equal(found.numpy(), whole)


def test_relayout_in_three_dimensions(mesh):
    whole = np.random.default_rng(5).normal(size=(6, 6, 12)).astype("float32")
    elements = [dist for dist in itertools.product([R, S0, S1], repeat=3) if dist.count(S0) < 2 and dist.count(S1) < 2]
    tensor = distribute(mesh, whole, TensorLayout.default(3))
    for dist in elements:
        tensor = relayout(tensor, TensorLayout(dist))
        same(tensor.shards, distribute(mesh, whole, TensorLayout(dist)).shards)


def test_partial_results_are_reduced(mesh):
    arrays = draw(6, (6, 4), seed=9)
    tensor = partial_results(mesh, arrays, 1)
    total = {row: np.sum(arrays[3 * row : 3 * row + 3], axis=0) for row in range(2)}
    same(allreduce(tensor, 1).shards, [total[rank // 3] for rank in range(6)])
    scattered = reduce_scatter(tensor, 0, 1)
    assert scattered.layout.dist == (S1, R) and not scattered.partial
    same(scattered.shards, [np.split(total[rank // 3], 3)[rank % 3] for rank in range(6)])
    same(allgather(scattered, 0, 1).shards, [total[rank // 3] for rank in range(6)])
    wrong = [
        lambda: relayout(tensor, TensorLayout((S0, R))),
        lambda: allreduce(tensor, 0),
        lambda: allreduce(tensor, 1, "max"),
        lambda: reduce_scatter(tensor, 1, 1),
    ]
    for call, says in zip(wrong, ["partial results", "mesh axis 0", "parts of a sum", "evenly"], strict=True):
        with pytest.raises(LayoutIncompatibleError, match=says):
            call()


def test_virtual_time_is_the_same_in_every_run():
    def seconds(count):
        with Group.virtual(4, seed=7, **SMALL) as group:
            group.all_reduce(draw(4, (count,)))
            return group.seconds

    assert seconds(1000) == seconds(1000) and 0 < seconds(1000) < seconds(1 << 20) < 1


def test_what_cannot_be_is_refused(four):
    arrays = draw(4, (8, 3))
    wrong = [
        (lambda: four.all_reduce(arrays[:3]), ValueError, "3 arrays for 4 ranks"),
        (lambda: four.all_reduce(arrays, "median"), ValueError, "no reduction"),
        (lambda: four.all_reduce(arrays, axis=1), ValueError, "no axis 1"),
        (lambda: four.all_reduce([*arrays[:3], arrays[3].T]), ValueError, "Rank 3 has"),
        (lambda: four.all_reduce(draw(4, (2,), "complex64")), TypeError, "complex64"),
        (lambda: four.reduce_scatter(draw(4, (6, 3))), ValueError, "evenly"),
        (lambda: four.broadcast(arrays, 4), ValueError, "no rank 4"),
        (lambda: Group.local((2, 0)), ValueError, "at least one rank"),
        (lambda: Group.virtual(2, network="lan"), ValueError, "a3-pod"),
        (lambda: distribute(four, arrays[0], TensorLayout((S1, R))), LayoutIncompatibleError, "mesh axis 1"),
        (lambda: distribute(four, arrays[0], TensorLayout((R, S0))), LayoutIncompatibleError, "evenly"),
        (lambda: distribute(four, arrays[0], TensorLayout((S0, S0))), LayoutIncompatibleError, "two dimensions"),
    ]
    for call, kind, says in wrong:
        with pytest.raises(kind, match=says):
            call()
    closed = Group.local(1, **SMALL)
    closed.close()
    with pytest.raises(Exception, match="closed"):
        closed.all_reduce([np.ones(3)])


def test_a_tensor_without_elements_and_one_rank(four):
    same(four.all_reduce(draw(4, (0, 3))), [np.zeros((0, 3))] * 4)
    with Group.local(1, **SMALL) as alone:
        same(alone.all_reduce(draw(1, (5,))), draw(1, (5,)))
        assert isinstance(distribute(alone, np.ones(4), TensorLayout((S0,))), DistributedTensor)


FOLDS = Path(__file__).parents[3] / "examples" / "workloads" / "fold_on_ranks.workload"


def test_processes_of_a_pipeline_are_on_their_ranks():
    text, shapes = FOLDS.read_text(), {"X": (48, 16), "ROWS": (48, 16), "SUM": (2, 16), "LOG": (24, 2, 16)}
    x = np.random.default_rng(1).standard_normal(shapes["X"], dtype=np.float32)
    results = []
    for devices in (Group.local(1, **SMALL), Group.local(4, **SMALL), Group.virtual(4, **SMALL)):
        with devices as group:
            arrays = [{name: np.zeros(shape, np.float32) for name, shape in shapes.items()} for _ in range(group.size)]
            for one in arrays:
                one["X"][:] = x
            group.workload(text, arrays)
            assert group.seconds > 0
            results.append((arrays[0]["SUM"], arrays[3 % group.size]["LOG"]))
    for found in results[1:]:
        same(found, results[0])
    assert results[0][0].any() and results[0][1].all(axis=(1, 2)).any()
    with Group.local(2, **SMALL) as group, pytest.raises(HostError, match="no array for the tensor LOG"):
        group.workload(text, [{name: np.zeros(shapes[name], np.float32) for name in ("X", "ROWS", "SUM")}] * 2)


def test_names_that_a_workload_does_not_have_are_refused():
    text, shapes = FOLDS.read_text(), {"X": (48, 16), "ROWS": (48, 16), "SUM": (2, 16), "LOG": (24, 2, 16)}
    arrays = [{name: np.zeros(shape, np.float32) for name, shape in shapes.items()} for _ in range(2)]
    with Group.local(2, **SMALL) as group:
        with pytest.raises(HostError, match="a number for 'rows', which the workload does not have; it has no numbers"):
            group.workload(text, arrays, rows=3)
        arrays[1]["SUMM"] = np.zeros(3, np.float32)
        with pytest.raises(HostError, match="rank 1 has an array for 'SUMM', .* its tensors are X, ROWS, SUM, LOG"):
            group.workload(text, arrays)
        del arrays[1]["SUMM"]
        group.workload(text, arrays)


def test_a_process_in_python_is_on_a_rank():
    channel = Channel("rows", depth=2)
    one = process("maker").on(3).produces(channel)
    assert one._rank == 3
    with pytest.raises(ValueError, match="no rank -1"):
        process("maker").on(-1)

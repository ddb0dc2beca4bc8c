"""Layouts: annotations of tensors, and linear maps of bits."""

import itertools

import numpy as np
import pytest

from pto_wsp import (
    DType, LayoutIncompatibleError, LinearLayout, MemLayout, Tensor, TensorLayout, TensorReplicate, TensorShard, allgather,
    allreduce, reduce_scatter, relayout, tensor_layout_join,
)  # fmt: skip
from pto_wsp.linear_layout import f2_kernel, f2_matmul, f2_rank, from_tensor_layout, propagate_reshape, to_tensor_layout

R, S0, S1 = TensorReplicate(), TensorShard(0), TensorShard(1)


@pytest.mark.parametrize("a, b, joined", [(R, R, R), (R, S0, S0), (S1, R, S1), (S0, S0, S0), (S0, S1, None)])
def test_joins(a, b, joined):
    layouts = TensorLayout((a, R)), TensorLayout((b, R))
    if joined is None:
        with pytest.raises(LayoutIncompatibleError, match="relayout"):
            tensor_layout_join(*layouts)
    else:
        assert tensor_layout_join(*layouts).dist == (joined, R)
    with pytest.raises(LayoutIncompatibleError, match="dimensions"):
        tensor_layout_join(layouts[0], TensorLayout((R,)))


def test_collectives_change_annotations():
    t = Tensor(None, (4, 8), DType.F16, layout=TensorLayout((S0, S1)))
    assert allreduce(t, 0).layout.dist == (R, S1)
    assert allgather(t, 1, 1).layout.dist == (S0, R)
    assert reduce_scatter(t.with_layout(TensorLayout.default(2)), 0, 3).layout.sharded_dims() == [0]
    assert relayout(t, TensorLayout.default(2)).layout.is_replicated()
    assert t.layout.dist == (S0, S1)
    for wrong in (lambda: allgather(t, 0, 1), lambda: relayout(t, TensorLayout.default(3))):
        with pytest.raises(LayoutIncompatibleError):
            wrong()
    with pytest.raises(ValueError, match="no reduction"):
        allreduce(t, 0, op="median")
    with pytest.raises(ValueError, match="no dimension 2"):
        allgather(t, 2, 0)


def test_layouts_in_memory():
    assert MemLayout.row_major((2, 3, 4)) == MemLayout((12, 4, 1), (0, 1, 2))
    assert MemLayout.col_major((2, 3, 4)) == MemLayout((1, 2, 6), (2, 1, 0))
    assert MemLayout((8, 1)).compose(MemLayout(swizzle="x")) == MemLayout((8, 1), swizzle="x")
    assert MemLayout.row_major((4, 8, 16)).permute((2, 0, 1)).strides == (1, 128, 16)


def test_tensors_keep_their_layout():
    t = Tensor(None, (4, 8, 2), DType.F32, layout=TensorLayout((S0, S1, R)))
    assert t[0].layout.dist == (S1, R) and t[1, 2].layout.dist == (R,)
    assert t.slice(1, 3).layout is t.layout and t.slice(1, 3).shape == (2, 8, 2)
    assert (t.nbytes(), Tensor(None, (), DType.F32).nbytes()) == (256, 0)


@pytest.mark.parametrize("seed", range(5))
def test_rank_and_kernel(seed):
    random = np.random.default_rng(seed)
    rows, cols = random.integers(1, 7, 2)
    matrix = [tuple(int(bit) for bit in row) for row in random.integers(0, 2, (rows, cols))]
    basis = f2_kernel(matrix)
    assert len(basis) == cols - f2_rank(matrix)
    assert all(not any(f2_matmul(matrix, vector)) for vector in basis)
    zeros = sum(not any(f2_matmul(matrix, vector)) for vector in itertools.product((0, 1), repeat=int(cols)))
    assert zeros == 2 ** len(basis)


@pytest.mark.parametrize("shape", [(4, 8), (2, 4, 16), (1, 8)])
def test_maps_of_strides(shape):
    for layout, order in ((LinearLayout.row_major(shape), "C"), (LinearLayout.col_major(shape), "F")):
        assert layout.is_injective() and layout.is_surjective()
        for index in np.ndindex(*shape):
            packed, low = 0, 0
            for coordinate, extent in zip(index, shape):
                packed |= coordinate << low
                low += extent.bit_length() - 1
            assert layout.apply_index(packed) == np.ravel_multi_index(index, shape, order=order)
    dense = TensorLayout((R,) * len(shape), MemLayout.row_major(shape))
    assert from_tensor_layout(dense, shape) == LinearLayout.row_major(shape)


def test_threads():
    blocked, strided = LinearLayout.blocked(64, 8, 8), LinearLayout.strided(64, 8)
    for thread, local in itertools.product(range(8), range(8)):
        assert blocked.apply_index(thread | local << 3) == thread * 8 + local
        assert strided.apply_index(thread | local << 3) == local * 8 + thread
    with pytest.raises(ValueError, match="not 64 elements"):
        LinearLayout.blocked(64, 8, 4)
    with pytest.raises(ValueError, match="power of two"):
        LinearLayout.strided(60, 8)


def test_swizzles_lose_nothing():
    for layout, bits in itertools.product((LinearLayout.blocked(256, 32, 8), LinearLayout.row_major((32, 32))), (1, 2, 5)):
        swizzled = LinearLayout.compute_swizzle(layout, bits, 2)
        assert swizzled.matrix != layout.matrix
        assert swizzled.rank() == layout.rank()
    back = LinearLayout.compute_swizzle(LinearLayout.identity(6, "x"), 2, 2)
    assert sorted(back.apply_index(index) for index in range(64)) == list(range(64))


def test_composition_and_shapes():
    first, second = LinearLayout.strided(32, 4), LinearLayout.identity(5, "y")
    assert all(second.compose(first).apply_index(i) == first.apply_index(i) for i in range(32))
    with pytest.raises(ValueError, match="bits"):
        first.compose(LinearLayout.identity(3, "x"))
    with pytest.raises(ValueError, match="rows"):
        LinearLayout([(1, 0)], ["x"], ["y"], [2], [2])
    assert repr(LinearLayout.identity(4, "x")) == "LinearLayout([x:4] -> [x:4], rank=4)"
    with pytest.raises(ValueError, match="Cannot reshape"):
        propagate_reshape(LinearLayout.row_major((4, 4)), (4, 4), (2, 4))
    assert to_tensor_layout(LinearLayout.row_major((4, 8))).mem.strides == (8, 1)

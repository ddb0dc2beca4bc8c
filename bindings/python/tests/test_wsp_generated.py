"""Programs that a seed generates: tensors of any rank and strides, tiles with remainders, loops in any order, chains of
operations. Elements are compared with NumPy, and cycles with the table of costs."""

import numpy as np
import pytest
from wsp import F32, run

from pto_wsp import Dense, DenseDyn, In, Out, P, Tensor, Tile, kernel, pto, workload


def strided(random, shape):
    """An array of a shape whose memory has another order of dimensions, gaps, and some of them backwards."""
    order = random.permutation(len(shape))
    steps = random.choice([1, 2, -1, -2], len(shape))
    memory = np.zeros([shape[d] * abs(int(steps[d])) for d in order], np.float32)
    array = memory.transpose(np.argsort(order))[tuple(slice(None, None, int(step)) for step in steps)]
    assert array.shape == tuple(shape)
    return array


def chain(random, rows, cols):
    """A chain of operations: on tiles of pto, on arrays, and its cost for so many rows and columns that count."""
    steps = []
    for _ in range(int(random.integers(1, 6))):
        kind = random.choice(["scalar", "square", "exp", "rows", "columns", "relu"])
        number = float(random.uniform(-1, 1))
        steps.append((str(kind), number))

    def traced(x):
        for kind, number in steps:
            if kind == "scalar":
                x = pto.add(pto.mul(x, number), 1.0)
            elif kind == "square":
                x = pto.mul(x, x)
            elif kind == "exp":
                x = pto.exp(pto.min(x, number))
            elif kind == "rows":
                x = pto.sub(x, pto.rowmax(x))
            elif kind == "columns":
                x = pto.colmul(x, pto.colsum(pto.sigmoid(x)))
            else:
                x = pto.relu(x)
        return x

    def computed(x):
        for kind, number in steps:
            if kind == "scalar":
                x = x * np.float32(number) + 1
            elif kind == "square":
                x = x * x
            elif kind == "exp":
                x = np.exp(np.minimum(x, np.float32(number)))
            elif kind == "rows":
                x = x - x.max(1, keepdims=True)
            elif kind == "columns":
                x = x * (1 / (1 + np.exp(-x))).sum(0, keepdims=True)
            else:
                x = np.maximum(x, 0)
        return x

    def cost(rows, cols):
        n = rows * cols
        of = {"scalar": 2 * n, "square": n, "exp": 2 * n, "rows": rows + n, "columns": n + cols + n, "relu": n}
        return 2 * n + sum(of[kind] for kind, _ in steps)

    return traced, computed, cost


@pytest.mark.parametrize("seed", range(40))
def test_a_generated_program(seed):
    random = np.random.default_rng(seed)
    rank = int(random.integers(0, 4))
    outer = [int(extent) for extent in random.integers(1, 4, rank)]
    rows, cols = (int(extent) for extent in random.integers(1, 20, 2))
    tile = [int(extent) for extent in random.integers(1, 12, 2)]
    x, y = strided(random, outer + [rows, cols]), strided(random, outer + [rows, cols])
    x[...] = random.uniform(-1, 1, x.shape)
    a, b = Tensor(x, x.shape, F32), Tensor(y, y.shape, F32)
    traced, computed, cost = chain(random, *tile)

    @kernel
    def step(x: In[Tile[tile[0], tile[1], F32]], y: Out[Tile[tile[0], tile[1], F32]]):
        pto.store(y, traced(x))

    down, right = (-(-extent // part) for extent, part in zip((rows, cols), tile))

    def nest(indices, axes):
        if axes:
            loop = P(axes[0], names=[f"n{len(axes)}"]) if random.random() < 0.5 else P.seq(axes[0], name=f"n{len(axes)}")
            for at in loop:
                nest(indices + [at], axes[1:])
            return
        *lead, i, j = indices
        # A range that begins at `i * tile` and is as long as the tile: its remainder is what the tensor has.
        part = slice(i * tile[0], i * tile[0] + tile[0]), slice(j * tile[1], j * tile[1] + tile[1])
        step[tuple(indices)](a[(*lead, *part)], b[(*lead, *part)])

    @workload
    def program():
        axes = [(Dense[extent]() if random.random() < 0.5 else DenseDyn(extent)) for extent in (*outer, down, right)]
        nest([], axes)

    cycles = run(program().compile())
    expected, total = np.zeros_like(x), 0
    for index in np.ndindex(*outer, down, right):
        *lead, i, j = index
        at = (*lead, slice(i * tile[0], (i + 1) * tile[0]), slice(j * tile[1], (j + 1) * tile[1]))
        expected[at] = computed(x[at])
        total += cost(*x[at].shape)
    np.testing.assert_allclose(y, expected, rtol=2e-5, atol=1e-6)
    assert cycles == total

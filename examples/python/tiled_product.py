"""A batch of products in tiles of 16 x 16, f16 to f32: the steps along the inner dimension follow each other, all else is
parallel. Tiles are views of ordinary matrices; nothing is copied."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DispatchPolicy, DType, In, InOut, P, Tensor, Tile, kernel, pto, workload

T = 16


def tiles_of(matrix):
    """A batch of matrices as rows and columns of tiles."""
    batch, rows, cols = matrix.shape
    return matrix.reshape(batch, rows // T, T, cols // T, T).swapaxes(2, 3)


def run(seed=0, batch=1, size=64):
    random = np.random.default_rng(seed)
    left, right = (random.standard_normal((batch, size, size), dtype=np.float32).astype(np.float16) for _ in range(2))
    product = np.zeros((batch, size, size), np.float32)
    a, b = (Tensor(tiles_of(x), tiles_of(x).shape, DType.F16) for x in (left, right))
    c = Tensor(tiles_of(product), tiles_of(product).shape, DType.F32)
    half, single = Tile[T, T, DType.F16], Tile[T, T, DType.F32]
    steps = size // T

    @kernel
    def step(x: In[half], y: In[half], sums: InOut[single]):
        pto.store(sums, pto.add(sums, pto.matmul(x, y)))

    @workload
    def products():
        for n, row, col in P(batch, steps, steps):
            for inner in P.seq(steps):
                step[n, row, col, inner](a[n][row][inner], b[n][inner][col], c[n][row][col])

    cycles = finished(products().dispatch(DispatchPolicy.round_robin(4)).compile())
    expected = left.astype(np.float32) @ right.astype(np.float32)
    return Outcome(product, expected, cycles, 1e-2, 1e-2)


if __name__ == "__main__":
    run().report()

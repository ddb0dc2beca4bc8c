"""Sums and squares of tiles that lie in tensors of five and four dimensions."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


def sums(seed=0, shape=(2, 2, 2, 32, 32)):
    random = np.random.default_rng(seed)
    left, right = (random.standard_normal(shape, dtype=np.float32) for _ in range(2))
    result = np.zeros(shape, np.float32)
    a, b, c = (Tensor(data, shape, DType.F32) for data in (left, right, result))
    tile = Tile[shape[3], shape[4], DType.F32]

    @kernel
    def add(x: In[tile], y: In[tile], out: Out[tile]):
        pto.store(out, pto.add(x, y))

    @workload
    def all_tiles():
        for i, j, k in P(*shape[:3]):
            add[i, j, k](a[i, j, k], b[i, j, k], c[i, j, k])

    cycles = finished(all_tiles().dispatch(DispatchPolicy.round_robin(4)).compile())
    return Outcome(result, left + right, cycles)


def squares(seed=0, shape=(2, 4, 32, 32)):
    inputs = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    result = np.zeros(shape, np.float32)
    x, y = (Tensor(data, shape, DType.F32) for data in (inputs, result))
    tile = Tile[shape[2], shape[3], DType.F32]

    @kernel
    def square(x: In[tile], out: Out[tile]):
        pto.store(out, pto.mul(x, x))

    @workload
    def all_tiles():
        for i, j in P(*shape[:2]):
            square[i, j](x[i][j], y[i][j])

    cycles = finished(all_tiles().dispatch(DispatchPolicy.round_robin(4)).compile())
    return Outcome(result, inputs * inputs, cycles)


if __name__ == "__main__":
    found = sums()
    assert found.is_right(), "the sums are wrong"
    squares().report()

"""A layer of a transformer, tile by tile: attention, norm and feed-forward network, each of which reads what the one before it
wrote. The tasks of a tile are a chain through tensors; nothing but the tensors says so."""

import math

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload

ROWS = 8


def run(seed=0, length=16, width=8, hidden=16):
    random = np.random.default_rng(seed)
    tiles = length // ROWS
    x = random.standard_normal((tiles, ROWS, width), dtype=np.float32)
    first = random.standard_normal((width, hidden), dtype=np.float32)
    second = random.standard_normal((hidden, width), dtype=np.float32)
    result = np.zeros_like(x)
    row = Tile[ROWS, width, DType.F32]
    inputs, keys, out = (Tensor(d, d.shape, DType.F32) for d in (x, x.swapaxes(1, 2), result))
    w1, w2 = (Tensor(data, data.shape, DType.F32) for data in (first, second))
    attended, added, normed, fed = (Tensor(None, x.shape, DType.F32) for _ in range(4))

    @kernel
    def attend(q: In[row], k: In[Tile[width, ROWS, DType.F32]], v: In[row], out: Out[row]):
        scores = pto.mul(pto.matmul(q, k), pto.constant(1 / math.sqrt(width)))
        weights = pto.exp(pto.sub(scores, pto.rowmax(scores)))
        pto.store(out, pto.matmul(pto.div(weights, pto.rowsum(weights)), v))

    @kernel
    def add(a: In[row], b: In[row], out: Out[row]):
        pto.store(out, pto.add(a, b))

    @kernel
    def norm(x: In[row], out: Out[row]):
        mean = pto.add(pto.rowmean(pto.mul(x, x)), 1e-5)
        pto.store(out, pto.mul(x, pto.rsqrt(mean)))

    @kernel
    def feed(x: In[row], w1: In[Tile[width, hidden, DType.F32]], w2: In[Tile[hidden, width, DType.F32]], out: Out[row]):
        pto.store(out, pto.matmul(pto.max(pto.matmul(x, w1), 0.0), w2))

    @workload
    def layer():
        for t in P(tiles):
            attend[t](inputs[t], keys[t], inputs[t], attended[t])
            add[t](inputs[t], attended[t], added[t])
            norm[t](added[t], normed[t])
            feed[t](normed[t], w1, w2, fed[t])
            add[t](added[t], fed[t], out[t])

    cycles = finished(layer().dispatch(DispatchPolicy.round_robin(4)).compile())
    return Outcome(result, layer_of(x.astype(np.float64), first, second), cycles, 1e-4, 1e-4)


def layer_of(x, first, second):
    """The same in NumPy."""
    scores = x @ x.swapaxes(1, 2) / math.sqrt(x.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    added = x + weights / weights.sum(-1, keepdims=True) @ x
    normed = added / np.sqrt((added * added).mean(-1, keepdims=True) + 1e-5)
    return added + np.maximum(normed @ first, 0) @ second


if __name__ == "__main__":
    run().report()

"""Attention inside of each tile of a sequence: one task a tile, on four workers."""

import math

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload


def run(seed=0, batch=1, heads=2, length=16, width=8, rows=8):
    tiles = length // rows
    shape = (batch, heads, tiles, rows, width)
    random = np.random.default_rng(seed)
    query, key, value = (
        random.standard_normal((batch, heads, length, width), dtype=np.float32).reshape(shape) for _ in range(3)
    )
    result = np.zeros(shape, np.float32)
    upright, lying = Tile[rows, width, DType.F32], Tile[width, rows, DType.F32]
    # Strides are free: the keys are read as columns where they are.
    lying_keys = key.swapaxes(-1, -2)
    q, k, v, o = (Tensor(x, x.shape, DType.F32) for x in (query, lying_keys, value, result))

    @kernel
    def attend(q: In[upright], k: In[lying], v: In[upright], out: Out[upright]):
        scores = pto.mul(pto.matmul(q, k), pto.constant(1 / math.sqrt(width)))
        weights = pto.exp(pto.sub(scores, pto.rowmax(scores)))
        pto.store(out, pto.matmul(pto.div(weights, pto.rowsum(weights)), v))

    @workload
    def attention():
        for b, h, t in P(batch, heads, tiles):
            attend[b, h, t](q[b][h][t], k[b][h][t], v[b][h][t], o[b][h][t])

    cycles = finished(attention().dispatch(DispatchPolicy.round_robin(4)).compile())
    scores = query @ lying_keys / np.float32(math.sqrt(width))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ value
    return Outcome(result, expected, cycles, 1e-2, 1e-2)


if __name__ == "__main__":
    run().report()

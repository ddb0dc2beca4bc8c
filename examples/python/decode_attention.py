"""One query against a cache of keys and values: a task at the root of the workload, on tiles of one row."""

import math

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DType, In, Out, Tensor, Tile, kernel, pto, workload


def run(seed=0, width=16, length=64):
    random = np.random.default_rng(seed)
    query = random.standard_normal((1, width), dtype=np.float32)
    keys = random.standard_normal((length, width), dtype=np.float32)
    values = random.standard_normal((length, width), dtype=np.float32)
    result = np.zeros((1, width), np.float32)
    f32 = DType.F32
    q, k, v, o = (Tensor(data, data.shape, f32) for data in (query, keys.T, values, result))

    @kernel
    def attend(
        q: In[Tile[1, width, f32]],
        k: In[Tile[width, length, f32]],
        v: In[Tile[length, width, f32]],
        out: Out[Tile[1, width, f32]],
    ):
        scores = pto.mul(pto.matmul(q, k), 1 / math.sqrt(width))
        weights = pto.exp(pto.sub(scores, pto.rowmax(scores)))
        pto.store(out, pto.matmul(pto.div(weights, pto.rowsum(weights)), v))

    @workload
    def decode():
        attend[0](q, k, v, o)

    cycles = finished(decode().compile())
    scores = query @ keys.T / math.sqrt(width)
    weights = np.exp(scores - scores.max())
    return Outcome(result, weights / weights.sum() @ values, cycles)


if __name__ == "__main__":
    run().report()

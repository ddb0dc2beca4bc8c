"""Two dense experts and a gate that mixes them."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload

ROWS = 8


def run(seed=0, length=16, width=8):
    random = np.random.default_rng(seed)
    tiles = length // ROWS
    x = random.standard_normal((tiles, ROWS, width), dtype=np.float32)
    weights = random.standard_normal((2, width, width), dtype=np.float32)
    gate = random.random((tiles, ROWS, 1), dtype=np.float32)
    result = np.zeros_like(x)
    row, square = Tile[ROWS, width, DType.F32], Tile[width, width, DType.F32]
    inputs, w, g, out = (Tensor(data, data.shape, DType.F32) for data in (x, weights, gate, result))
    left, right = (Tensor(None, x.shape, DType.F32) for _ in range(2))

    @kernel
    def expert(x: In[row], w: In[square], out: Out[row]):
        pto.store(out, pto.matmul(x, w))

    @kernel
    def mix(a: In[row], b: In[row], gate: In[Tile[ROWS, 1, DType.F32]], out: Out[row]):
        other = pto.add(pto.mul(gate, -1.0), 1.0)
        pto.store(out, pto.add(pto.mul(a, gate), pto.mul(b, other)))

    @workload
    def layer():
        for t in P(tiles):
            expert[t](inputs[t], w[0], left[t])
            expert[t](inputs[t], w[1], right[t])
            mix[t](left[t], right[t], g[t], out[t])

    cycles = finished(layer().dispatch(DispatchPolicy.round_robin(4)).compile())
    return Outcome(result, gate * (x @ weights[0]) + (1 - gate) * (x @ weights[1]), cycles)


if __name__ == "__main__":
    run().report()

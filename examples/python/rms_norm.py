"""Root-mean-square norm, a tile of 16 rows a task."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DispatchPolicy, DType, In, Out, P, Tensor, Tile, kernel, pto, workload

ROWS = 16


def run(seed=0, batch=1, length=32, width=16):
    inputs = np.random.default_rng(seed).standard_normal((batch, length, width), dtype=np.float32)
    result = np.zeros_like(inputs)
    shape = (batch, length // ROWS, ROWS, width)
    x, y = (Tensor(data.reshape(shape), shape, DType.F32) for data in (inputs, result))
    tile = Tile[ROWS, width, DType.F32]

    @kernel
    def norm(x: In[tile], out: Out[tile]):
        pto.store(out, pto.mul(x, pto.rsqrt(pto.rowmean(pto.mul(x, x)))))

    @workload
    def norms():
        for b, t in P(*shape[:2]):
            norm[b, t](x=x[b][t], out=y[b][t])

    cycles = finished(norms().dispatch(DispatchPolicy.round_robin(4)).compile())
    return Outcome(result, inputs / np.sqrt((inputs * inputs).mean(-1, keepdims=True)), cycles)


if __name__ == "__main__":
    run().report()

"""A product of two matrices: one task, one tile."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import Dense, DispatchPolicy, DType, In, Out, P, TaskWindow, Tensor, Tile, kernel, pto, workload


def run(seed=42, size=16):
    random = np.random.RandomState(seed)
    left = random.randn(1, size, size).astype(np.float32)
    right = random.randn(1, size, size).astype(np.float32)
    product = np.zeros_like(left)
    tile = Tile[size, size, DType.F32]
    a, b, c = (Tensor(data, data.shape, DType.F32) for data in (left, right, product))

    @kernel
    def multiply(x: In[tile], y: In[tile], out: Out[tile]):
        pto.store(out, pto.matmul(x, y))

    @workload
    def products():
        for i in P(Dense[1]()):
            multiply[i](x=a[i], y=b[i], out=c[i])

    scheduled = products().dispatch(DispatchPolicy.round_robin(4)).task_graph(window=TaskWindow(1024))
    cycles = finished(scheduled.compile())
    return Outcome(product, left @ right, cycles)


if __name__ == "__main__":
    run().report()

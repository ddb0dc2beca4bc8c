"""Softmax in three phases: maxima of rows, exponentials and their sums, division. A row of tiles is gone through in order in
the first two phases.

With `whole_tiles` false a tile has 8 rows on a view of 4: the tiles of a program that indexes one dimension too early. Such
tiles overlap; results are right in program order, and the compiler warns. Half of the rows of the last tiles would stay zero
if anything were lost, so the check can fail: the input has a large spread."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DispatchPolicy, DType, In, InOut, Out, P, Tensor, Tile, kernel, pto, workload

ROWS, COLS = 8, 64


def run(seed=0, batch=1, length=32, width=256, whole_tiles=True, spread=4.0):
    random = np.random.default_rng(seed)
    inputs = (spread * random.standard_normal((batch, length, width), dtype=np.float32)).astype(np.float32)
    result = np.full_like(inputs, np.nan)
    down, right = length // ROWS, width // COLS
    shape = (batch, down, ROWS, right, COLS)

    def tiles(x):
        return x.reshape(shape).swapaxes(2, 3) if whole_tiles else x.reshape(shape)

    largest = np.full((batch, down, ROWS, 1), -np.inf, np.float32)
    total = np.zeros_like(largest)
    x, y = (Tensor(tiles(data), tiles(data).shape, DType.F32) for data in (inputs, result))
    m, s = (Tensor(data, data.shape, DType.F32) for data in (largest, total))
    tile, column = Tile[ROWS, COLS, DType.F32], Tile[ROWS, 1, DType.F32]

    @kernel
    def maxima(x: In[tile], m: InOut[column]):
        pto.store(m, pto.max(m, pto.rowmax(x)))

    @kernel
    def exponentials(x: In[tile], m: In[column], y: Out[tile], s: InOut[column]):
        e = pto.exp(pto.sub(x, m))
        pto.store(s, pto.add(s, pto.rowsum(e)))
        pto.store(y, e)

    @kernel
    def division(y: InOut[tile], s: In[column]):
        pto.store(y, pto.div(y, s))

    @workload
    def softmax():
        for b, r in P(batch, down):
            for c in P.seq(right):
                maxima[b, r, c](x[b][r][c], m[b][r])
        for b, r in P(batch, down):
            for c in P.seq(right):
                exponentials[b, r, c](x[b][r][c], m[b][r], y[b][r][c], s[b][r])
        for b, r, c in P(batch, down, right):
            division[b, r, c](y[b][r][c], s[b][r])

    cycles = finished(softmax().dispatch(DispatchPolicy.round_robin(4)).compile())
    e = np.exp(inputs - inputs.max(-1, keepdims=True))
    return Outcome(result, e / e.sum(-1, keepdims=True), cycles, 1e-5, 1e-7)


if __name__ == "__main__":
    run().report()

"""Three processes that meet at channels: load, square, store. A token is the index of a tile; the elements are in tensors."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import (
    Channel, Dense, DType, In, Out, Tensor, Tile, connect, consume, for_each, kernel, process, pto, send, task,
)  # fmt: skip


def run(seed=0, tiles=8, rows=64, cols=64, depth=2):
    inputs = np.random.default_rng(seed).standard_normal((tiles, rows, cols), dtype=np.float32)
    result = np.zeros_like(inputs)
    x, y = (Tensor(data, data.shape, DType.F32) for data in (inputs, result))
    loaded, squared = (Tensor(None, inputs.shape, DType.F32) for _ in range(2))
    tile = Tile[rows, cols, DType.F32]

    @kernel
    def copy(x: In[tile], out: Out[tile]):
        pto.store(out, x)

    @kernel
    def square(x: In[tile], out: Out[tile]):
        pto.store(out, pto.mul(x, x))

    first, second = Channel("first", depth), Channel("second", depth)
    loads = for_each(Dense[tiles](), lambda t: send(first, task(copy, [t], {"x": x[t], "out": loaded[t]})))
    squares = consume(first, lambda t: send(second, task(square, [t], {"x": loaded[t], "out": squared[t]})))
    stores = consume(second, lambda t: task(copy, [t], {"x": squared[t], "out": y[t]}))
    pipeline = connect(
        [
            process("load").produces(first).body(loads),
            process("square").consumes(first).produces(second).body(squares),
            process("store").consumes(second).body(stores),
        ],
        [first, second],
    )
    return Outcome(result, inputs * inputs, finished(pipeline.compile()))


if __name__ == "__main__":
    run().report()

"""Two processes and a channel. The first four tiles are quick to make and the rest are slow; the first tile is slow to use. How
many tokens the channel holds decides how far the sender may run ahead, and thereby when the last tile is done."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import (
    Channel, Dense, DType, In, Out, Tensor, Tile, cond, connect, consume, for_each, kernel, process, pto, send, task,
)  # fmt: skip

TILES, QUICK = 10, 4
F32 = DType.F32


@kernel
def small(x: In[Tile[4, 4, F32]], out: Out[Tile[4, 4, F32]]):
    pto.store(out, x)


@kernel
def medium(x: In[Tile[64, 64, F32]], out: Out[Tile[64, 64, F32]]):
    pto.store(out, x)


@kernel
def large(x: In[Tile[64, 128, F32]], out: Out[Tile[64, 128, F32]]):
    pto.store(out, x)


def run(depth=1, seed=0):
    inputs = np.random.default_rng(seed).standard_normal((TILES, 64, 128), dtype=np.float32)
    made, used = np.zeros_like(inputs), np.zeros_like(inputs)
    x, m, u = (Tensor(data, data.shape, F32) for data in (inputs, made, used))
    channel = Channel("tiles", depth)

    def copy(kernel, t, source, target):
        rows, cols = kernel.tile_of("x").shape
        return task(kernel, [t], {"x": source[t][:rows, :cols], "out": target[t][:rows, :cols]})

    makes = for_each(
        Dense[TILES](),
        lambda t: cond(t < QUICK, send(channel, copy(small, t, x, m)), send(channel, copy(large, t, x, m))),
    )
    uses = consume(channel, lambda t: cond(t < 1, copy(large, t, m, u), copy(medium, t, m, u)))
    pipeline = connect(
        [process("maker").produces(channel).body(makes), process("user").consumes(channel).body(uses)], [channel]
    )
    cycles = finished(pipeline.compile())
    return Outcome(used, expected(inputs), cycles)


def expected(inputs):
    """The part of each tile that went through both processes."""
    result = np.zeros_like(inputs)
    result[:QUICK, :4, :4] = inputs[:QUICK, :4, :4]
    result[QUICK:, :, :64] = inputs[QUICK:, :, :64]
    return result


if __name__ == "__main__":
    for depth in (0, 1, 2):
        print(f"depth {depth}: {run(depth).cycles} cycles")
    run().report()

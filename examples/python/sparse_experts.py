"""A sparse mixture of experts. A task writes which experts a token needs; the run reads these flags when it gets there, after
the task, and calls only those experts. Nothing of it is known before the run."""

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DType, In, InOut, Out, P, Tensor, Tile, kernel, pto, slot_load_u64, workload
from pto_wsp.scalar_expr import slot_bool

TOKENS, WIDTH, EXPERTS = 12, 16, 4
F32 = DType.F32
ROW = Tile[1, WIDTH, F32]


@kernel
def choose(x: In[ROW], gate: In[Tile[WIDTH, EXPERTS, F32]], flags: Out[Tile[1, EXPERTS, DType.I32]]):
    pto.store(flags, pto.greater(pto.matmul(x, gate), pto.constant(1.0)))


@kernel
def expert(x: In[ROW], w: In[Tile[WIDTH, WIDTH, F32]], y: InOut[ROW]):
    pto.store(y, pto.add(y, pto.silu(pto.matmul(x, w))))


def run(seed=0):
    random = np.random.default_rng(seed)
    tokens = random.standard_normal((TOKENS, 1, WIDTH), dtype=np.float32)
    gates = (random.standard_normal((WIDTH, EXPERTS), dtype=np.float32) / 3).astype(np.float32)
    weights = (random.standard_normal((EXPERTS, WIDTH, WIDTH), dtype=np.float32) / 4).astype(np.float32)
    result = np.zeros_like(tokens)
    x, gate, w, y = (Tensor(data, data.shape, F32) for data in (tokens, gates, weights, result))
    flags = Tensor(None, (TOKENS, 1, EXPERTS), DType.I32)

    @workload
    def layer():
        for t in P(TOKENS):
            choose[t](x[t], gate, flags[t])
            for e in P(EXPERTS):
                slot_load_u64(0, flags[t], col=e)
                with P.when(slot_bool(0)):
                    expert[t, e](x[t], w[e], y[t])

    program = layer().compile()
    cycles = finished(program)
    needed = tokens.astype(np.float64) @ gates > 1
    each = tokens[:, None].astype(np.float64) @ weights
    expected = (np.swapaxes(needed, 1, 2)[..., None] * (each / (1 + np.exp(-each)))).sum(1)
    assert program.stats.task_count == TOKENS + needed.sum(), "a task for each token, and one for each flag"
    return Outcome(result, expected, cycles)


if __name__ == "__main__":
    run().report()

"""Attention over sequences of different lengths that lie one after the other. A task takes up to 8 queries of a sequence and
all of its keys. Where a sequence ends inside of a tile, the tile is partial: only the rows and columns that are there are read,
computed, written and counted. Other lengths need no other program."""

import math

import numpy as np
from outcome import Outcome, finished

from pto_wsp import DType, In, Out, P, Ragged, Tensor, Tile, kernel, pto, slot_load_u64, workload
from pto_wsp.scalar_expr import slot_i64

ROWS, WIDTH, LONGEST, SEQUENCES, TOTAL = 8, 16, 40, 4, 96
F32 = DType.F32


@kernel
def attend(
    q: In[Tile[ROWS, WIDTH, F32]],
    k: In[Tile[WIDTH, LONGEST, F32]],
    v: In[Tile[LONGEST, WIDTH, F32]],
    out: Out[Tile[ROWS, WIDTH, F32]],
):
    scores = pto.mul(pto.matmul(q, k), 1 / math.sqrt(WIDTH))
    weights = pto.exp(pto.sub(scores, pto.rowmax(scores)))
    pto.store(out, pto.matmul(pto.div(weights, pto.rowsum(weights)), v))


class RaggedAttention:
    """The program, and the arrays that its runs read and write."""

    def __init__(self):
        self.q, self.k, self.v, self.out = (np.zeros((TOTAL, WIDTH), np.float32) for _ in range(4))
        self.ends = np.zeros((SEQUENCES, 1, 2), np.int64)
        self.axis = Ragged(SEQUENCES, [0] * SEQUENCES)
        q, k, v, out = (Tensor(x, x.shape, F32) for x in (self.q, self.k.T, self.v, self.out))
        ends = Tensor(self.ends, self.ends.shape, DType.I64)

        @workload
        def attention():
            for t in P(self.axis):
                slot_load_u64(0, ends[t.row], col=0)
                slot_load_u64(1, ends[t.row], col=1)
                begin, end = slot_i64(0), slot_i64(1)
                first = begin + t.place * ROWS
                last = (first + ROWS < end).where(first + ROWS, end)
                attend[t](q.slice(first, last), k[:, begin:end], v.slice(begin, end), out.slice(first, last))

        self.program = attention().compile()

    def run(self, lengths, seed=0):
        """Runs with other lengths; nothing is compiled."""
        random = np.random.default_rng(seed)
        for array in (self.q, self.k, self.v):
            array[:] = random.standard_normal(array.shape, dtype=np.float32)
        self.out[:] = np.nan
        ends = np.cumsum(lengths)
        self.ends[:, 0, 0], self.ends[:, 0, 1] = ends - lengths, ends
        tiles = [-(-length // ROWS) for length in lengths]
        self.program.set_symbol_ptr(f"lengths_{id(self.axis)}", np.array(tiles, np.int32))
        cycles = finished(self.program)
        return Outcome(self.out[: ends[-1]], self.expected(lengths), cycles)

    def expected(self, lengths):
        """The same in NumPy, one sequence after the other."""
        parts, begin = [], 0
        for length in lengths:
            q, k, v = (array[begin : begin + length].astype(np.float64) for array in (self.q, self.k, self.v))
            weights = np.exp(q @ k.T / math.sqrt(WIDTH))
            parts.append(weights / weights.sum(-1, keepdims=True) @ v)
            begin += length
        return np.concatenate(parts)


if __name__ == "__main__":
    attention = RaggedAttention()
    assert attention.run([16, 8, 24, 8]).is_right()
    attention.run([13, 1, 40, 22]).report()

"""What the tests of pto_wsp share: small kernels and tensors."""

import numpy as np

from pto_wsp import DType, In, InOut, Out, Tensor, Tile, kernel, pto

F32, I32 = DType.F32, DType.I32
TILE = Tile[4, 4, F32]


@kernel
def copy(src: In[TILE], dst: Out[TILE]):
    pto.store(dst, src)


@kernel
def mark(y: InOut[Tile[1, 1, I32]]):
    pto.store(y, pto.add(pto.load(y), pto.constant(1, I32)))


def tensor(array, dtype=None):
    """An array as a tensor."""
    return Tensor(array, array.shape, dtype or DType(np.dtype(array.dtype).kind + str(8 * array.dtype.itemsize)))


def tiles(count, seed=0):
    """So many tiles of 4 x 4, and as many zeros."""
    array = np.random.default_rng(seed).standard_normal((count, 4, 4), dtype=np.float32)
    return array, np.zeros_like(array)


def run(program):
    """Runs a program; its cycles."""
    program.execute()
    program.synchronize()
    return program.stats.total_cycles

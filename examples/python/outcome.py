"""What an example shows: whether its result is right, and its cycles on the v9 clock."""

import sys
from dataclasses import dataclass

import numpy as np


@dataclass
class Outcome:
    """The result of a run, what NumPy says it must be, and the cycles."""

    result: np.ndarray
    expected: np.ndarray
    cycles: int
    rtol: float = 1e-5
    atol: float = 1e-6

    def is_right(self):
        """Whether the result is close enough to what it must be."""
        return np.allclose(self.result, self.expected, rtol=self.rtol, atol=self.atol)

    def report(self):
        """Prints both and ends the process: 0 where the result is right."""
        error = np.max(np.abs(np.asarray(self.result, np.float64) - self.expected), initial=0)
        print(f"{'right' if self.is_right() else 'WRONG'}: {self.cycles} cycles, largest error {error:.3g}")
        sys.exit(0 if self.is_right() else 1)


def finished(program):
    """Runs a program; its cycles."""
    program.execute()
    program.synchronize()
    return program.stats.total_cycles

"""Calls thirty functions of CuPy for Ascend, unmodified from PyPI, and compares what they give with NumPy: the part of `acceptance --cupy` that the suite runs.

    pto compat cann run -- python package_part.py

The wheel lacks the folder cupyx/scipy/fftpack, although its `__init__` asks it for one function. None is called here, so that an empty module stands for it."""

import sys
import types

import numpy as np

sys.modules["cupyx.scipy.fftpack"] = types.ModuleType("cupyx.scipy.fftpack")
sys.modules["cupyx.scipy.fftpack"].get_fft_plan = None

import cupy as cp  # noqa: E402

RANDOM = np.random.default_rng(7)
A = RANDOM.uniform(0.5, 2.0, (5, 7)).astype(np.float32)
B = RANDOM.uniform(0.5, 2.0, (5, 7)).astype(np.float32)
I, J = (RANDOM.integers(1, 9, (5, 7)).astype(np.int32) for _ in range(2))

CASES = {
    "add": lambda m, a, b, i, j: a + b,
    "subtract": lambda m, a, b, i, j: a - 2 * b,
    "multiply": lambda m, a, b, i, j: a * b[0],
    "divide": lambda m, a, b, i, j: a / b,
    "floor_divide": lambda m, a, b, i, j: i // j,
    "remainder": lambda m, a, b, i, j: i % j,
    "power": lambda m, a, b, i, j: a**b,
    "matmul": lambda m, a, b, i, j: a @ b.T,
    "exp": lambda m, a, b, i, j: m.exp(a),
    "log": lambda m, a, b, i, j: m.log(a),
    "sqrt": lambda m, a, b, i, j: m.sqrt(a),
    "tanh": lambda m, a, b, i, j: m.tanh(a),
    "sin": lambda m, a, b, i, j: m.sin(a),
    "arctan": lambda m, a, b, i, j: m.arctan(a),
    "absolute": lambda m, a, b, i, j: m.absolute(-a),
    "floor": lambda m, a, b, i, j: m.floor(a),
    "maximum": lambda m, a, b, i, j: m.maximum(a, b),
    "minimum": lambda m, a, b, i, j: m.minimum(i, j),
    "greater": lambda m, a, b, i, j: a > b,
    "equal": lambda m, a, b, i, j: i == j,
    "bitwise_and": lambda m, a, b, i, j: i & j,
    "bitwise_xor": lambda m, a, b, i, j: i ^ j,
    "sum": lambda m, a, b, i, j: a.sum(axis=0),
    "mean": lambda m, a, b, i, j: a.mean(axis=1),
    "max": lambda m, a, b, i, j: a.max(axis=1),
    "argmax": lambda m, a, b, i, j: a.argmax(axis=1),
    "cumsum": lambda m, a, b, i, j: m.cumsum(a, axis=1),
    "sort": lambda m, a, b, i, j: m.sort(a, axis=1),
    "sign": lambda m, a, b, i, j: m.sign(i - j),
    "concatenate": lambda m, a, b, i, j: m.concatenate([a, b], axis=1),
}


def main():
    wrong = []
    given = [cp.asarray(one) for one in (A, B, I, J)]
    for name, function in CASES.items():
        expected = np.asarray(function(np, A, B, I, J))
        found = function(cp, *given)
        # Copies of the package do not wait for its stream.
        cp.cuda.get_current_stream().synchronize()
        found = found.get()
        if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-5, atol=1e-6):
            wrong.append(name)
            print(f"{name} gives\n{found}\nand NumPy\n{expected}")
    print(f"CuPy for Ascend: {len(CASES)} functions called, {len(CASES) - len(wrong)} as NumPy's")
    return 1 if wrong else 0


sys.exit(main())

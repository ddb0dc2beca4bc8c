"""out_c = a @ b + d."""

import numpy as np

TENSOR_ORDER = ["a", "b", "d", "out_c", "shape"]
PARAMS_LIST = [{"m": 96, "n": 96, "k": 80}, {"m": 33, "n": 50, "k": 41}]
RTOL, ATOL = 1e-4, 1e-4


def generate_inputs(params):
    random = np.random.default_rng(7)
    m, n, k = params["m"], params["n"], params["k"]
    return {
        "a": random.standard_normal((m, k), dtype=np.float32),
        "b": random.standard_normal((k, n), dtype=np.float32),
        "d": random.standard_normal((m, n), dtype=np.float32),
        "out_c": np.zeros((m, n), np.float32),
        "shape": np.array([m, n, k], np.int64),
    }


def compute_golden(tensors, params):
    product = tensors["a"].astype(np.float64) @ tensors["b"].astype(np.float64)
    tensors["out_c"][:] = product + tensors["d"]

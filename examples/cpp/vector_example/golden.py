"""out_f = (a + b + 1) * (a + b + 2)."""

import numpy as np

TENSOR_ORDER = ["a", "b", "out_f"]
PARAMS_LIST = [{"n": 128 * 128}, {"n": 1000, "seed": 3}]
RTOL = ATOL = 1e-5


def generate_inputs(params):
    random = np.random.default_rng(params.get("seed", 0))
    n = params["n"]
    return {
        "a": random.standard_normal(n, dtype=np.float32),
        "b": random.standard_normal(n, dtype=np.float32),
        "out_f": np.zeros(n, np.float32),
    }


def compute_golden(tensors, params):
    total = tensors["a"].astype(np.float64) + tensors["b"]
    tensors["out_f"][:] = (total + 1) * (total + 2)

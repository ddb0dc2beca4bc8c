"""Every node once, after its producers: a checksum of each node over those of its producers."""

import numpy as np

TENSOR_ORDER = ["out_values", "out_counters", "first", "producers", "kinds"]
PARAMS_LIST = [{"nodes": 2000, "window": 64}]
RTOL = ATOL = 0
SEED = 11
MASK = (1 << 64) - 1


def generate_inputs(params):
    random = np.random.default_rng(2)
    nodes = params["nodes"]
    lists = [
        random.choice(np.arange(max(0, node - params["window"]), node), min(node, random.integers(0, 5)), replace=False)
        for node in range(nodes)
    ]
    first = np.zeros(nodes + 1, np.int32)
    first[1:] = np.cumsum([len(producers) for producers in lists])
    return {
        "out_values": np.zeros(nodes, np.uint64),
        "out_counters": np.zeros(nodes, np.uint32),
        "first": first,
        "producers": np.concatenate(lists).astype(np.int32),
        "kinds": random.integers(0, 2, nodes, dtype=np.int32),
    }


def mix(value):
    z = (value + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def compute_golden(tensors, params):
    first, producers, values = tensors["first"], tensors["producers"], []
    for node in range(params["nodes"]):
        value = mix(mix(SEED) ^ node)
        for producer in producers[first[node] : first[node + 1]]:
            value = mix(value ^ values[producer])
        values.append(value)
    tensors["out_values"][:] = np.array(values, np.uint64)
    tensors["out_counters"][:] = 1

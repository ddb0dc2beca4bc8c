"""Attention of one query a sequence over a context whose keys and values stand in blocks of a cache."""

import numpy as np

TENSOR_ORDER = ["query", "key_cache", "value_cache", "block_table", "context_lens", "out_attention", "shape"]
PARAMS_LIST = [
    {"batch": 4, "heads": 8, "kv_heads": 2, "head_dim": 32, "block_size": 16, "max_context": 100},
    {"batch": 3, "heads": 4, "kv_heads": 4, "head_dim": 16, "block_size": 8, "max_context": 33, "seed": 5},
]
RTOL = ATOL = 1e-4


def generate_inputs(params):
    random = np.random.default_rng(params.get("seed", 1))
    batch, heads, kv_heads = params["batch"], params["heads"], params["kv_heads"]
    dim, size = params["head_dim"], params["block_size"]
    row = -(-params["max_context"] // size)
    blocks = batch * row
    cache = (blocks, size, kv_heads, dim)
    return {
        "query": random.standard_normal((batch, heads, dim), dtype=np.float32),
        "key_cache": random.standard_normal(cache, dtype=np.float32),
        "value_cache": random.standard_normal(cache, dtype=np.float32),
        "block_table": random.permutation(blocks).astype(np.int32).reshape(batch, row),
        "context_lens": random.integers(1, params["max_context"], batch, dtype=np.int32),
        "out_attention": np.zeros((batch, heads, dim), np.float32),
        "shape": np.array([batch, heads, kv_heads, dim, size, row], np.int64),
    }


def compute_golden(tensors, params):
    heads, kv_heads, dim = params["heads"], params["kv_heads"], params["head_dim"]
    for b, length in enumerate(tensors["context_lens"]):
        table = tensors["block_table"][b]
        keys = tensors["key_cache"][table].reshape(-1, kv_heads, dim)[:length].astype(np.float64)
        values = tensors["value_cache"][table].reshape(-1, kv_heads, dim)[:length].astype(np.float64)
        for head in range(heads):
            group = head // (heads // kv_heads)
            scores = keys[:, group] @ tensors["query"][b, head] / np.sqrt(dim)
            weights = np.exp(scores - scores.max())
            tensors["out_attention"][b, head] = weights @ values[:, group] / weights.sum()

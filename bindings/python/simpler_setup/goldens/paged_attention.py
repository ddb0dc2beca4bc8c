"""Paged attention: one query for each head of each sequence, over keys and values that stand in blocks.

`out[b, h] = softmax(scale * q[b, h] . k) v`, with the keys and values of sequence `b` up to its length, found through its row
of the block table. The kernels round the weights of a block to the cache's type before they multiply them with the values, and so
does the reference: block by block, with a running maximum and sum.
"""

import ctypes

import torch

_TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
_SEED = 20260822


def _lengths(params):
    lengths = params.get("context_lens_list")
    batch = params["batch"]
    if lengths is None:
        return [params["context_len"]] * batch
    return [lengths[index % len(lengths)] for index in range(batch)]


def generate_inputs(params):
    """Names and values in the order of the orchestration's arguments: query, key_cache, value_cache, block_table, context_lens, out,
    and the scale as a scalar.

    Shapes: query and out [batch, heads, head_dim], caches [blocks, block_size, kv_heads, head_dim], table [batch, blocks a sequence].
    """
    generator = torch.Generator().manual_seed(params.get("seed", _SEED))
    batch, heads, head_dim = params["batch"], params["num_heads"], params["head_dim"]
    block_size, kv_heads = params["block_size"], params.get("kv_head_num", 1)
    kind = _TYPES[params.get("dtype", "bfloat16")]
    lengths = _lengths(params)
    columns = -(-params["max_model_len"] // block_size)
    used = -(-max(lengths) // block_size)
    blocks = batch * used
    table = torch.zeros((batch, columns), dtype=torch.int32)
    table[:, :used] = torch.randperm(blocks, generator=generator).reshape(batch, used).to(torch.int32)

    def uniform(*shape):
        return (torch.rand(shape, generator=generator) - 0.5).to(kind)

    return [
        ("query", uniform(batch, heads, head_dim)),
        ("key_cache", uniform(blocks, block_size, kv_heads, head_dim)),
        ("value_cache", uniform(blocks, block_size, kv_heads, head_dim)),
        ("block_table", table),
        ("context_lens", torch.tensor(lengths, dtype=torch.int32)),
        ("out", torch.zeros((batch, heads, head_dim), dtype=torch.float32)),
        ("scale_value", ctypes.c_float(1.0 / head_dim**0.5)),
    ]


def _attend(query, keys, values, block_size, scale):
    """One sequence and one head of keys: `query` [heads, dim] against `keys` and `values` [length, dim]."""
    heads, dim = query.shape
    largest = torch.full((heads, 1), float("-inf"))
    total, out = torch.zeros((heads, 1)), torch.zeros((heads, dim))
    for start in range(0, keys.shape[0], block_size):
        block = slice(start, start + block_size)
        scores = query.float() @ keys[block].float().T * scale
        own = scores.max(dim=1, keepdim=True).values
        weights = torch.exp(scores - own).to(values.dtype).float()
        now = torch.maximum(largest, own)
        old, new = torch.exp(largest - now), torch.exp(own - now)
        total = old * total + new * weights.sum(dim=1, keepdim=True)
        out = old * out + new * (weights @ values[block].float())
        largest = now
    return out / total


def compute_golden(tensors, params):
    """Sets `tensors["out"]` to what attention gives for the other tensors, in the shape that `out` has."""
    query, table, out = tensors["query"], tensors["block_table"], tensors["out"]
    batch, heads, head_dim = params["batch"], params["num_heads"], params["head_dim"]
    query = query.reshape(batch, heads, head_dim)
    block_size, kv_heads = params["block_size"], params.get("kv_head_num", 1)
    shape = (-1, block_size, kv_heads, head_dim)
    keys, values = tensors["key_cache"].reshape(shape), tensors["value_cache"].reshape(shape)
    found = torch.zeros((batch, heads, head_dim))
    share = heads // kv_heads
    for sequence, length in enumerate(tensors["context_lens"].tolist()):
        rows = table[sequence, : -(-length // block_size)].long()
        for head in range(kv_heads):
            own = slice(head * share, (head + 1) * share)
            mine = [cache[rows, :, head].reshape(-1, head_dim)[:length] for cache in (keys, values)]
            found[sequence, own] = _attend(query[sequence, own], *mine, block_size, 1.0 / head_dim**0.5)
    out[...] = found.reshape(out.shape)

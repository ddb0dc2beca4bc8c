"""paged_attention in C++: products on cube cores, softmax and updates on vector cores."""

KERNELS = [
    {"func_id": 0, "source": "aic/scores.cpp", "core_type": "aic"},
    {"func_id": 1, "source": "aiv/softmax.cpp", "core_type": "aiv"},
    {"func_id": 2, "source": "aic/weighted_sum.cpp", "core_type": "aic"},
    {"func_id": 3, "source": "aiv/update.cpp", "core_type": "aiv"},
]
ORCHESTRATION = {"source": "orchestration/attention_orch.cpp", "function_name": "build_attention_graph"}
AICPU_ORCHESTRATION = {"source": "aicpu/build_graph.cpp", "function_name": "build_graph_aicpu"}
STREAM_ORCHESTRATION = {"source": "aicpu/build_stream.cpp", "function_name": "build_graph_aicpu"}
RUNTIME_CONFIG = {
    "runtime": "aicpu_build_graph",
    "runtimes": ["host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer"],
    "aicpu_thread_num": 4,
    "block_dim": 24,
}

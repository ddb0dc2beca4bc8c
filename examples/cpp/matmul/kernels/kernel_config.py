"""matmul in C++: products on cube cores, the sum on vector cores."""

KERNELS = [
    {"func_id": 0, "source": "aic/product.cpp", "core_type": "aic"},
    {"func_id": 1, "source": "aiv/add.cpp", "core_type": "aiv"},
]
ORCHESTRATION = {"source": "orchestration/matmul_orch.cpp", "function_name": "build_matmul_graph"}
AICPU_ORCHESTRATION = {"source": "aicpu/build_graph.cpp", "function_name": "build_graph_aicpu"}
RUNTIME_CONFIG = {
    "runtime": "aicpu_build_graph",
    "runtimes": ["host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer"],
    "aicpu_thread_num": 4,
    "block_dim": 8,
}

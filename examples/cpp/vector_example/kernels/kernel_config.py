"""vector_example in C++: three kernels, and one graph program for both runtimes."""

KERNELS = [
    {"func_id": 0, "source": "aiv/add.cpp", "core_type": "aiv"},
    {"func_id": 1, "source": "aiv/add_scalar.cpp", "core_type": "aiv"},
    {"func_id": 2, "source": "aiv/mul.cpp", "core_type": "aiv"},
]
ORCHESTRATION = {"source": "orchestration/vector_orch.cpp", "function_name": "build_vector_graph"}
AICPU_ORCHESTRATION = {"source": "aicpu/build_graph.cpp", "function_name": "build_graph_aicpu"}
RUNTIME_CONFIG = {
    "runtime": "host_build_graph",
    "runtimes": ["host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer"],
    "aicpu_thread_num": 4,
    "block_dim": 4,
}

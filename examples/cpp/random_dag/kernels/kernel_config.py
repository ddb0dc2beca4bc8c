"""random_dag in C++: one node a task, on either core kind."""

KERNELS = [
    {"func_id": 0, "source": "node.cpp", "core_type": "aic"},
    {"func_id": 1, "source": "node.cpp", "core_type": "aiv"},
]
ORCHESTRATION = {"source": "orchestration/dag_orch.cpp", "function_name": "build_dag"}
AICPU_ORCHESTRATION = {"source": "aicpu/build_graph.cpp", "function_name": "build_graph_aicpu"}
RUNTIME_CONFIG = {
    "runtime": "aicpu_build_graph",
    "runtimes": ["host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer"],
    "aicpu_thread_num": 4,
    "block_dim": 24,
}

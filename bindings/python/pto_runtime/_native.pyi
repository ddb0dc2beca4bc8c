from os import PathLike
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

__version__: str

CoreType = Union[str, int]

def headers() -> List[Tuple[str, str]]: ...

class Device:
    name: str
    cores: Tuple[int, int]
    memory: Tuple[int, int]
    kernels: List[Tuple[int, str, str]]
    def __init__(
        self,
        *,
        aic: int = 24,
        aiv: int = 48,
        gm_bytes: int = ...,
        hosting: str = "pool",
        os_threads: int = 0,
    ) -> None: ...
    def malloc(self, bytes: int) -> int: ...
    def free(self, address: int) -> None: ...
    def copy_to_device(self, address: int, array: Any) -> None: ...
    def copy_from_device(self, array: Any, address: int) -> None: ...
    def register_library(self) -> None: ...
    def register_library_kernel(self, func_id: int, kernel: str) -> None: ...
    def register_kernel(
        self,
        func_id: int,
        core_type: CoreType,
        source: Union[str, "PathLike[str]", bytes],
        *,
        name: Optional[str] = None,
        symbol: str = "kernel_entry",
    ) -> None: ...
    def unregister_kernel(self, func_id: int) -> None: ...
    def run(
        self,
        graph: "Graph",
        *,
        build_mode: Union[int, str] = ...,
        fanout: str = ...,
        aicpu_instances: int = ...,
        tasks: int = ...,
        arg_words: int = ...,
        edges: int = ...,
        task_budget: float = ...,
        stall_budget: float = ...,
        bring_up_budget: float = ...,
        run_budget: Optional[float] = ...,
        kernel_times: bool = ...,
        trace: bool = ...,
        window: int = ...,
        map_entries: int = ...,
        heap_rings: int = ...,
        heap_bytes: int = ...,
        progress: Optional[Callable[[int, int], Any]] = ...,
    ) -> "Report": ...
    def close(self) -> None: ...
    def __enter__(self) -> "Device": ...
    def __exit__(self, kind: Any, error: Any, trace: Any) -> None: ...

class Graph:
    task_count: int
    edge_count: int
    def __init__(self) -> None: ...
    def add_task(
        self, func_id: int, core_type: CoreType, args: Sequence[int], after: Iterable[int] = ...
    ) -> int: ...
    def add_edge(self, producer: int, consumer: int) -> None: ...

class FieldRuntime:
    def __init__(self, device: Device, runtime: str = "host_build_graph", **options: Any) -> None: ...
    def orchestrate(self, path: Union[str, "PathLike[str]"], function: str, arrays: List[Any]) -> None: ...
    def run(self, **options: Any) -> "Report": ...
    def finalize(self) -> None: ...
    def __enter__(self) -> "FieldRuntime": ...
    def __exit__(self, kind: Any, error: Any, trace: Any) -> None: ...

class Report:
    runtime: str
    tasks: int
    edges: int
    edges_satisfied: int
    makespan: float
    tasks_run: Tuple[int, int]
    utilisation: Tuple[float, float]
    tasks_per_second: float
    logs: List[str]
    trace: Optional["Trace"]

class Trace:
    duration: float
    tasks: List[Tuple[int, str, Optional[str], Optional[float], Optional[float]]]
    edges: List[Tuple[int, int]]
    dropped: int
    run: List[Tuple[str, str]]
    def save(self, path: Union[str, "PathLike[str]"]) -> None: ...
    def analyze(self) -> str: ...
    def svg(self) -> str: ...
    def html(self) -> str: ...

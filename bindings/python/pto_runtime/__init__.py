"""PTO Runtime from Python: devices, graphs, runs, and the runner of C++ examples.

    from pto_runtime import Device, Graph

    with Device() as device:
        device.register_library()
        ...
"""

from . import acl, ops
from ._native import (
    Device,
    Event,
    FieldRuntime,
    Graph,
    HostBuffer,
    KernelStream,
    LoadedProgram,
    Notify,
    Program,
    ProgramStream,
    Recording,
    Report,
    Session,
    Tensor,
    Trace,
    __version__,
)
from .arrays import download, upload
from .errors import (
    CompileError,
    ConfigError,
    FaultError,
    HostError,
    MismatchError,
    PtoError,
)
from .groups import Group
from .headers import include_dir
from .programs import load_onnx, program_of, program_of_tasks, task_range
from .progress import ProgressBar
from .runtime_builder import Runtime, RuntimeBuilder

__all__ = [
    "CompileError",
    "ConfigError",
    "Device",
    "Event",
    "FaultError",
    "FieldRuntime",
    "Graph",
    "Group",
    "HostError",
    "HostBuffer",
    "KernelStream",
    "LoadedProgram",
    "MismatchError",
    "Notify",
    "Program",
    "ProgramStream",
    "ProgressBar",
    "PtoError",
    "Recording",
    "Report",
    "Runtime",
    "RuntimeBuilder",
    "Session",
    "Tensor",
    "Trace",
    "__version__",
    "acl",
    "download",
    "include_dir",
    "load_onnx",
    "ops",
    "program_of",
    "program_of_tasks",
    "task_range",
    "upload",
]

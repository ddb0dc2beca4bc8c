"""PTO Runtime from Python: devices, graphs, runs, and the runner of C++ examples.

    from pto_runtime import Device, Graph

    with Device() as device:
        device.register_library()
        ...
"""

from ._native import Device, FieldRuntime, Graph, Report, Trace, __version__
from .arrays import download, upload
from .errors import (
    CompileError,
    ConfigError,
    FaultError,
    HostError,
    MismatchError,
    PtoError,
)
from .headers import include_dir
from .progress import ProgressBar
from .runtime_builder import Runtime, RuntimeBuilder

__all__ = [
    "CompileError",
    "ConfigError",
    "Device",
    "FaultError",
    "FieldRuntime",
    "Graph",
    "HostError",
    "MismatchError",
    "ProgressBar",
    "PtoError",
    "Report",
    "Runtime",
    "RuntimeBuilder",
    "Trace",
    "__version__",
    "download",
    "include_dir",
    "upload",
]

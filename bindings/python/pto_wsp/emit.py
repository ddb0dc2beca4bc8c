"""The target `ascend_npu`: C++ sources for host, AICPU and AICore."""

from __future__ import annotations

from typing import Any

from .errors import CompileError


def emit(workload: Any, lowered: Any, checked: Any) -> str:
    """Writes the sources; the folder."""
    raise CompileError("The target ascend_npu is not built yet. Use cpu_sim.")

"""Runs of a workload on a device: the plan is compiled once, the AICPU expands it, cores execute the kernels.

Times are those of the device: of this machine's clock, or, with `Device(hosting="virtual")`, virtual ones."""

from __future__ import annotations

import threading
from typing import Any, Optional

from pto_runtime import Device, _native

from .errors import CompileError, KernelError
from .foreign import entry_of

#: Devices that were not asked for by name are the same one for all programs.
_shared: Optional[Device] = None
_lock = threading.Lock()


def shared_device() -> Device:
    """The simulator that programs run on whose `compile` names no device: a whole die, on a pool of threads."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = Device()
        return _shared


class OnDevice:
    """A workload that was compiled for a device."""

    def __init__(self, checked: Any, device: Optional[Device], lowered: Any) -> None:
        if device is not None and not isinstance(device, Device):
            raise CompileError(f"The device is a {type(device).__name__}. Give a pto_runtime.Device.")
        try:
            functions = {
                name: entry_of(*of, lowered.foreign_axes[name]) for name, of in lowered.foreign.items()
            }
        except KernelError as error:
            raise CompileError(str(error)) from error
        self._native = _native.DeviceWorkload(checked, functions)
        self._device = device
        #: How many tasks the run that is under way has completed, or the last one.
        self.tasks_done = 0

    @property
    def plan_words(self) -> int:
        """Words of 32 bits of the plan."""
        return self._native.plan_words

    @property
    def device(self) -> Device:
        """The device."""
        return self._device or shared_device()

    def run(self, given: dict[str, Any], traced: bool) -> tuple[Any, int]:
        """Runs it; the report, and the cycles of the v9 clock that the kernels have reported, in sum."""
        self.tasks_done = 0
        report, cycles = self._native.run(self.device, given, trace=traced, progress=self._progress)
        self.tasks_done = report.kernels
        return report, cycles

    def _progress(self, completed: int, added: int) -> None:
        self.tasks_done = completed

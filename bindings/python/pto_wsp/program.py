"""Programs: workloads that were checked, and their runs.

Target `cpu_sim` runs on this machine: the crate `pto-workload` goes through the tree in program order, the tile machine
computes, and the v9 clock counts cycles. Target `a2a3sim` runs on a device (`on_device`)."""

from __future__ import annotations

import os
import threading
import time
import warnings
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from pto_runtime import HostError, _native, program_of

from .errors import CompileError, ExecutionError, KernelError, PtoError, WorkloadWarning
from .foreign import body_of
from .lowering import Lowered, lowered
from .on_device import OnDevice
from .trace import ExecutionTrace, TraceLevel
from .tree import Node
from .types import as_array

CHANNEL_LATENCY = "__pto_wsp_channel_latency_cycles"
TARGETS = ("cpu_sim", "a2a3sim", "ascend_npu")
#: The target of programs that name none; `cpu_sim` where it is not set.
TARGET_VARIABLE = "PTO_WSP_TARGET"


@dataclass
class ProgramStats:
    """What the last run counted."""

    compile_time_ms: float = 0.0
    execute_time_ms: float = 0.0
    task_count: int = 0
    #: Tasks that ran concurrently with another one.
    parallel_tasks: int = 0
    #: When the last task ended, on the v9 clock. On a device: the sum of the cycles that the kernels report on that clock.
    total_cycles: int = 0
    #: On a device: from the launch to the end, in nanoseconds of the device's clock.
    device_ns: float = 0.0
    #: Tasks that were issued although the window was full, in benchmark mode.
    window_overflows: int = 0


class Program:
    """A workload that was checked, with the sizes and symbols of its next run."""

    def __init__(
        self, workload: Node, target: Optional[str] = None, axis_sizes: Optional[dict[str, int]] = None, device: Any = None
    ) -> None:
        target = target or os.environ.get(TARGET_VARIABLE, "cpu_sim")
        if device is not None and target != "a2a3sim":
            raise CompileError(f"The target {target} has no device. Compile for a2a3sim.")
        if target not in TARGETS:
            raise CompileError(f"There is no target {target!r}. Use {' or '.join(TARGETS)}.")
        begin = time.perf_counter()
        self.workload = workload
        self.target = target
        self.stats = ProgramStats()
        self.trace = ExecutionTrace()
        #: The folder with the sources of `ascend_npu`.
        self.codegen_artifact_dir: Optional[str] = None
        self._lowered, self._checked = self._compile()
        self._sizes: dict[str, int] = {}
        self._symbols: dict[str, int] = {}
        self._arrays: dict[str, list[int]] = {}
        self._grain = 0
        self._bind_axes()
        self._bodies = {}
        self._on_device: Optional[OnDevice] = None
        if target == "cpu_sim":
            self._bodies = self._compiled_bodies()
        elif target == "a2a3sim":
            self._on_device = self._compile_for(device)
        else:
            from .emit import emit

            self.codegen_artifact_dir = emit(workload, self._lowered, self._checked)
        self.set_axis_sizes(axis_sizes or {})
        self.stats.compile_time_ms = 1e3 * (time.perf_counter() - begin)
        self._thread: Optional[threading.Thread] = None
        self._error: Optional[BaseException] = None

    @property
    def using_cpp_backend(self) -> bool:
        """True: the native part runs programs."""
        return True

    @property
    def text(self) -> str:
        """The workload in its textual form."""
        return self._checked.text

    def save(
        self,
        path: Any,
        *,
        roles: Optional[dict[str, str]] = None,
        layouts: Optional[dict[str, str]] = None,
        constants: Optional[dict[str, Any]] = None,
    ) -> None:
        """Writes a program file (`.ptop`), which `pto program`, sessions in every language, and other machines run.

        The file has the plan, the kernels and the descriptions of the tensors, and no data but that of `constants`. `roles` and `layouts` say of a tensor
        what the writer cannot know: "temporary", "updated", "output"; "nz:500x300", "on-chip, row-major"."""
        if self._lowered.foreign:
            kernels = ", ".join(self._lowered.foreign)
            raise CompileError(f"The kernels {kernels} have bodies in C++, which a program file does not hold.")
        try:
            program_of(self._checked, roles=roles, layouts=layouts, constants=constants).save(path)
        except HostError as error:
            raise CompileError(f"{_lines_of(self._lowered.lines, str(error))}{error}") from error

    def _compile(self) -> tuple[Lowered, Any]:
        found = Lowered()
        try:
            found = lowered(self.workload, self.target)
            checked = _native.CheckedWorkload(found.text)
        except (PtoError, TypeError, ValueError, LookupError, RuntimeError) as error:
            lines = _lines_of(found.lines, str(error))
            raise CompileError(f"Codegen compilation failed: {lines}{error}") from error
        for message in checked.warnings:
            warnings.warn(f"{_lines_of(found.lines, message)}{message}", WorkloadWarning, stacklevel=4)
        return found, checked

    def _for_device(self) -> tuple[Any, Lowered]:
        """The workload, checked, as a device runs it: kernels with bodies in C++ have their axes as parameters there."""
        if not self._lowered.foreign or self.target == "a2a3sim":
            return self._checked, self._lowered
        found = lowered(self.workload, "a2a3sim")
        return _native.CheckedWorkload(found.text), found

    def _compiled_bodies(self) -> dict[str, Any]:
        """The kernels with bodies in C++, compiled."""
        try:
            return {name: body_of(*of) for name, of in self._lowered.foreign.items()}
        except KernelError as error:
            raise CompileError(f"Codegen compilation failed: {error}") from error

    def _compile_for(self, device: Any) -> OnDevice:
        try:
            return OnDevice(self._checked, device, self._lowered)
        except (CompileError, ValueError) as error:
            raise CompileError(f"Codegen compilation failed: {_lines_of(self._lowered.lines, str(error))}{error}") from error

    def _bind_axes(self) -> None:
        """Ragged and sparse axes have what they were made with until the program says otherwise."""
        for number, axis in self._lowered.axes.items():
            self._symbols[f"outer_{number}"] = axis.outer_size
            for name in ("lengths", "indptr", "indices"):
                if hasattr(axis, name):
                    self._arrays[f"{name}_{number}"] = _int32(f"{name}_{number}", getattr(axis, name))

    def set_axis_sizes(self, sizes: dict[str, int]) -> None:
        """The sizes of dynamic axes (`DenseDyn`), by the names of their loops: see there."""
        for name, size in sizes.items():
            if name not in self._lowered.sizes:
                known = ", ".join(self._lowered.sizes) or "none"
                hint = "A loop is named by P(.., names=[..]), and not by its variable in Python."
                raise ValueError(f"The program has no dynamic axis {name!r}. It has: {known}. {hint}")
            self._sizes[name] = _u64(name, size)

    def _known(self, name: str, type: str) -> None:
        known = self._lowered.symbols.get(name)
        if known is not None and known != type:
            raise ValueError(f"The program takes the symbol {name} for {known}, not for {type}.")
        if known is None and name not in self._symbols and name != CHANNEL_LATENCY:
            warnings.warn(f"The program has no symbol {name}.", WorkloadWarning, stacklevel=3)

    def set_symbol_u64(self, name: str, value: int) -> None:
        """An integer symbol."""
        if name in self._lowered.sizes:
            self.set_axis_sizes({name: value})
            return
        self._known(name, "u64")
        self._symbols[name] = _u64(name, value)

    def set_symbol_f32(self, name: str, value: float) -> None:
        """A symbol of type f32."""
        self._known(name, "f32")
        self._symbols[name] = int(np.float32(value).view(np.uint32))

    def set_symbol_ptr(self, name: str, value: Any) -> None:
        """An array of an axis: integers that fit int32."""
        if name not in self._arrays:
            known = ", ".join(self._arrays) or "none"
            raise ValueError(f"The program has no array {name!r}. It has: {known}.")
        self._arrays[name] = _int32(name, value)

    def set_grain(self, calls: int) -> None:
        """How many calls of a kernel one dispatch of a device has at most: 1 puts none together, 0 leaves the choice to the device."""
        self._grain = _u64("The grain", calls)

    def enable_tracing(self, level: TraceLevel = TraceLevel.TIMING) -> None:
        """The next runs are recorded."""
        self.trace.level = level

    def disable_tracing(self) -> None:
        """The next runs are not recorded."""
        self.trace.level = TraceLevel.NONE

    def clear_trace(self) -> None:
        """Forgets the record."""
        self.trace.clear()

    def execute(self) -> None:
        """Begins a run and returns. Its tensors must not be written until `synchronize` returns."""
        if self.target == "ascend_npu":
            raise RuntimeError(
                f"The target {self.target} is source: {self.codegen_artifact_dir}. Compile for cpu_sim to run it here."
            )
        if self._thread is not None and self._thread.is_alive():
            raise RuntimeError("The program is running. Call synchronize first.")
        self._raise()
        given = self._given()
        self._thread = threading.Thread(target=self._run, args=(given,), name="pto_wsp", daemon=True)
        self._thread.start()

    def _given(self) -> dict[str, Any]:
        tensors = {}
        for name, tensor in self._lowered.tensors.items():
            if tensor.data is None:
                tensors[name] = np.zeros(tensor.shape, tensor.dtype.numpy)
            else:
                try:
                    tensors[name] = as_array(tensor.data, tensor.dtype)
                except TypeError as error:
                    raise ExecutionError(f"The tensor {name}: {error}") from None
        return {
            "tensors": tensors,
            "sizes": dict(self._sizes),
            "symbols": dict(self._symbols),
            "arrays": dict(self._arrays),
            "foreign": dict(self._bodies),
            "grain": self._grain,
        }

    def measure(self) -> ProgramStats:
        """Runs on copies of the tensors, and gives what the run counted. Tensors that share memory do not share it there."""
        given = self._given()
        given["tensors"] = {name: array.copy() for name, array in given["tensors"].items()}
        self._run(given)
        self._raise()
        return self.stats

    def _run(self, given: dict[str, Any]) -> None:
        begin = time.perf_counter()
        is_traced = self.trace.level is not TraceLevel.NONE
        try:
            if self._on_device is None:
                self._run_here(given, is_traced)
            else:
                self._run_there(self._on_device, given, is_traced)
        except BaseException as error:
            self._error = error
            return
        self.stats.execute_time_ms = 1e3 * (time.perf_counter() - begin)

    def _run_here(self, given: dict[str, Any], is_traced: bool) -> None:
        """In program order, on the v9 clock."""
        cycles, tasks, parallel, overflows, events = self._checked.run(given, is_traced)
        self.stats.total_cycles, self.stats.task_count = cycles, tasks
        self.stats.parallel_tasks, self.stats.window_overflows = parallel, overflows
        if is_traced:
            self.trace.record(events, cycles)

    def _run_there(self, device: OnDevice, given: dict[str, Any], is_traced: bool) -> None:
        """On a device, on its clock."""
        if given["symbols"].get(CHANNEL_LATENCY):
            raise ExecutionError(f"A device has no {CHANNEL_LATENCY}: channels take the time that they take. Set it to 0, or compile for cpu_sim.")
        report, cycles = device.run(given, is_traced)
        self.stats.total_cycles, self.stats.task_count = cycles, report.kernels
        self.stats.device_ns = 1e9 * report.makespan
        if is_traced:
            self.trace.record_device(report.trace, cycles)
            self.stats.parallel_tasks = self.trace.beside_another()

    @property
    def tasks_done(self) -> int:
        """How many tasks the run has done so far; of all, `stats.task_count` says after it."""
        return self._checked.tasks_done if self._on_device is None else self._on_device.tasks_done

    def is_complete(self) -> bool:
        """Whether no run is under way."""
        return self._thread is None or not self._thread.is_alive()

    def synchronize(self) -> None:
        """Waits for the end of the run, and raises what ended it early."""
        while self._thread is not None and self._thread.is_alive():
            # Now and then, so that the thread of the program hears signals.
            self._thread.join(0.05)
        self._raise()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is None:
            return
        message = f"{_lines_of(self._lowered.lines, str(error))}{error}"
        raise ExecutionError(message) from error


def _lines_of(lines: dict[str, list[str]], message: str) -> str:
    """The lines of the user's source where the kernel that a message names is called."""
    for kernel, found in lines.items():
        words = message.replace(",", " ").replace(":", " ").split()
        if found and any(pair == ("kernel", kernel) for pair in zip((w.lower() for w in words), words[1:])):
            return " or ".join(found[:3]) + ": "
    return ""


def _u64(name: str, value: Any) -> int:
    if not hasattr(value, "__index__") or not 0 <= value.__index__() < 2**64:
        raise ValueError(f"{name} is {value!r}, and must be an integer from 0 to 2**64 - 1.")
    return value.__index__()


def _int32(name: str, value: Any) -> list[int]:
    array = np.asarray(value)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"The array {name} must be a list of integers, not {array.dtype} of shape {array.shape}.")
    if array.size and not (-(2**31) <= array.min() and array.max() < 2**31):
        raise ValueError(f"The array {name} has elements that do not fit int32.")
    return array.tolist()

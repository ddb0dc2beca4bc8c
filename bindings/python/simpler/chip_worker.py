"""One device: callables in slots, and their runs. `Worker` gives out handles over it; white-box tests use the slots.

A slot has one callable. What is loaded when it is registered stays loaded until it is unregistered.
"""

import os
import threading
import time

from _task_interface import MAX_REGISTERED_CALLABLE_IDS, CallConfig, ChipCallable, TaskArgs, TensorArgType, timing
from pto_runtime import _native
from pto_runtime.errors import ConfigError

from . import _log, qemu_machine
from .diagnostics import Diagnostics
from .failure import FieldRunError, WorkerStateError

PLATFORMS = ("a2a3sim", "a5sim")
RUNTIMES = ("tensormap_and_ringbuffer", "host_build_graph", "aicpu_build_graph")
# The entry that says how many arguments are expected, unless the callable names another one.
_CONFIG = "aicpu_orchestration_config"
_LEVELS = ("error", "warn", "timing", "info", "debug")
# Programs spin on one another, on machines with few processors: only what does not move at all is taken for a stall.
_BUDGET_SECONDS = 60
# How often a run says how far it is.
_PROGRESS_SECONDS = 10
# The span of a run, and its name until July 2026.
_RUN_SPANS = ("chip.run", "simpler_run")
# Of a device, unless a program asks for more.
_CLUSTERS = 8
# What a ring of the field holds, unless a program asks for a size.
_FIELD_RING = 16384
_ROLES = {
    TensorArgType.INPUT: "in",
    TensorArgType.OUTPUT: "out",
    TensorArgType.OUTPUT_EXISTING: "out",
    TensorArgType.INOUT: "inout",
    TensorArgType.NO_DEP: "inout",
}


def check_target(platform, runtime):
    """Refuses what we do not have, and says what we have."""
    if platform not in PLATFORMS:
        raise ValueError(f"platform {platform!r} is not here: use {' or '.join(PLATFORMS)}, the simulators")
    if runtime not in RUNTIMES:
        raise ValueError(f"there is no runtime {runtime!r}: use {' or '.join(RUNTIMES)}")


def _kernels(chip):
    """Func id, kind of core, name and bytes of each kernel."""
    found = []
    for func_id, core in chip.children:
        kind = chip.core_types.get(func_id) or core.core_type
        if kind not in ("aic", "aiv"):
            raise ValueError(
                f"func id {func_id} of {chip.func_name!r}: nothing says which core its kernel is for. "
                "Compile it with KernelCompiler.compile_incore, or set core_types of the ChipCallable."
            )
        found.append((func_id, kind, chip.kernel_names.get(func_id) or core.name or f"func{func_id}", core.binary))
    return found


def _tensor_words(args):
    """Address, shape, element type, role and place of each tensor."""
    found = []
    for number, (tensor, tag) in enumerate(args.tensors):
        if not tensor.is_dense:
            raise ValueError(f"tensor {number} {tensor!r} has the strides {tensor.strides}: arguments are dense")
        found.append((tensor.base, list(tensor.shapes), int(tensor.dtype), _ROLES[tag], tensor.buffer.is_device))
    return found


def _budgets():
    """How long a task, and a run without progress, may take: SIMPLER_SCHEDULER_TIMEOUT_MS, as with the field; until July 2026 PTO2_SCHEDULER_TIMEOUT_MS."""
    asked = os.environ.get("SIMPLER_SCHEDULER_TIMEOUT_MS") or os.environ.get("PTO2_SCHEDULER_TIMEOUT_MS")
    seconds = int(asked) / 1000 if asked else _BUDGET_SECONDS
    return {"task_budget": seconds, "stall_budget": seconds}


class _Progress:
    """Says now and then how far a run is that takes long."""

    def __init__(self, seconds=_PROGRESS_SECONDS, clock=time.monotonic):
        self._clock, self._seconds = clock, seconds
        self._begin = self._told = clock()

    def __call__(self, completed, added):
        now = self._clock()
        if now - self._told >= self._seconds:
            self._told = now
            _log.write("timing", f"progress: {completed:,} of {added:,} tasks so far are completed after {now - self._begin:.0f} s")


class ChipWorker:
    """A device of the simulator that stays open. Its runs come one after the other, whichever thread asks."""

    def __init__(self, platform, runtime, device_id=0, *, is_one_of_several=False):
        check_target(platform, runtime)
        self.platform, self.runtime, self.device_id = platform, runtime, device_id
        # Its kernels may wait for what other devices, or functions of Python, write.
        self._waits_for_outside = bool(is_one_of_several)
        self.load_count = self.tasks = 0
        # Whose rule decides which task waits for which: ours or the field's.
        self.edges = os.environ.get("PTO_FIELD_EDGES", "ours")
        self._slots = {}
        self._one_run = threading.Lock()
        # What is said in addition to errors: "races", "lines".
        self.reports = [name.strip() for name in os.environ.get("PTO_FIELD_REPORTS", "").split(",") if name.strip()]
        # Lines that kernels share are found where one kernel at a time runs.
        usual = "serial" if "lines" in self.reports else "threads"
        self._is_open, self._on_machine = True, qemu_machine.is_asked()
        if self._on_machine and is_one_of_several:
            raise ConfigError(
                "a process has one emulated machine: run programs of several devices with another PTO_FIELD_HOSTING (threads, pool, serial or virtual)"
            )
        self._hosting = os.environ.get("PTO_FIELD_HOSTING", usual)
        # By clusters. The machine is opened with the kernels of the program that it runs.
        self._devices = {} if self._on_machine else {_CLUSTERS: _native.FieldDevice(self._hosting)}
        self._machine = self._machine_slot = None

    def close(self):
        """Unloads everything and closes the device."""
        self._slots.clear()
        self._devices.clear()
        self._machine, self._is_open = None, False

    def _register_callable_at_slot(self, slot, chip):
        if not isinstance(chip, ChipCallable):
            raise TypeError(f"{type(chip).__name__} is no ChipCallable")
        if not 0 <= slot < MAX_REGISTERED_CALLABLE_IDS:
            raise RuntimeError(f"slot {slot}: a device has MAX_REGISTERED_CALLABLE_IDS={MAX_REGISTERED_CALLABLE_IDS}")
        if slot in self._slots:
            raise RuntimeError(f"slot {slot} has a callable already: unregister it first")
        config = chip.config_name or _CONFIG
        self._check_open()
        kernels, images = _kernels(chip), None
        if self._on_machine:
            kernels, images = qemu_machine.with_names(kernels), qemu_machine.images(kernels)
        loaded = _native.FieldDevice.load(chip.binary, chip.func_name, config, kernels)
        self.load_count += 1
        self._slots[slot] = chip, loaded, images

    # In May and June 2026.
    prepare_callable = _prepare_callable_at_slot = _register_callable_at_slot

    def _unregister_slot(self, slot):
        self._slots.pop(slot, None)

    def _check_open(self):
        if not self._is_open:
            raise WorkerStateError("the device is closed")

    def _device_of(self, slot, config):
        """The device that runs a slot's callable: one of the size that the configuration names, or a machine with the callable's kernels."""
        self._check_open()
        if self._on_machine:
            if self._machine_slot != (slot, self._slots[slot][2]):
                # A process has one at a time.
                self._machine = self._machine_slot = None
                self._machine = _native.FieldDevice(qemu_machine.HOSTING, self._slots[slot][2])
                self._machine_slot = slot, self._slots[slot][2]
            return self._machine
        # Until July 2026 the simulator had as many clusters as the configuration said.
        clusters = max(config.block_dim, _CLUSTERS)
        if clusters not in self._devices:
            self._devices[clusters] = _native.FieldDevice(self._hosting, clusters=clusters)
        return self._devices[clusters]

    def _run_slot(self, slot, args=None, config=None):
        """Runs a slot's callable; raises FieldRunError with the field's code if the run fails."""
        if slot not in self._slots:
            raise RuntimeError(f"slot {slot} has no callable: register one first")
        _chip, loaded, _images = self._slots[slot]
        args, config = args or TaskArgs(), config or CallConfig()
        if not isinstance(args, TaskArgs):
            raise TypeError(f"the arguments are a {type(args).__name__}: give TaskArgs")
        diagnostics = Diagnostics(config, self.platform)
        with self._one_run:
            start = time.perf_counter_ns()
            options = {**_budgets(), **diagnostics.options(), "their_limits": _their_limits(config), "progress": _Progress()}
            options["waits_for_outside"] = self._waits_for_outside
            outcome = self._device_of(slot, config).run(
                loaded, _tensor_words(args), args.scalars, _rings(config), edges=self.edges, reports=self.reports, **options
            )
            spent = time.perf_counter_ns() - start
        self.tasks = outcome.tasks
        self._tell(outcome, start, spent)
        diagnostics.write(outcome)
        if outcome.code != 0:
            raise FieldRunError(outcome.code, outcome.lines)
        return timing.RunTiming(spent, _device_ns(outcome, spent)) if timing.is_asked else None

    def _tell(self, outcome, start_ns, spent_ns):
        for level, text in outcome.log:
            _log.write(_LEVELS[min(max(level, 0), len(_LEVELS) - 1)], text)
        for line in outcome.lines:
            _log.write("error", line)
        for note in outcome.notes:
            _log.write("warn", note)
        device_ns = _device_ns(outcome, spent_ns)
        spans = [("", start_ns, spent_ns), (".runner_run.device_wall", start_ns, max(device_ns, 1))]
        for slot, span in enumerate(outcome.timing):
            if span is not None:
                spans.append((f".runner_run.device_wall.task_slot_{slot}", span[0], max(span[1] - span[0], 1)))
        for part, begin, duration in spans:
            for run in _RUN_SPANS:
                _log.write("timing", f"[STRACE] name={run}{part} ts={begin} dur={duration}")


def _device_ns(outcome, spent_ns):
    return int(1e9 * outcome.report.makespan) if outcome.report else spent_ns


def _rings(config):
    """The largest heap of the four rings. Windows and edges are ours, which are ample; 0 means ours."""
    return 0, max(config.runtime_env.per_ring("ring_heap")), 0


def _their_limits(config):
    """The field's window and edge pool, where the program asks for sizes: what does not fit there fails here, too."""
    window, pool = (max(config.runtime_env.per_ring(name)) for name in ("ring_task_window", "ring_dep_pool"))
    return (window or _FIELD_RING, pool or _FIELD_RING) if window or pool else None

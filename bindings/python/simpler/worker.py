"""`Worker`: a device (level 2), or several devices with functions of the host (level 3), in this process.

Where the field forks a process for each device and each function, ours are threads: they share the caller's memory, so any
array may be an argument, whether or not it is in shared memory, and whenever it was made.
"""

import hashlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from _task_interface import MAX_REGISTERED_CALLABLE_IDS, AddressSpace, CallConfig, ChipCallable

from . import _log
from . import buffer as buffers
from .bootstrap import Bootstrap
from .callable_identity import CallableHandle
from .chip_worker import ChipWorker, check_target
from .failure import DeadHandleError, WorkerStateError
from .orchestrator import Orchestrator
from .run_handle import RunHandle

_NUMBERS = itertools.count(1)


@dataclass
class Chip:
    """A device and the thread that runs on it."""

    device: ChipWorker
    lane: ThreadPoolExecutor


class Registry:
    """What is registered, by code: handles of the same code share a slot, which is free when the last one is gone."""

    def __init__(self):
        self._slots = {}
        self._handles = {}
        self._targets = {}

    def add(self, target, part=""):
        """A handle for an orchestration or a function. What is registered as different parts shares no slot."""
        hashid, name = _identity(target)
        hashid += part
        slot = self._slots.get(hashid)
        if slot is None:
            slot = next((i for i in range(MAX_REGISTERED_CALLABLE_IDS) if i not in self._targets), None)
            if slot is None:
                raise RuntimeError(
                    f"{name} cannot be registered: MAX_REGISTERED_CALLABLE_IDS={MAX_REGISTERED_CALLABLE_IDS} callables "
                    "are registered already. Unregister one that is not needed."
                )
            self._slots[hashid], self._targets[slot] = slot, target
        handle = CallableHandle(hashid, name, slot, next(_NUMBERS))
        self._handles[handle.number] = handle
        return handle

    def remove(self, handle):
        """Forgets a handle; says whether its slot is free now."""
        self.find(handle)
        del self._handles[handle.number]
        if any(other.slot == handle.slot for other in self._handles.values()):
            return False
        del self._slots[handle.hashid], self._targets[handle.slot]
        return True

    def find(self, handle):
        """The object of a handle."""
        if not isinstance(handle, CallableHandle) or handle.number not in self._handles:
            raise DeadHandleError(f"{handle!r} is not live: use what register() of this worker gave, before unregister()")
        return self._targets[handle.slot]

    def chips(self):
        """Slots of orchestrations."""
        return [(slot, one) for slot, one in self._targets.items() if isinstance(one, ChipCallable)]


def _identity(target):
    if isinstance(target, ChipCallable):
        return target.hashid, target.func_name
    if callable(target):
        name = getattr(target, "__name__", type(target).__name__)
        return "python:" + hashlib.sha256(str(id(target)).encode()).hexdigest(), name
    raise TypeError(f"{type(target).__name__} cannot be registered: give a ChipCallable or a function")


class Worker:
    """Runs registered orchestrations. `device_ids` number the devices of level 3; on the simulator any number will do."""

    def __init__(
        self,
        level,
        *,
        platform="a2a3sim",
        runtime="tensormap_and_ringbuffer",
        device_id=None,
        device_ids=None,
        num_sub_workers=0,
        chip_bootstrap_configs=(),
        build=None,
        aicpu_thread_num=None,
    ):
        if level not in (2, 3):
            raise ValueError(f"a worker of level {level}: levels 2 (one device) and 3 (several) are here")
        check_target(platform, runtime)
        self.level, self.platform, self.runtime = level, platform, runtime
        self.device_ids = list(device_ids) if device_ids is not None else [0 if device_id is None else int(device_id)]
        if not self.device_ids or (level == 2 and len(self.device_ids) != 1):
            raise ValueError(f"a worker of level {level} with devices {self.device_ids}")
        self.num_sub_workers = int(num_sub_workers)
        self.owner = buffers.BufferOwner()
        self.chips = []
        self._registry = Registry()
        self._subs = self._runs = None
        self._given, self._prepared = {}, {}
        self._bootstrap_configs, self._bootstrap = list(chip_bootstrap_configs or ()), None

    def init(self, prewarm_config=None):
        """Opens the devices and loads what is registered. A second call does nothing."""
        if self.chips:
            return
        if prewarm_config is not None and not isinstance(prewarm_config, CallConfig):
            raise TypeError(f"prewarm_config is a {type(prewarm_config).__name__}: give a CallConfig")
        _log.write("info", f"AicpuExecutor: Initializing {len(self.device_ids)} device(s) of {self.platform}")
        for number in self.device_ids:
            device = ChipWorker(self.platform, self.runtime, number, is_one_of_several=self.level == 3)
            self.chips.append(Chip(device, ThreadPoolExecutor(1, thread_name_prefix=f"device-{number}")))
        self._runs = ThreadPoolExecutor(1, thread_name_prefix="runs")
        self._bootstrap = Bootstrap(self._bootstrap_configs, self.device_ids, self.owner)
        if self.num_sub_workers:
            self._subs = ThreadPoolExecutor(self.num_sub_workers, thread_name_prefix="sub")
        for slot, chip in self._registry.chips():
            self._load(slot, chip)

    def _load(self, slot, chip):
        for one in self.chips:
            if slot not in one.device._slots:
                one.device._register_callable_at_slot(slot, chip)

    def close(self):
        """Waits for what runs and closes the devices. A second call does nothing."""
        for pool in (self._runs, self._subs, *(chip.lane for chip in self.chips)):
            if pool is not None:
                pool.shutdown(wait=True)
        if self._bootstrap is not None:
            self._bootstrap.close()
            self._bootstrap = None
        for chip in self.chips:
            chip.device.close()
        self.chips, self._runs, self._subs = [], None, None

    def __enter__(self):
        self.init()
        return self

    def __exit__(self, *_error):
        self.close()

    def register(self, target):
        """A handle for a ChipCallable, or at level 3 for a function; loads it at once if the worker is open."""
        return self._register(target)

    def _register(self, target, part=""):
        handle = self._registry.add(target, part)
        if self.chips and isinstance(target, ChipCallable):
            try:
                self._load(handle.slot, target)
            except Exception:
                self._registry.remove(handle)
                raise
        return handle

    def unregister(self, handle):
        """Forgets a handle, and the code when no handle of it is left."""
        if self._registry.remove(handle):
            for chip in self.chips:
                chip.device._unregister_slot(handle.slot)

    # In April 2026.
    finalize = close

    def run(self, target, args=None, config=None, **options):
        """Runs a handle (level 2) or an orchestration function (level 3) to its end. In April 2026 programs gave what is in a configuration by name."""
        if options:
            config = config or CallConfig()
            for name, value in options.items():
                setattr(config, name, value)
        return self.submit(target, args, config).wait()

    def submit(self, target, args=None, config=None):
        """Begins a run; runs of a worker come one after the other."""
        if not self.chips:
            raise WorkerStateError("the worker is not open: call init() first")
        config = config or CallConfig()
        if self.level == 2:
            slot = self.chip_slot(target)
            return RunHandle(self._runs.submit(self.chips[0].device._run_slot, slot, args, config))
        if not callable(target):
            raise TypeError(f"a level-3 run takes a function (orch, args, config), and this is a {type(target).__name__}")
        return RunHandle(self._runs.submit(self._orchestrate, target, args, config))

    def _orchestrate(self, function, args, config):
        orchestrator = Orchestrator(self)
        try:
            function(orchestrator, args, config)
        finally:
            orchestrator.finish()

    def _handle_of(self, target):
        """The handle; one that is made now for a ChipCallable, which programs until May 2026 give; the one of a number of the program's."""
        target = self._prepared.get(target, target) if isinstance(target, int) else target
        if not isinstance(target, ChipCallable):
            return target
        if target not in self._given:
            self._given[target] = self.register(target)
        return self._given[target]

    def chip_slot(self, handle):
        """The slot of an orchestration's handle."""
        handle = self._handle_of(handle)
        if not isinstance(self._registry.find(handle), ChipCallable):
            raise TypeError(f"{handle.name} is a function: submit it with submit_sub()")
        return handle.slot

    def chip_signature(self, handle):
        """What an orchestration does with its arguments."""
        self.chip_slot(handle)
        return self._registry.find(self._handle_of(handle)).signature

    def python_function(self, handle):
        """The function of a handle."""
        found = self._registry.find(handle)
        if isinstance(found, ChipCallable):
            raise TypeError(f"{handle.name} is an orchestration: submit it with submit_next_level()")
        return found

    def sub_lane(self):
        """The threads that call functions."""
        if self._subs is None:
            raise WorkerStateError("this worker has no threads for functions: make it with num_sub_workers=1 or more")
        return self._subs

    def device_buffer(self, nbytes, _device=0):
        """Memory that runs use in place."""
        memory = buffers.host_buffer(nbytes, self.owner)
        memory.address_space, memory.backend_kind = AddressSpace.DEVICE, buffers.BackendKind.DEVICE_MALLOC
        return memory

    @property
    def chip_contexts(self):
        """The windows that `chip_bootstrap_configs` asked for."""
        return self._bootstrap.contexts if self._bootstrap else []

    def prepare_callable(self, number, target):
        """Loads an orchestration under a number of the program's (May and June 2026), also where another number has it."""
        if number in self._prepared:
            raise RuntimeError(f"number {number} has a callable already: call unregister_callable({number}) first")
        self._prepared[number] = self._register(target, f"number {number}")

    def unregister_callable(self, number):
        """Forgets what has that number."""
        self.unregister(self._prepared.pop(number, number))

    def malloc(self, nbytes):
        """Memory of the device; give it back with free()."""
        if not self.chips:
            raise WorkerStateError("the worker is not open: call init() first")
        return self.device_buffer(nbytes)

    def free(self, memory):
        """Gives memory back."""
        memory.close()

    def copy_to(self, target, source, nbytes=None):
        """Copies an array or a buffer to a buffer of the device."""
        buffers.copy(target, source, nbytes)

    def copy_from(self, target, source, nbytes=None):
        """Copies a buffer of the device to an array or a buffer."""
        buffers.copy(target, source, nbytes)

    def create_buffer(self, nbytes):
        """Memory of the host, with `shm.buf`, that runs can use."""
        return buffers.host_buffer(nbytes, self.owner)

    # In July 2026.
    create_host_buffer, free_host_buffer = create_buffer, free

    def alloc_shared_tensor(self, shapes, dtype):
        """A tensor in new memory of the host."""
        return buffers.new_tensor(shapes, dtype, self.owner)

    def make_tensor_arg(self, array, shapes=None, dtype=None):
        """An array of torch or NumPy as a tensor argument."""
        return buffers.array_tensor(array, shapes, dtype)

    @property
    def tasks(self):
        """How many tasks the last run of the first device had."""
        return self.chips[0].device.tasks

    @property
    def _chip_worker(self):
        return self.chips[0].device if self.level == 2 and self.chips else None

    def _resolve_handle(self, handle):
        self._registry.find(handle)
        return _Resolved(handle.slot)

    @property
    def aicpu_dlopen_count(self):
        """How often an orchestration was loaded for the device's side."""
        return self._loads("tensormap_and_ringbuffer")

    @property
    def host_dlopen_count(self):
        """How often an orchestration was loaded for the host's side."""
        return self._loads("host_build_graph")

    def _loads(self, runtime):
        return sum(chip.device.load_count for chip in self.chips) if self.runtime == runtime else 0


@dataclass(frozen=True)
class _Resolved:
    slot_id: int

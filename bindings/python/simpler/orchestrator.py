"""The `orch` that a level-3 orchestration function gets: it submits tasks to devices and to functions, and makes domains."""

import math

from _task_interface import CallConfig, TaskArgs

from . import buffer as buffers
from .domain import Domain
from .payloads import PayloadOutputs, WorkerType, tagged
from .task_graph import TaskGraph, accesses_of
from .worker_chip_message_queue import Queue
from .worker_chip_orch_comm import Region


class Orchestrator:
    """One run's view of a worker. Tasks begin as soon as what they wait for is over, while the function still submits."""

    def __init__(self, worker):
        self._worker = worker
        self._graph = TaskGraph()
        self._domains = []
        self._kept = []
        self._next = 0
        self._outputs = PayloadOutputs(worker.owner)

    def _chip_index(self, index):
        count = len(self._worker.chips)
        if index is None or index < 0:
            index, self._next = self._next % count, self._next + 1
        if index >= count:
            raise ValueError(f"worker {index}: this one has {count} devices, numbered from 0")
        return index

    def _part(self, handle, args, config, index):
        chip = self._worker.chips[self._chip_index(index)]
        slot = self._worker.chip_slot(handle)
        args = _checked(args)
        return chip.lane, lambda: chip.device._run_slot(slot, args, config)

    def submit_next_level(self, handle, args, config=None, *, worker=None):
        """Submits an orchestration to one device: the one named, else the next in turn."""
        self._keep(args)
        part = self._part(handle, args, config or CallConfig(), worker)
        return self._graph.add([part], accesses_of(_checked(args)))

    def submit_next_level_group(self, handle, args_list, config=None, *, workers=None):
        """Submits one orchestration to several devices, which run it together."""
        workers = list(range(len(args_list))) if workers is None else list(workers)
        if len(workers) != len(args_list) or len(set(workers)) != len(workers):
            raise ValueError(f"a group of {len(args_list)} arguments for workers {workers}: give a different one for each")
        self._keep(*args_list)
        config = config or CallConfig()
        parts = [self._part(handle, args, config, index) for args, index in zip(args_list, workers)]
        return self._graph.add(parts, [use for args in args_list for use in accesses_of(_checked(args))])

    def submit_sub(self, handle, args=None):
        """Submits a registered Python function; it gets the arguments when all it waits for is over."""
        args = args or TaskArgs()
        function = self._worker.python_function(handle)
        self._keep(args)
        return self._graph.add([(self._worker.sub_lane(), lambda: function(args))], accesses_of(args))

    def submit(self, worker_type, payload, inputs=(), outputs=(), args_list=None):
        """Submits a payload, as programs of April 2026 do; with `args_list` to as many devices."""
        uses, (result, made) = self._outputs.read(inputs), self._outputs.made(outputs)
        if WorkerType(worker_type) is WorkerType.SUB:
            self._graph.add([(self._worker.sub_lane(), self._worker.python_function(payload.callable_id))], uses + made)
            return result
        config = CallConfig()
        config.block_dim, config.aicpu_thread_num = payload.block_dim, payload.aicpu_thread_num
        signature = self._worker.chip_signature(payload.callable)
        given = [tagged(_checked(args), signature) for args in ([payload.args] if args_list is None else args_list)]
        self._keep(*given)
        parts = [self._part(payload.callable, args, config, None) for args in given]
        self._graph.add(parts, [*uses, *made, *(use for args in given for use in accesses_of(args))])
        return result

    def allocate_domain(self, name, workers, window_size, buffers=()):
        """Makes windows for these workers; a context manager, indexed by the worker's number."""
        for index in workers:
            self._chip_index(index)
        domain = Domain(name, workers, window_size, list(buffers), self._worker.owner)
        self._domains.append(domain)
        return domain

    def create_worker_chip_region(self, worker_id, payload_bytes, counter_bytes):
        """Memory that this function and an orchestration on the worker share while both run."""
        self._chip_index(worker_id)
        return self._kept_buffer(Region(payload_bytes, counter_bytes))

    def create_worker_chip_queue(self, worker_id, depth, input_arena_bytes, output_arena_bytes):
        """Queues in both directions between this function and an orchestration on the worker."""
        self._chip_index(worker_id)
        return self._kept_buffer(Queue(depth, input_arena_bytes, output_arena_bytes))

    # In June and July 2026.
    create_l3_l2_region, create_l3_l2_queue = create_worker_chip_region, create_worker_chip_queue

    def malloc(self, worker_id, nbytes=None, *, size=None):
        """Memory on one device, until the run ends."""
        return self._kept_buffer(self._worker.device_buffer(size if nbytes is None else nbytes, self._chip_index(worker_id)))

    def free(self, *given):
        """Gives memory of `malloc` back; tasks that use it must be over. Until July 2026 the number of the device comes first."""
        given[-1].close()

    def alloc_child_tensor(self, worker_id, shapes, dtype):
        """Memory for a tensor on one device, until the run ends: the buffer, of which `tensor()` makes views."""
        return self.malloc(worker_id, max(math.prod(shapes) * buffers.get_element_size(dtype), 1))

    def alloc(self, shapes, dtype):
        """A tensor of the host, until the run ends."""
        return buffers.new_tensor(shapes, dtype, self._worker.owner)

    def copy_to(self, *given, **named):
        """Copies to a device or a window, now."""
        _copy(*given, **named)

    def copy_from(self, *given, **named):
        """Copies from a device or a window, now."""
        _copy(*given, **named)

    def _kept_buffer(self, memory):
        self._kept.append(memory)
        return memory

    def _keep(self, *things):
        # Tensors of arguments stay alive until the run ends.
        self._kept.extend(things)

    def finish(self):
        """Waits for all tasks; raises the first error."""
        try:
            self._graph.drain()
        finally:
            self._domains.clear()
            self._kept.clear()


def _checked(args):
    if not isinstance(args, TaskArgs):
        raise TypeError(f"the arguments are a {type(args).__name__}: give TaskArgs")
    return args


def _copy(*given, worker_id=None, dst=None, src=None, size=None):
    """Target and source. Until July 2026: the number of a device, target, source and bytes, in this order or by name."""
    if dst is not None:
        given = (dst, src, size)
    buffers.copy(*(given[1:] if len(given) == 4 else given))

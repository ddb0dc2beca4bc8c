"""Windows that a worker of level 3 has from its beginning on, as programs of April and May 2026 ask for them. Later ones use `orch.allocate_domain`."""

from dataclasses import dataclass, field
from multiprocessing.shared_memory import SharedMemory

from .domain import CommBufferSpec, Domain


@dataclass
class ChipCommBootstrapConfig:
    """A rank among so many, and the bytes of its window."""

    rank: int
    nranks: int
    rootinfo_path: str
    window_size: int


@dataclass
class ChipBufferSpec:
    """A buffer in the window of a rank."""

    name: str
    dtype: str
    count: int
    nbytes: int
    load_from_host: bool = False
    store_to_host: bool = False


@dataclass
class HostBufferStaging:
    """Shared memory by its name, whose bytes a buffer begins or ends with."""

    name: str
    shm_name: str
    size: int


@dataclass
class ChipBootstrapConfig:
    """What one rank begins with."""

    comm: ChipCommBootstrapConfig = None
    buffers: list = field(default_factory=list)
    host_inputs: list = field(default_factory=list)
    host_outputs: list = field(default_factory=list)


@dataclass
class ChipContext:
    """The window of a rank."""

    device_id: int
    rank: int
    nranks: int
    device_ctx: int
    local_window_base: int
    actual_window_size: int
    buffer_ptrs: dict


class Bootstrap:
    """The windows of all ranks of a worker."""

    def __init__(self, configs, device_ids, owner):
        ranks = [(number, config) for number, config in enumerate(configs) if config.comm is not None]
        self._configs, self._domain, self.contexts = ranks, None, []
        if not ranks:
            return
        specs = [CommBufferSpec(one.name, one.dtype, one.count, one.nbytes) for one in ranks[0][1].buffers]
        self._domain = Domain("bootstrap", [number for number, _ in ranks], ranks[0][1].comm.window_size, specs, owner)
        for number, config in ranks:
            view = self._domain[number]
            for staging in config.host_inputs:
                self._staged(staging, number)[:] = bytes(_shared(staging))
            self.contexts.append(
                ChipContext(
                    device_ids[number], view.domain_rank, view.domain_size, view.device_ctx, view.local_window_base, view.actual_window_size, view.buffer_ptrs
                )
            )

    def _staged(self, staging, number):
        return self._domain.bytes_of(number, staging.name, staging.size)

    def close(self):
        """Copies what the host is to have back."""
        for number, config in self._configs:
            for staging in config.host_outputs:
                _shared(staging, bytes(self._staged(staging, number)))


def _shared(staging, content=None):
    """The bytes of a program's shared memory; with `content`, those are written there first."""
    memory = SharedMemory(name=staging.shm_name)
    try:
        if content is not None:
            memory.buf[: staging.size] = content
        return bytes(memory.buf[: staging.size])
    finally:
        memory.close()

"""`RuntimeBuilder`: the runtimes of a platform, by name, as users of such runtimes know it."""

from ._native import Device, FieldRuntime
from .errors import ConfigError

RUNTIMES = ("host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer")
# Blocks of a full die; a block is one AIC and two AIV.
FULL_DIE = 24


class RuntimeBuilder:
    """The runtimes of a platform. `a2a3sim` is the simulator; there is no other one here."""

    def __init__(self, platform="a2a3sim"):
        if platform != "a2a3sim":
            raise ValueError(
                f"platform {platform!r} cannot be run from here: use 'a2a3sim', the simulator"
            )
        self.platform = platform

    def list_runtimes(self):
        """The names of the runtimes."""
        return list(RUNTIMES)

    def build(self, name, *, block_dim=FULL_DIE, aicpu_thread_num=4, **device_options):
        """A runtime, ready to be initialised: one AIC and two AIV a block. Nothing is compiled: it is built in."""
        if name not in RUNTIMES:
            known = ", ".join(RUNTIMES)
            raise ConfigError(f"there is no runtime {name!r}; there are {known}")
        return Runtime(name, block_dim, aicpu_thread_num, device_options)


class Runtime:
    """A runtime with its device. `initialize` calls an orchestration, `launch` runs, `finalize` copies back."""

    def __init__(self, name, block_dim=FULL_DIE, aicpu_thread_num=4, device_options=None):
        for key, value in (("block_dim", block_dim), ("aicpu_thread_num", aicpu_thread_num)):
            if not isinstance(value, int) or value < 1:
                raise ConfigError(f"{key} is {value!r}, and must be a number above zero")
        self.name = name
        self.aicpu_thread_num = aicpu_thread_num
        self.device = Device(aic=block_dim, aiv=2 * block_dim, **(device_options or {}))
        self._field = None

    def register_kernel(self, func_id, core_type, source, **keywords):
        """Registers a kernel of a shared or relocatable object."""
        self.device.register_kernel(func_id, core_type, source, **keywords)

    def initialize(self, orchestration, function, arrays):
        """Calls an orchestration function with the addresses of `arrays`, their bytes, and the elements of the first."""
        self.finalize()
        self._field = FieldRuntime(self.device, self.name, aicpu_instances=self.aicpu_thread_num)
        self._field.orchestrate(orchestration, function, list(arrays))

    def launch(self, **options):
        """Runs what the orchestration has prepared; gives a `Report`."""
        if self._field is None:
            raise ConfigError("launch: call initialize first")
        options.setdefault("aicpu_instances", self.aicpu_thread_num)
        return self._field.run(**options)

    def finalize(self):
        """Copies back what the orchestration has recorded, and frees its memory; also after an error."""
        field, self._field = self._field, None
        if field is not None:
            field.finalize()

    def close(self):
        """Finalises, and closes the device."""
        try:
            self.finalize()
        finally:
            self.device.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

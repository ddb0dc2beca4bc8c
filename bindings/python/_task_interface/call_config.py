"""How one run is configured: threads, ring sizes, diagnostics."""

RINGS = 4
_LOWEST = {"ring_task_window": 4, "ring_heap": 1024, "ring_dep_pool": 4}


def _ring_value(name, value):
    """A ring's size for all rings, or one for each; 0 means the default."""
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(given) not in (1, RINGS):
        raise ValueError(f"{name} has {len(given)} values: give one, or one for each of the {RINGS} rings")
    for one in given:
        if isinstance(one, bool) or not isinstance(one, int):
            raise TypeError(f"{name} is {one!r}: give an integer, or a list of {RINGS}")
        if one != 0 and one < _LOWEST[name]:
            raise ValueError(f"{name} is {one}: the least is {_LOWEST[name]}, and 0 means the default")
        if name == "ring_task_window" and one & (one - 1):
            raise ValueError(f"{name} is {one}: use a power of two")
    return given[0] if len(given) == 1 else given


class RuntimeEnv:
    """Sizes of the task rings: one value for all four rings, or a list with a value for each."""

    __slots__ = ("_values",)

    def __init__(self):
        object.__setattr__(self, "_values", dict.fromkeys(_LOWEST, 0))

    def __setattr__(self, name, value):
        if name not in _LOWEST:
            raise AttributeError(f"runtime_env has no {name!r}: use {', '.join(_LOWEST)}")
        self._values[name] = _ring_value(name, value)

    def __getattr__(self, name):
        if name.startswith("_") or name not in _LOWEST:
            raise AttributeError(f"runtime_env has no {name!r}: use {', '.join(_LOWEST)}")
        return self._values[name]

    def per_ring(self, name):
        """The value of every ring."""
        value = self._values[name]
        return list(value) if isinstance(value, list) else [value] * RINGS

    def __repr__(self):
        return f"RuntimeEnv({', '.join(f'{name}={value}' for name, value in self._values.items())})"


_DEFAULTS = {
    "aicpu_thread_num": 3,
    "block_dim": 0,
    "enable_chip_swimlane": 0,
    "enable_l2_swimlane": 0,
    "enable_dump_args": 0,
    "enable_pmu": 0,
    "enable_dep_gen": False,
    "enable_scope_stats": False,
    "output_prefix": "",
}


# Names of options in earlier months: May to June, and April.
_EARLIER = {"enable_dump_tensor": "enable_dump_args", "enable_profiling": "enable_l2_swimlane"}


class CallConfig:
    """The configuration of one run. An attribute that does not exist is refused."""

    def __init__(self):
        for name, value in _DEFAULTS.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "runtime_env", RuntimeEnv())

    def __getattr__(self, name):
        if name not in _EARLIER:
            raise AttributeError(f"CallConfig has no {name!r}: use {', '.join(_DEFAULTS)}, runtime_env")
        return getattr(self, _EARLIER[name])

    def __setattr__(self, name, value):
        name = _EARLIER.get(name, name)
        if name not in _DEFAULTS:
            raise AttributeError(f"CallConfig has no {name!r}: use {', '.join(_DEFAULTS)}, runtime_env")
        object.__setattr__(self, name, value)

    @property
    def swimlane_level(self):
        """How much of the timeline is kept: 0 is nothing. The option has had two names."""
        return int(self.enable_chip_swimlane) or int(self.enable_l2_swimlane)

    @property
    def has_diagnostics(self):
        """Whether the run writes files."""
        asked = (self.swimlane_level, self.enable_dump_args, self.enable_pmu, self.enable_dep_gen)
        return any(asked) or bool(self.enable_scope_stats)

    def __repr__(self):
        return f"CallConfig({', '.join(f'{name}={getattr(self, name)!r}' for name in _DEFAULTS)}, {self.runtime_env!r})"

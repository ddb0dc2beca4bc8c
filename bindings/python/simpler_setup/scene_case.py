"""CASES of a scene test: checked, and chosen by platform, name and the mark `manual`."""

import os
from dataclasses import dataclass

from pto_runtime.errors import ConfigError

MANUAL_MODES = ("exclude", "include", "only")
_KEYS = {"name", "platforms", "params", "config", "manual", "skip_golden", "requires_hardware", "sdma", "required_sched_phases"}
_CONFIG_KEYS = {
    "aicpu_thread_num",
    "block_dim",
    "runtime_env",
    "device_count",
    "num_sub_workers",
    "enable_chip_swimlane",
}


def platforms_of(names):
    """Platforms that a case or a test names; with PTO_FIELD_HARDWARE also the simulator of each device among them."""
    names = list(names)
    if os.environ.get("PTO_FIELD_HARDWARE"):
        names += [f"{one}sim" for one in names if one in ("a2a3", "a5") and f"{one}sim" not in names]
    return names


def check_cases(cls):
    """Refuses a malformed CASES: a key that is never read is a mistake of the author."""
    seen = set()
    for number, case in enumerate(getattr(cls, "CASES", ())):
        where = f"{cls.__name__}.CASES[{number}]"
        if not isinstance(case, dict) or "name" not in case:
            raise ConfigError(f"{where} is no dict with a name")
        if unknown := sorted(set(case) - _KEYS):
            raise ConfigError(f"{where} has the keys {unknown}: use {', '.join(sorted(_KEYS))}")
        if unknown := sorted(set(case.get("config", {})) - _CONFIG_KEYS):
            raise ConfigError(f"{where}['config'] has the keys {unknown}: use {', '.join(sorted(_CONFIG_KEYS))}")
        if case["name"] in seen:
            raise ConfigError(f"{where}: two cases are called {case['name']!r}")
        seen.add(case["name"])


def is_manual(case, platform):
    """Whether a case is run only when asked for: on this platform, or on all."""
    manual = case.get("manual", False)
    return platform in manual if isinstance(manual, (list, tuple, set)) else bool(manual)


def matches_manual(manual, mode):
    """Whether a manual or other case is wanted."""
    return {"exclude": not manual, "include": True, "only": manual}[mode]


@dataclass(frozen=True)
class Selection:
    """Which cases are wanted. `names` are `Class::case`, `Class`, `::case` or `case`; none means all."""

    platform: str
    manual: str = "exclude"
    names: tuple = ()
    # Cases that an earlier process has run, as `Class::case`.
    done: frozenset = frozenset()

    def has(self, class_name, case):
        """Whether the case is wanted."""
        label = f"{class_name}::{case['name']}"
        if self.platform not in platforms_of(case.get("platforms", ())) or label in self.done:
            return False
        if not matches_manual(is_manual(case, self.platform), self.manual):
            return False
        return not self.names or any(_is_named(name, class_name, case["name"]) for name in self.names)


def _is_named(name, class_name, case_name):
    wanted_class, separator, wanted_case = name.partition("::")
    if not separator:
        return name in (class_name, case_name)
    return wanted_class in ("", class_name) and wanted_case in ("", case_name)


def device_count(case):
    """How many devices a case needs."""
    return int(case.get("config", {}).get("device_count", 1))

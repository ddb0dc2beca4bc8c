"""What a scene test declares under CALLABLE becomes callables: sources are compiled in the folder of the test's file."""

import inspect
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from _task_interface import ChipCallable, CoreCallable
from pto_runtime.errors import ConfigError
from pto_runtime.headers import field_include_dir
from simpler import qemu_machine

from .kernel_compiler import KernelCompiler
from .pto_isa import ensure_pto_isa_root

_INCORE_KEYS = {"func_id", "source", "core_type", "signature", "name", "extra_include_dirs"}
_ORCHESTRATION_KEYS = {"source", "function_name", "signature", "config_name", "name"}
# Compilers at once.
_JOBS = 2


def folder_of(cls):
    """Where a test's sources are looked for: in the folder of the class that declares CALLABLE."""
    for one in cls.__mro__:
        if "CALLABLE" in vars(one):
            return Path(inspect.getfile(one)).resolve().parent
    raise ConfigError(f"{cls.__name__} has no CALLABLE")


def _checked(spec, keys, needed, where):
    if unknown := sorted(set(spec) - keys):
        raise ConfigError(f"{where} has the keys {unknown}: use {', '.join(sorted(keys))}")
    if missing := sorted(needed - set(spec)):
        raise ConfigError(f"{where} lacks the keys {missing}")
    return spec


def _resolved(folder, source, where):
    path = (folder / source).resolve()
    if not path.is_file():
        raise ConfigError(f"{where}: there is no source {path}")
    return path


def _uses_tiles(source):
    """Whether a kernel includes PTO-ISA, or a header of its author's, which may."""
    names = re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)', source.read_text(errors="replace"), re.MULTILINE)
    ours = field_include_dir()
    return any(name.startswith("pto/") or (mark == '"' and not (ours / name).is_file()) for mark, name in names)


def compile_chip(spec, folder, platform, runtime, where, flags=()):
    """The ChipCallable of `{"orchestration": ..., "incores": [...]}`."""
    compiler = KernelCompiler(platform)
    entry = _checked(spec["orchestration"], _ORCHESTRATION_KEYS, {"source", "function_name"}, f"{where}['orchestration']")
    incores = [
        _checked(one, _INCORE_KEYS, {"func_id", "source", "core_type"}, f"{where}['incores'][{number}]")
        for number, one in enumerate(spec.get("incores", ()))
    ]
    includes = compiler.get_orchestration_include_dirs(runtime)

    def kernel(one):
        more = [*includes, *(str(folder / extra) for extra in one.get("extra_include_dirs", ()))]
        source = _resolved(folder, one["source"], where)
        root = ensure_pto_isa_root() if _uses_tiles(source) and not qemu_machine.is_asked() else None
        return CoreCallable.build(one.get("signature", ()), compiler.compile_incore(source, one["core_type"], root, more))

    with ThreadPoolExecutor(_JOBS) as pool:
        orchestration = pool.submit(
            compiler.compile_orchestration, runtime, _resolved(folder, entry["source"], where), flags=flags
        )
        cores = list(pool.map(kernel, incores))
    chip = ChipCallable.build(
        entry.get("signature", ()),
        entry["function_name"],
        orchestration.result(),
        [(one["func_id"], core) for one, core in zip(incores, cores)],
        entry.get("config_name", ""),
    )
    chip.kernel_names.update({one["func_id"]: one["name"] for one in incores if one.get("name")})
    return chip


_BUILT = {}


def chip_of(cls, platform):
    """The ChipCallable of a level-2 test; compiled once a process."""
    key = cls, platform
    if key not in _BUILT:
        _BUILT[key] = compile_chip(cls.CALLABLE, folder_of(cls), platform, cls._st_runtime, f"{cls.__name__}.CALLABLE")
    return _BUILT[key]


def callables_of(cls, platform):
    """Of a level-3 test: names with what is registered under them, and the signatures of orchestrations."""
    key = cls, platform
    if key not in _BUILT:
        _BUILT[key] = _callables(cls, platform)
    return _BUILT[key]


def _callables(cls, platform):
    targets, signatures = {}, {}
    for number, spec in enumerate(cls.CALLABLE.get("callables", ())):
        where = f"{cls.__name__}.CALLABLE['callables'][{number}]"
        name = spec.get("name")
        if not name or name in targets:
            raise ConfigError(f"{where} has no name, or that of another one")
        if "callable" in spec:
            targets[name] = spec["callable"]
        else:
            targets[name] = compile_chip(spec, folder_of(cls), platform, cls._st_runtime, where)
            signatures[name] = spec["orchestration"].get("signature", [])
    return targets, signatures

"""kernel_config.py and golden.py: loaded, and checked key by key."""

import ast
import importlib.util
import os
import re
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .errors import ConfigError
from .runtime_builder import RUNTIMES

CORE_TYPES = ("aic", "aiv")


@dataclass
class KernelEntry:
    func_id: int
    source: Path
    core_type: str
    name: str = ""
    include_dirs: tuple = ()


@dataclass
class FunctionEntry:
    source: Path
    function_name: str


@dataclass
class KernelConfig:
    """What kernel_config.py says."""

    folder: Path
    kernels: list
    orchestration: FunctionEntry
    aicpu_orchestration: FunctionEntry
    stream_orchestration: FunctionEntry
    runtime: str
    runtimes: tuple
    aicpu_thread_num: int
    block_dim: int
    options: dict
    env: dict = field(default_factory=dict)
    # Whether RUNTIME_CONFIG says it.
    has_block_dim: bool = False

    def chip_spec(self):
        """The program as scene tests declare one."""
        incores = [
            {"func_id": one.func_id, "source": str(one.source), "core_type": one.core_type, "name": one.name, "extra_include_dirs": one.include_dirs}
            for one in self.kernels
        ]
        orchestration = {"source": str(self.orchestration.source), "function_name": self.orchestration.function_name}
        return {"orchestration": orchestration, "incores": incores}

    def plugin(self, runtime):
        """The AICPU builder plugin of a runtime; None: the orchestration builds the graph, or embeds one of its own."""
        if runtime == "tensormap_and_ringbuffer" and self.stream_orchestration is not None:
            return self.stream_orchestration
        return None if runtime == "host_build_graph" else self.aicpu_orchestration


@dataclass
class Golden:
    """What golden.py says."""

    path: Path
    generate_inputs: object
    compute_golden: object
    params: list
    tensor_order: object
    outputs: object
    rtol: float
    atol: float


def load_module(path, role):
    """Runs a file of the user, and gives its module."""
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"{role}: there is no file {path}")
    name = f"_pto_{role}_{abs(hash(str(path.resolve())))}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ConfigError(f"{path}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        raise raised_in(path, error) from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def raised_in(path, error):
    """What a file of the user raised, with its line."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = frames[-1].lineno if frames else 1
    return ConfigError(f"{path}:{line}: {type(error).__name__}: {error}")


class _Reader:
    """Looks up keys, and says where they are when they are wrong."""

    def __init__(self, path, module):
        self.path = path
        self.module = module

    def line_of(self, key):
        """Where the file gives `key`, such as KERNELS[1]['source'], its value; as far as it is written out there."""
        top, *inner = re.findall(r"[^\[\]'\"]+", key)
        line, value = 1, None
        for node in ast.walk(ast.parse(self.path.read_text())):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            if any(isinstance(target, ast.Name) and target.id == top for target in targets):
                line, value = node.lineno, getattr(node, "value", None)
        for part in inner:
            if isinstance(value, (ast.List, ast.Tuple)) and part.isdigit() and int(part) < len(value.elts):
                value = value.elts[int(part)]
            elif isinstance(value, ast.Dict):
                named = (v for k, v in zip(value.keys, value.values) if isinstance(k, ast.Constant) and k.value == part)
                value = next(named, None)
            else:
                value = None
            line = value.lineno if value is not None else line
        return line

    def wrong(self, key, what):
        return ConfigError(f"{self.path}:{self.line_of(key)}: {key}: {what}")

    def names(self, key):
        """A list of names; None: it is not there."""
        value = getattr(self.module, key, None)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
            raise self.wrong(key, f"is {value!r}, and must be a list of names")
        return list(value)

    def top(self, key, kind, default=None):
        value = getattr(self.module, key, None)
        if value is None:
            if default is None:
                raise ConfigError(f"{self.path}: {key} is missing")
            return default
        if not isinstance(value, kind):
            raise self.wrong(key, f"is {type(value).__name__}, and must be {kind.__name__}")
        return value

    def item(self, owner, name, key, kind):
        if not isinstance(owner, dict):
            raise self.wrong(name, f"is {type(owner).__name__}, and must be dict")
        if key not in owner:
            raise self.wrong(name, f"the key {key!r} is missing")
        if not isinstance(owner[key], kind) or isinstance(owner[key], bool):
            kinds = getattr(kind, "__name__", "str")
            raise self.wrong(f"{name}[{key!r}]", f"is {owner[key]!r}, and must be {kinds}")
        return owner[key]

    def source(self, owner, name, folder):
        given = self.item(owner, name, "source", (str, Path))
        path = folder / given
        if not path.is_file():
            raise self.wrong(f"{name}['source']", f"there is no file {path}")
        return path


def _kernels(reader, folder):
    kernels, seen = [], {}
    for index, entry in enumerate(reader.top("KERNELS", list)):
        name = f"KERNELS[{index}]"
        func_id = reader.item(entry, name, "func_id", int)
        core_type = reader.item(entry, name, "core_type", str)
        if not 0 <= func_id < 1024:
            raise reader.wrong(f"{name}['func_id']", f"is {func_id}, and must be 0 to 1023")
        if core_type not in CORE_TYPES:
            raise reader.wrong(f"{name}['core_type']", f"is {core_type!r}, and must be 'aic' or 'aiv'")
        if func_id in seen:
            raise reader.wrong(f"{name}['func_id']", f"{func_id} is that of KERNELS[{seen[func_id]}], too")
        seen[func_id] = index
        includes = entry.get("extra_include_dirs", ())
        if not isinstance(includes, (list, tuple)):
            raise reader.wrong(f"{name}['extra_include_dirs']", f"is {includes!r}, and must be a list of folders")
        kernels.append(KernelEntry(func_id, reader.source(entry, name, folder), core_type, str(entry.get("name", "")), tuple(map(str, includes))))
    if not kernels:
        raise reader.wrong("KERNELS", "is empty")
    return kernels


def _function(reader, key, folder):
    entry = getattr(reader.module, key, None)
    if entry is None:
        return None
    return FunctionEntry(
        reader.source(entry, key, folder), reader.item(entry, key, "function_name", str)
    )


def _env(reader, folder):
    env = {}
    for key, value in reader.top("RUNTIME_ENV", dict, {}).items():
        if not isinstance(key, str) or not isinstance(value, (str, int, Path)):
            raise reader.wrong("RUNTIME_ENV", f"{key!r}: {value!r} is no name and text")
        is_path = key.endswith("_DIR") or key.endswith("_PATH") or key == "PTO_AICPU_ORCH_SO"
        text = str(value)
        if is_path and text and not os.path.isabs(text):
            text = str((folder / text).resolve())
        env[key] = text
    return env


def load_kernel_config(folder):
    """Loads FOLDER/kernel_config.py."""
    folder = Path(folder)
    path = folder / "kernel_config.py"
    reader = _Reader(path, load_module(path, "kernel_config"))
    orchestration = _function(reader, "ORCHESTRATION", folder)
    if orchestration is None:
        raise ConfigError(f"{path}: ORCHESTRATION is missing")
    config = reader.top("RUNTIME_CONFIG", dict, {})
    # Rounds and threads of March 2026 have no effect.
    # Whether the device copies between devices by itself has none either: all memory of the simulator is within reach.
    known = {"runtime", "aicpu_thread_num", "block_dim", "runtimes", "options", "rounds", "orch_thread_num", "enable_sdma"}
    for key in config:
        if key not in known:
            raise reader.wrong(f"RUNTIME_CONFIG[{key!r}]", f"unknown key {key!r}; there are {', '.join(sorted(known))}")
    runtime = config.get("runtime", RUNTIMES[0])
    runtimes, options = config.get("runtimes", (runtime,)), config.get("options", {})
    for key, value, kind in (("runtimes", runtimes, (list, tuple)), ("options", options, dict)):
        if not isinstance(value, kind):
            expected = "dict" if kind is dict else "a list"
            raise reader.wrong(f"RUNTIME_CONFIG[{key!r}]", f"is {value!r}, and must be {expected}")
    for name in (runtime, *runtimes):
        if name not in RUNTIMES:
            raise reader.wrong("RUNTIME_CONFIG['runtime']", f"is {name!r}; there are {', '.join(RUNTIMES)}")
    numbers = {}
    for key, default in (("aicpu_thread_num", 4), ("block_dim", 24)):
        # Compilers write 0 for the number that the runtime chooses.
        value = config.get(key, default) or (0 if key == "block_dim" else default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise reader.wrong(f"RUNTIME_CONFIG[{key!r}]", f"is {value!r}, and must be above zero")
        numbers[key] = value
    return KernelConfig(
        folder=folder,
        kernels=_kernels(reader, folder),
        orchestration=orchestration,
        aicpu_orchestration=_function(reader, "AICPU_ORCHESTRATION", folder),
        stream_orchestration=_function(reader, "STREAM_ORCHESTRATION", folder),
        runtime=runtime,
        runtimes=tuple(runtimes),
        options=dict(options),
        env=_env(reader, folder),
        has_block_dim="block_dim" in config,
        **numbers,
    )


def load_golden(path):
    """Loads golden.py."""
    path = Path(path)
    reader = _Reader(path, load_module(path, "golden"))
    functions = {}
    for key in ("generate_inputs", "compute_golden"):
        function = getattr(reader.module, key, None)
        if not callable(function):
            raise ConfigError(f"{path}: the function {key} is missing")
        functions[key] = function
    params = reader.top("PARAMS_LIST", list, [{}])
    if cases := getattr(reader.module, "ALL_CASES", None):
        # The field runs one of these, unless it is asked for others.
        params = [dict(cases[getattr(reader.module, "DEFAULT_CASE", next(iter(cases)))])]
    if not params or not all(isinstance(one, dict) for one in params):
        raise reader.wrong("PARAMS_LIST", "must be a list of dict, and not empty")
    tolerances = {}
    for key in ("RTOL", "ATOL"):
        value = getattr(reader.module, key, 1e-5)
        if not isinstance(value, (int, float)) or value < 0:
            raise reader.wrong(key, f"is {value!r}, and must be a number that is not negative")
        tolerances[key.lower()] = float(value)
    return Golden(
        path=path,
        params=params,
        tensor_order=reader.names("TENSOR_ORDER"),
        outputs=reader.names("__outputs__"),
        **functions,
        **tolerances,
    )


@contextmanager
def environment(values):
    """Sets variables of the environment for a while; sources in C++ see them."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value

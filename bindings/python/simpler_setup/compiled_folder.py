"""Runs a folder that pypto's compiler has written, without pypto.

    python -m simpler_setup.compiled_folder FOLDER [-p a2a3sim] [-d 0-3] [--pto-isa PTO_ISA]

    FOLDER  kernel_config.py, kernels/, orchestration/NAME.cpp                       one device
            orchestration/host_orch.py, next_levels/NAME/.., sub_workers/NAME.py     several devices: each NAME is a folder for one device
            golden.py, data/                                                         inputs, expected outputs, tolerances
"""

import argparse
import contextlib
import ctypes
import importlib.util
import inspect
import json
import sys
import types
from pathlib import Path

from _task_interface import CallConfig, get_element_size
from pto_runtime.config import environment, load_golden, load_kernel_config, load_module
from pto_runtime.errors import ConfigError
from simpler import arrays
from simpler.worker import Worker

from . import scene_build
from .comparison import compare
from .february import ERRORS, GoldenExample, run_cases
from .scene_worker import devices_of
from .task_args import Scalar, TaskArgsBuilder, TensorArg
from .torch_interop import make_tensor_arg

# The attribute by which the compiler marks the function that is the program.
_ENTRY = "_pypto_distributed_entry"


def open_folder(folder, platform="a2a3sim", devices=(0,)):
    """The program of a folder: a GoldenExample, or a SeveralDevices.

    ConfigError: the folder is none of these, lacks golden.py, or was written without kernels in C++."""
    folder = Path(folder).resolve()
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}")
    is_single = (folder / "kernel_config.py").is_file()
    if not is_single and not (folder / "orchestration" / "host_orch.py").is_file():
        texts = len(list(folder.rglob("*.pto")))
        why = f"it has {texts} kernels as .pto text, which the compiler's ptoas has not made C++ of" if texts else "it is no folder of pypto's compiler"
        raise ConfigError(f"{folder} has neither kernel_config.py nor orchestration/host_orch.py: {why}")
    golden = folder / "golden.py"
    if not golden.is_file():
        raise ConfigError(f"{folder} has no golden.py, which makes the inputs: define generate_inputs, compute_golden and __outputs__ in one")
    if is_single:
        return GoldenExample(folder, golden, platform)
    return SeveralDevices(folder, golden, platform, devices)


class SeveralDevices:
    """A program whose host part is Python and submits tasks to several devices."""

    def __init__(self, folder, golden, platform, devices):
        self.folder, self.platform, self.devices = folder, platform, list(devices)
        self.golden = load_golden(golden)
        with _names_of_pypto():
            module = load_module(folder / "orchestration" / "host_orch.py", "host_orch")
            self.functions = {path.stem: self._function(path) for path in sorted(folder.glob("sub_workers/*.py"))}
        self.entry = self._entry(module)
        self.allocate = getattr(module, "_alloc_intermediates", None)
        required = folder / "sub_workers" / "__required__.json"
        if required.is_file() and (names := json.loads(required.read_text())):
            raise ConfigError(f"{folder}: the functions {', '.join(names)} have no body: the caller of the compiled program gives them")
        self.chips, self.runtime = self._compiled_chips()

    def _entry(self, module):
        found = [one for one in vars(module).values() if isinstance(one, types.FunctionType) and getattr(one, _ENTRY, False)]
        if len(found) != 1:
            names = ", ".join(one.__name__ for one in found) or "none"
            raise ConfigError(f"{module.__file__}: one function has the mark {_ENTRY}, and here they are: {names}")
        return found[0]

    def _function(self, path):
        function = getattr(load_module(path, f"sub_worker_{path.stem}"), path.stem, None)
        if not callable(function):
            raise ConfigError(f"{path} has no function {path.stem}")
        return function

    def _compiled_chips(self):
        chips, runtimes = {}, {}
        for path in sorted(self.folder.glob("next_levels/*/kernel_config.py")):
            config = load_kernel_config(path.parent)
            runtimes[path.parent.name] = config.runtime
            chips[path.parent.name] = scene_build.compile_chip(config.chip_spec(), Path(), self.platform, config.runtime, str(path.parent))
        if not chips:
            raise ConfigError(f"{self.folder}: next_levels has no folder with kernel_config.py")
        if len(set(runtimes.values())) > 1:
            raise ConfigError(f"{self.folder}: the folders of next_levels name different runtimes, and one program has one: {runtimes}")
        return chips, next(iter(runtimes.values()))

    def run(self, params):
        """Runs a case; the number of tasks. MismatchError: a result is wrong; RuntimeError: the run fails."""
        args = _arguments(self.golden.generate_inputs(dict(params)))
        golden = args.clone()
        computed = {spec.name: spec.value for spec in golden.specs}
        self.golden.compute_golden(computed, dict(params))
        for name in golden.names():
            setattr(golden, name, computed[name])
        tensors = {spec.name: spec.value for spec in args.specs}
        if self.allocate is not None:
            takes_size = "world_size" in inspect.signature(self.allocate).parameters
            self.allocate(tensors, **({"world_size": len(self.devices)} if takes_size else {}))
        worker = Worker(3, platform=self.platform, runtime=self.runtime, device_ids=self.devices, num_sub_workers=len(self.functions))
        sub_ids = {name: worker.register(function) for name, function in self.functions.items()}
        callables = {name: worker.register(chip) for name, chip in self.chips.items()}
        kept = []

        def orchestrate(orch, given, config):
            self.entry(
                orch, given, config, tensors=tensors, callables=callables, sub_ids=sub_ids, _keep=kept, world_size=len(self.devices)
            )

        with worker, _names_of_pypto():
            worker.run(orchestrate, None, CallConfig())
            tasks = worker.tasks
        compare(args, golden, self.golden.outputs or args.tensor_names(), self.golden.rtol, self.golden.atol)
        return tasks


def _arguments(made):
    named = dict(made)
    is_tensor = {name: arrays.is_torch(value) or hasattr(value, "__array_interface__") for name, value in named.items()}
    tensors = [TensorArg(name, value) for name, value in named.items() if is_tensor[name]]
    return TaskArgsBuilder(*tensors, *(Scalar(name, value) for name, value in named.items() if not is_tensor[name]))


def _submit_chip(orch, handle, args, config, worker):
    """Submits a folder's program to a device: the one named, else the next in turn."""
    return orch.submit_next_level(handle, args, config, worker=worker)


def _tensor_from_continuous(argument):
    """An argument of a function as an array on its memory: of torch, where that is there."""
    import numpy as np

    elements = argument.nbytes // get_element_size(argument.dtype)
    name = argument.dtype.name.lower()
    memory = (ctypes.c_char * argument.nbytes).from_address(argument.base)
    try:
        import torch
    except ImportError:
        return np.frombuffer(memory, dtype=name, count=elements).reshape(tuple(argument.shapes))
    return torch.frombuffer(memory, dtype=getattr(torch, name), count=elements).reshape(tuple(argument.shapes))


@contextlib.contextmanager
def _names_of_pypto():
    """What the compiler's files import from pypto, by functions of ours where pypto is not installed."""
    names = {
        "pypto": {},
        "pypto.runtime": {},
        "pypto.runtime.tensor_arg": {"make_tensor_arg": make_tensor_arg},
        "pypto.runtime.distributed_runner": {"_submit_chip": _submit_chip, "_tensor_from_continuous": _tensor_from_continuous},
    }
    if importlib.util.find_spec("pypto") is not None:
        names = {}
    for name, functions in names.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(functions)
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m simpler_setup.compiled_folder",
        description="Runs a folder that pypto's compiler has written, and compares its results with golden.py.",
        epilog="example: python -m simpler_setup.compiled_folder build_output/softmax --pto-isa ~/pto-isa",
    )
    parser.add_argument("folder", type=Path, help="the folder with kernel_config.py, or with orchestration/host_orch.py")
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=("a2a3sim", "a5sim"), help="the simulator (default a2a3sim)")
    parser.add_argument("-d", "--device", default="0", help="devices: 0, a range 0-3, or a list 0,2 (default 0)")
    parser.add_argument("--pto-isa", type=Path, metavar="DIR", help="PTO-ISA, for kernels that include it")
    parser.add_argument("--hosting", default="threads", choices=("threads", "pool", "serial", "virtual"), help="how the simulator is hosted")
    parser.add_argument("--check", action="store_true", help="also report races, and lines that a core leaves in its cache")
    return parser


def main(given=None):
    """0: all cases are right; 1: one is not; 2: nothing can be run."""
    values = _parser().parse_args(given)
    variables = {"PTO_FIELD_HOSTING": "serial" if values.check else values.hosting}
    if values.check:
        variables["PTO_FIELD_REPORTS"] = "races,lines"
    if values.pto_isa:
        variables["PTO_ISA_ROOT"] = str(values.pto_isa)
    with environment(variables):
        return _run(values)


def _run(values):
    try:
        program = open_folder(values.folder, values.platform, devices_of(values.device))
    except (OSError, *ERRORS) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return run_cases(program, (AssertionError, OSError, *ERRORS))


if __name__ == "__main__":
    sys.exit(main())

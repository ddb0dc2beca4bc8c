"""Programs of February to April 2026: a folder with golden.py and kernels/kernel_config.py.

python -m simpler_setup.february -k DIR/kernels -g DIR/golden.py --pto-isa PTO_ISA

golden.py makes inputs and expected outputs, kernel_config.py names the sources. The program is compiled and run as a scene test is.
`python -m pto_runtime.runner` runs the programs of that time whose kernels are plain C++ and whose orchestration uses class Runtime.
"""

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path

from _task_interface import ArgDirection, CallConfig
from pto_runtime.config import load_golden, load_kernel_config
from pto_runtime.errors import CompileError, ConfigError, MismatchError, PtoError
from simpler import arrays, task_interface
from simpler.worker import Worker

from . import scene_args, scene_build
from .comparison import compare
from .task_args import Scalar, TaskArgsBuilder, TensorArg

ERRORS = (RuntimeError, PtoError, ConfigError, CompileError, MismatchError, ValueError, TypeError)
# Sources that differ by how the words of an entry are made: from a dict, also the sizes of the tensors.
_LIST = ("-DPTO_FIELD_LIST_WORDS=1",)


@contextlib.contextmanager
def _names_of_march(golden):
    """Programs of March and April import the interface as `task_interface`, and what several of them share from the checkout's folder `golden`."""
    before = sys.modules.get("task_interface")
    sys.modules["task_interface"] = task_interface
    shared = [str(folder / "golden") for folder in golden.resolve().parents if (folder / "golden").is_dir()]
    sys.path.extend(shared)
    try:
        yield
    finally:
        for folder in shared:
            sys.path.remove(folder)
        if before is None:
            del sys.modules["task_interface"]


class GoldenExample:
    """A program of these months. Every tensor is read and written."""

    def __init__(self, kernels, golden, platform="a2a3sim"):
        self.platform, self.chip = platform, None
        with _names_of_march(Path(golden)):
            self.golden = load_golden(golden)
            self.config = load_kernel_config(kernels)
        if self.config.aicpu_orchestration is not None or "PTO_AICPU_ORCH_SO" in self.config.env:
            raise ConfigError(f"{kernels}: a plug-in of the AICPU builds the graph: use python -m pto_runtime.runner, for kernels in plain C++")

    def load(self, is_list=False):
        """Compiles the program, once."""
        if self.chip is None:
            config = self.config
            flags = _LIST if is_list else ()
            self.chip = scene_build.compile_chip(config.chip_spec(), Path(), self.platform, config.runtime, str(config.folder), flags)
        return self.chip

    def arguments(self, params):
        """The arguments of a case in the order of the orchestration's, and whether the program gave a list of them."""
        made = self.golden.generate_inputs(dict(params))
        is_list = not isinstance(made, dict)
        named = dict(made)
        order = self.golden.tensor_order or list(named)
        values = {name: _contiguous(named[name]) for name in order}
        tensors = [TensorArg(name, value) for name, value in values.items() if _is_array(value)]
        scalars = [Scalar(name, value) for name, value in values.items() if not _is_array(value)]
        return TaskArgsBuilder(*tensors, *scalars), is_list

    def run(self, params):
        """Runs a case. MismatchError: a result is wrong; RuntimeError: the run fails."""
        args, is_list = self.arguments(params)
        chip = self.load(is_list)
        golden = args.clone()
        computed = {spec.name: spec.value for spec in golden.specs}
        returned = self.golden.compute_golden(computed, dict(params))
        for name, value in {**computed, **(returned if isinstance(returned, dict) else {})}.items():
            if name in golden.names():
                setattr(golden, name, value)
        names = args.tensor_names()
        outputs = [name for name in self.golden.outputs or names if self.golden.outputs or name.startswith("out_")]
        if not outputs:
            raise ConfigError(f"{self.golden.path}: no outputs: define __outputs__, or begin names with out_")
        made, _ = scene_args.task_args(args, [ArgDirection.INOUT] * len(names))
        runtime = "host_build_graph" if self.config.runtime == "host_build_graph" else "tensormap_and_ringbuffer"
        with Worker(2, platform=self.platform, runtime=runtime) as worker:
            config = CallConfig()
            # Without it the device has the size that it has today.
            config.block_dim = self.config.block_dim if self.config.has_block_dim else 0
            worker.run(worker.register(chip), made, config)
            tasks = worker.tasks
        compare(args, golden, outputs, self.golden.rtol, self.golden.atol)
        return tasks


def _is_array(value):
    return arrays.is_torch(value) or hasattr(value, "__array_interface__")


def _contiguous(value):
    return value.contiguous() if arrays.is_torch(value) else value


def run_cases(program, errors):
    """Runs all cases of a program and prints how each ends; 1: a case raises one of `errors`, 0: none does."""
    failed = 0
    for number, params in enumerate(program.golden.params):
        start = time.perf_counter()
        try:
            tasks = program.run(params)
        except errors as error:
            failed += 1
            print(f"case {number}: FAILED\n{error}")
        else:
            print(f"case {number}: PASSED, {tasks} tasks, {time.perf_counter() - start:.2f} s")
    return 1 if failed else 0


def main(given=None):
    """0: all cases are right; 1: one is not; 2: nothing can be run."""
    parser = argparse.ArgumentParser(
        description="Runs a program of February to April 2026, and compares its results with golden.py.",
        epilog="example: python -m simpler_setup.february -k vector_example/kernels -g vector_example/golden.py --pto-isa ~/pto-isa",
    )
    parser.add_argument("-k", "--kernels", required=True, type=Path, help="the folder with kernel_config.py")
    parser.add_argument("-g", "--golden", required=True, type=Path, help="the file golden.py, which makes inputs and expected results")
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=("a2a3sim", "a5sim"), help="the simulator (default a2a3sim)")
    parser.add_argument("--pto-isa", type=Path, metavar="DIR", help="PTO-ISA, for kernels that include it")
    parser.add_argument("--hosting", default="threads", choices=("threads", "pool", "serial", "virtual"), help="how the simulator is hosted")
    values = parser.parse_args(given)
    os.environ["PTO_FIELD_HOSTING"] = values.hosting
    if values.pto_isa:
        os.environ["PTO_ISA_ROOT"] = str(values.pto_isa)
    try:
        example = GoldenExample(values.kernels, values.golden, values.platform)
    except ERRORS as error:
        print(error, file=sys.stderr)
        return 2
    return run_cases(example, ERRORS)


if __name__ == "__main__":
    sys.exit(main())

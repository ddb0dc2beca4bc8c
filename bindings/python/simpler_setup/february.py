"""Programs of February 2026 that stream: an orchestration against pto_runtime2.h, or against the pto_orchestration_api.h of that month, with
kernel_config.py and golden.py beside it.

python -m simpler_setup.february -k DIR/kernels -g DIR/golden.py --pto-isa PTO_ISA

`python -m pto_runtime.runner` runs the programs of that time that use class Runtime.
"""

import argparse
import sys
import time
from pathlib import Path

from pto_runtime import _native
from pto_runtime.errors import CompileError, ConfigError, MismatchError, PtoError
from pto_runtime.runner import Example

from .kernel_compiler import KernelCompiler


class RunError(Exception):
    """A run that failed, with the lines by which the field's tests know the error."""


_ERRORS = (RunError, PtoError, ConfigError, CompileError, MismatchError)
_FLAGS = ("-DPTO_FIELD_VINTAGE=2602",)
# Their data types, by NumPy's names.
_TYPES = {"float32": 0, "float16": 1, "int32": 2, "int16": 3, "int8": 4, "uint8": 5, "int64": 7, "uint64": 8, "uint16": 9, "uint32": 10, "bool": 11}


class FebruaryExample(Example):
    """An example whose orchestration submits tasks while they run. Every tensor is read and written."""

    def __init__(self, kernels, golden, pto_isa=None, hosting="threads"):
        super().__init__(kernels, golden)
        self.pto_isa, self.device, self.loaded = pto_isa, _native.FieldDevice(hosting), None

    def load(self):
        """Compiles and loads the program, once."""
        if self.loaded is None:
            compiler, source = KernelCompiler(), self.config.orchestration
            kernels = [
                (one.func_id, one.core_type, one.source.stem, compiler.compile_incore(one.source, one.core_type, self.pto_isa, flags=_FLAGS))
                for one in self.config.kernels
            ]
            orchestration = compiler.compile_orchestration(self.runtime, source.source, flags=_FLAGS)
            self.loaded = self.device.load(orchestration, source.function_name, "aicpu_orchestration_config", kernels)
        return self.loaded

    def called(self, function, *given):
        """Calls a function of golden.py; one that computes with torch gets the same memory as tensors of torch."""
        torch = sys.modules.get("torch")
        if torch is not None and function is self.golden.compute_golden and "import torch" in Path(self.golden.path).read_text():
            arrays, params = given
            given = {name: torch.from_numpy(array) for name, array in arrays.items()}, params
        return super().called(function, *given)

    def run(self, params, **options):
        """Runs one case; raises MismatchError if a result is wrong, RunError if the run fails. Gives the outcome."""
        program = self.load()
        arrays, outputs = self.tensors(params)
        expected = self.expected(arrays, outputs, params)
        tensors = [(array.ctypes.data, list(array.shape), _type_of(name, array), "inout", False) for name, array in arrays.items()]
        outcome = self.device.run(program, tensors, [], (0, 0, 0), **options)
        if outcome.code != 0:
            raise RunError("\n".join([f"run failed with code {outcome.code}", *outcome.lines]))
        self.check(arrays, expected)
        return outcome


def _type_of(name, array):
    if array.dtype.name not in _TYPES:
        raise ConfigError(f"{name}: tensors of {array.dtype.name} cannot be arguments: use {', '.join(_TYPES)}")
    return _TYPES[array.dtype.name]


def main(given=None):
    """0: all cases are right; 1: one is not; 2: nothing can be run."""
    parser = argparse.ArgumentParser(
        description="Runs a streaming program of February 2026, and compares its results with golden.py.",
        epilog="example: python -m simpler_setup.february -k vector_example/kernels -g vector_example/golden.py --pto-isa ~/pto-isa",
    )
    parser.add_argument("-k", "--kernels", required=True, type=Path, help="the folder with kernel_config.py")
    parser.add_argument("-g", "--golden", required=True, type=Path, help="the file golden.py, which makes inputs and expected results")
    parser.add_argument("--pto-isa", type=Path, metavar="DIR", help="PTO-ISA, for kernels that include it")
    parser.add_argument("--hosting", default="threads", choices=("threads", "pool", "serial", "virtual"), help="how the simulator is hosted")
    values = parser.parse_args(given)
    try:
        example = FebruaryExample(values.kernels, values.golden, values.pto_isa, values.hosting)
        example.load()
    except _ERRORS as error:
        print(error, file=sys.stderr)
        return 2
    failed = 0
    for number, params in enumerate(example.golden.params):
        start = time.perf_counter()
        try:
            outcome = example.run(params)
        except _ERRORS as error:
            failed += 1
            print(f"case {number}: FAILED\n{error}")
        else:
            print(f"case {number}: PASSED, {outcome.tasks} tasks, {time.perf_counter() - start:.2f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The runner: compiles the sources that kernel_config.py names, runs them, and compares with golden.py.

    python examples/scripts/run_example.py -k DIR/kernels -g DIR/golden.py -p a2a3sim [-r RUNTIME] [-d DEVICE] [-v]
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from .arrays import as_array
from .compiler import Compiler
from .config import environment, load_golden, load_kernel_config, raised_in
from .errors import CompileError, ConfigError, MismatchError, PtoError
from .runtime_builder import RUNTIMES, RuntimeBuilder


class Example:
    """An example, compiled as far as it was needed. `runtime`: another one than kernel_config.py says."""

    def __init__(self, kernels, golden, platform="a2a3sim", runtime=None, log=None, kernel_form="shared"):
        self.log = log or (lambda text: None)
        self.builder = RuntimeBuilder(platform=platform)
        self.config = load_kernel_config(kernels)
        self.golden = load_golden(golden)
        self.runtime = runtime or self.config.runtime
        if self.runtime not in self.builder.list_runtimes():
            raise ConfigError(f"there is no runtime {self.runtime!r}; there are {', '.join(RUNTIMES)}")
        self.kernel_form = kernel_form
        self.compiler = None

    def compile(self):
        """Compiles everything; gives (orchestration, {func_id: kernel}, environment)."""
        self.compiler = self.compiler or Compiler(log=self.log)
        config, env = self.config, dict(self.config.env)
        folder = config.folder
        with environment(env):
            orchestration = self.compiler.shared(config.orchestration.source, folder)
            kernels = {
                kernel.func_id: self.compiler.kernel(kernel.source, folder, self.kernel_form)
                for kernel in config.kernels
            }
            plugin = config.plugin(self.runtime)
            if plugin is not None:
                env["PTO_AICPU_ORCH_SO"] = str(self.compiler.shared(plugin.source, folder))
                env["PTO_AICPU_ORCH_FUNC"] = plugin.function_name
        return orchestration, kernels, env

    def tensors(self, params):
        """The arrays of one case by name, in the order of the orchestration's arguments, and the names of the outputs."""
        made = self.called(self.golden.generate_inputs, dict(params))
        if not isinstance(made, dict):
            try:
                made = dict(made)
            except (TypeError, ValueError) as error:
                raise ConfigError(
                    f"{self.golden.path}: generate_inputs gives {type(made).__name__}, and must give a dict"
                ) from error
        order = list(self.golden.tensor_order or made)
        missing = [name for name in order if name not in made]
        if missing:
            raise ConfigError(f"{self.golden.path}: TENSOR_ORDER names {missing}, and generate_inputs gives {list(made)}")
        arrays = {}
        for name in order:
            try:
                arrays[name] = as_array(made[name], name)
            except (TypeError, ValueError) as error:
                raise ConfigError(f"{self.golden.path}: generate_inputs: {error}") from error
        outputs = self.golden.outputs
        if outputs is None:
            outputs = [name for name in order if name.startswith("out_")]
        missing = [name for name in outputs if name not in arrays]
        if missing or not outputs:
            raise ConfigError(
                f"{self.golden.path}: outputs {missing or 'are missing'}: define __outputs__, or begin names with out_; "
                f"generate_inputs gives {list(arrays)}"
            )
        return arrays, list(outputs)

    def expected(self, arrays, outputs, params):
        """What compute_golden says the outputs are."""
        golden = {name: array.copy() for name, array in arrays.items()}
        returned = self.called(self.golden.compute_golden, golden, dict(params))
        if isinstance(returned, dict):
            golden.update(returned)
        expected = {}
        for name in outputs:
            if name not in golden:
                raise ConfigError(f"{self.golden.path}: compute_golden leaves no {name!r}, which is an output")
            try:
                expected[name] = np.asarray(as_array(golden[name], name))
            except (TypeError, ValueError) as error:
                raise ConfigError(f"{self.golden.path}: compute_golden: {error}") from error
        return expected

    def called(self, function, *given):
        """Calls a function of golden.py."""
        try:
            return function(*given)
        except Exception as error:
            raise raised_in(self.golden.path, error) from error

    def run(self, params, **options):
        """Runs one case; raises MismatchError if a result is wrong. Gives the report."""
        orchestration, kernels, env = self.compile()
        arrays, outputs = self.tensors(params)
        expected = self.expected(arrays, outputs, params)
        config = self.config
        core_types = {kernel.func_id: kernel.core_type for kernel in config.kernels}
        runtime = self.builder.build(
            self.runtime, block_dim=config.block_dim, aicpu_thread_num=config.aicpu_thread_num
        )
        with runtime:
            for func_id, path in kernels.items():
                runtime.register_kernel(func_id, core_types[func_id], path, name=path.stem.rsplit("-", 1)[0])
            with environment(env):
                runtime.initialize(orchestration, config.orchestration.function_name, arrays.values())
                report = runtime.launch(**{**config.options, **options})
            runtime.finalize()
        self.check(arrays, expected)
        return report

    def check(self, arrays, expected):
        """Compares outputs with what they must be."""
        wrong = [
            text
            for name, golden in expected.items()
            if (text := difference(name, arrays[name], golden, self.golden.rtol, self.golden.atol))
        ]
        if wrong:
            raise MismatchError("\n".join(wrong))


def difference(name, array, golden, rtol, atol):
    """How `array` differs from `golden`; None: it does not."""
    if array.shape != golden.shape:
        return f"{name}: the shape is {array.shape}, and that of the golden one is {golden.shape}"
    exact = rtol == 0 and atol == 0
    if np.issubdtype(array.dtype, np.number) or array.dtype == bool:
        close = array == golden if exact else np.isclose(
            array, golden, rtol=rtol, atol=atol, equal_nan=True
        )
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(array.astype(np.float64) - golden.astype(np.float64))
    else:
        close, error = array == golden, np.zeros(array.shape)
    if close.all():
        return None
    bad = np.where(close, -1.0, np.where(np.isfinite(error), error, np.inf))
    where = np.unravel_index(int(np.argmax(bad)), bad.shape)
    index = ", ".join(map(str, map(int, where)))
    return (
        f"{name}: {int((~close).sum()):,} of {array.size:,} elements differ; the largest error is {bad[where]:.6g} at "
        f"[{index}]: {array[where]!r}, expected {golden[where]!r} (rtol {rtol:g}, atol {atol:g})"
    )


def arguments():
    parser = argparse.ArgumentParser(
        description="Runs C++ sources for class Runtime, and compares their results with golden.py.",
        epilog="Example: run_example.py -k examples/cpp/paged_attention/kernels -g examples/cpp/paged_attention/golden.py",
    )
    parser.add_argument("-k", "--kernels", required=True, help="the folder with kernel_config.py")
    parser.add_argument("-g", "--golden", required=True, help="the file golden.py, which makes inputs and expected results")
    parser.add_argument("-p", "--platform", default="a2a3sim", help="where to run: a2a3sim, the simulator (default)")
    parser.add_argument("-r", "--runtime", choices=RUNTIMES, help="the runtime to use (default: that of kernel_config.py)")
    parser.add_argument("-d", "--device", type=int, default=0, help="the number of the device (default: 0)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what is compiled, and the messages of the firmware")
    parser.add_argument("--build-mode", choices=("sequential", "concurrent"), help="whether tasks run while the builder adds others")
    forms = ("shared", "relocatable")
    parser.add_argument("--kernel-form", choices=forms, default="shared", help="the object form of kernels (default: shared)")
    parser.add_argument("--trace", type=Path, help="write the timeline of the last case to this file")
    return parser


def run_cases(asked):
    log = print if asked.verbose else None
    if asked.device < 0:
        raise ConfigError(f"device {asked.device}: devices of a2a3sim count from 0")
    example = Example(
        asked.kernels, asked.golden, asked.platform, asked.runtime, log=log, kernel_form=asked.kernel_form
    )
    options = {"build_mode": asked.build_mode} if asked.build_mode else {}
    if asked.trace:
        options["trace"] = True
    failed = 0
    for number, params in enumerate(example.golden.params, 1):
        title = f"case {number} of {len(example.golden.params)} {params or ''}".rstrip()
        start = time.perf_counter()
        try:
            report = example.run(params, **options)
        except MismatchError as error:
            failed += 1
            print(f"{title}: FAIL\n{error}")
            continue
        seconds = time.perf_counter() - start
        print(
            f"{title}: PASS, {example.runtime}, {report.tasks:,} tasks, {report.edges:,} edges, "
            f"makespan {1e3 * report.makespan:.3f} ms, {seconds:.2f} s in all"
        )
        if asked.verbose:
            print("\n".join(report.logs))
        if asked.trace:
            report.trace.save(asked.trace)
    return 1 if failed else 0


def main(given=None):
    """The command. 0: every result is right; 1: one is wrong; 2: the example cannot be used; 3: a fault of a run."""
    try:
        return run_cases(arguments().parse_args(given))
    except (ConfigError, CompileError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except PtoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

"""The examples in C++ pass through the runner: every runtime, both build modes, both forms of kernels; and for pytest."""

import subprocess
import sys

import pytest
from conftest import EXAMPLES

from pto_runtime import runner
from pto_runtime.runtime_builder import RUNTIMES

NAMES = ["vector_example", "matmul", "paged_attention", "random_dag"]


def arguments(name, *more):
    folder = EXAMPLES / name
    return ["-k", str(folder / "kernels"), "-g", str(folder / "golden.py"), "-p", "a2a3sim", *more]


@pytest.mark.parametrize("build_mode", ["sequential", "concurrent"])
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", NAMES)
def test_an_example_passes(name, runtime, build_mode, capsys, monkeypatch):
    # Neither its orchestration nor its builder follows an address of the device's memory.
    monkeypatch.setenv("PTO_CHECK_RAW_ACCESS", "1")
    assert runner.main(arguments(name, "-r", runtime, "--build-mode", build_mode)) == 0
    out = capsys.readouterr().out
    assert "PASS" in out and runtime in out and "FAIL" not in out


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_relocatable_objects_too(name, capsys):
    assert runner.main(arguments(name, "--kernel-form", "relocatable", "-d", "1")) == 0


def test_the_command_says_what_it_compiles_and_takes_it_from_the_cache(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PTO_CACHE", str(tmp_path / "cache"))
    script = EXAMPLES.parent / "scripts" / "run_example.py"
    command = [sys.executable, str(script), *arguments("vector_example", "-v", "--trace", str(tmp_path / "t.json"))]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    # Two cases: the second one finds what the first has compiled.
    assert first.count(": compiling") == 4 and first.count(": compiled before") == 4
    assert second.count(": compiling") == 0 and second.count(": compiled before") == 8
    assert (tmp_path / "t.json").is_file()


def test_pytest_collects_examples(tmp_path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", str(EXAMPLES / "vector_example")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout and "tensormap_and_ringbuffer-1" in done.stdout


def test_two_processes_at_once_do_not_disturb_each_other():
    program = "import sys; from pto_runtime import runner; sys.exit(runner.main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, *arguments("random_dag", "-r", "aicpu_build_graph")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in children:
        assert "PASS" in child.communicate(timeout=120)[0] and child.returncode == 0

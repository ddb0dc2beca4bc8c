"""What users write wrong is said: which file, which line, which key."""

import io
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import EXAMPLES

from pto_runtime import CompileError, ConfigError, MismatchError, ProgressBar, RuntimeBuilder
from pto_runtime.arrays import as_array
from pto_runtime.config import environment, load_golden, load_kernel_config
from pto_runtime.runner import Example, difference, main


@pytest.mark.parametrize(
    "before, after, says",
    [
        ("KERNELS = ", "KERNEL = ", "KERNELS is missing"),
        ("ORCHESTRATION = ", "ORCH = ", "ORCHESTRATION is missing"),
        ('"core_type": "aiv"', '"core_type": "cube"', "1: KERNELS[0]['core_type']: is 'cube', and must be 'aic' or 'aiv'"),
        ('"func_id": 0', '"func_id": 5000', "KERNELS[0]['func_id']: is 5000"),
        ('"func_id": 0, ', "", "the key 'func_id' is missing"),
        ('"func_id": 0', '"func_id": "0"', "must be int"),
        ("add_one.cpp", "no_such.cpp", "there is no file"),
        ('"host_build_graph"', '"other"', "is 'other'; there are host_build_graph, aicpu_build_graph"),
        ('"block_dim": 4', '"block_dim": 0', "must be above zero"),
        ('"block_dim"', '"blocks"', "unknown key 'blocks'"),
        ('"function_name": "build"', '"function": "build"', "the key 'function_name' is missing"),
        ("KERNELS = [", "KERNELS = [{", "kernel_config.py:1: "),
        ("KERNELS = ", "KERNELS = undefined or ", "kernel_config.py:1: NameError"),
        ("KERNELS = [{", "KERNELS = [1, {", "KERNELS[0]: is int, and must be dict"),
        ('"block_dim": 4', '"block_dim": 4, "runtimes": 5', "RUNTIME_CONFIG['runtimes']: is 5, and must be a list"),
        ('"block_dim": 4', '"block_dim": 4, "options": 5', "RUNTIME_CONFIG['options']: is 5, and must be dict"),
        ("ORCHESTRATION = {", "ORCHESTRATION = 5 or {", "ORCHESTRATION: is int, and must be dict"),
        ("RUNTIME_CONFIG = {", "RUNTIME_CONFIG = 5 or {", "RUNTIME_CONFIG: is int, and must be dict"),
    ],
)
def test_kernel_config(example, before, after, says):
    text = (example.kernels / "kernel_config.py").read_text()
    assert before in text
    example.config(text.replace(before, after, 1))
    with pytest.raises(ConfigError) as caught:
        load_kernel_config(example.kernels)
    assert says in str(caught.value) and "kernel_config.py" in str(caught.value)


def test_the_line_is_that_of_the_entry(example):
    example.config(
        """
        FIRST = {"func_id": 0, "source": "add_one.cpp", "core_type": "aiv"}
        KERNELS = [
            FIRST,
            {
                "func_id": 1,
                "source": "add_one.cpp",
                "core_type": "cube",
            },
        ]
        ORCHESTRATION = {"source": "orch.cpp", "function_name": "build"}
        """
    )
    with pytest.raises(ConfigError) as caught:
        load_kernel_config(example.kernels)
    assert "kernel_config.py:7: KERNELS[1]['core_type']: is 'cube'" in str(caught.value)


def test_a_func_id_twice(example):
    text = (example.kernels / "kernel_config.py").read_text()
    example.config(text + 'KERNELS.append({"func_id": 0, "source": "add_one.cpp", "core_type": "aic"})\n')
    with pytest.raises(ConfigError, match="0 is that of KERNELS.0., too"):
        load_kernel_config(example.kernels)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ConfigError, match="there is no file .*kernel_config.py"):
        load_kernel_config(tmp_path)
    with pytest.raises(ConfigError, match="there is no file .*golden.py"):
        load_golden(tmp_path / "golden.py")


def golden(example, text):
    example.write("golden.py", "import numpy as np\n" + text)
    return Example(example.kernels, example.golden)


INPUTS = 'def generate_inputs(params):\n    return {"x": np.zeros(4, np.float32), "out_x": np.zeros(4, np.float32)}\n'
COMPUTE = "def compute_golden(tensors, params):\n    pass\n"


@pytest.mark.parametrize(
    "text, says",
    [
        (COMPUTE, "the function generate_inputs is missing"),
        (INPUTS, "the function compute_golden is missing"),
        (INPUTS + COMPUTE + "PARAMS_LIST = []\n", "PARAMS_LIST"),
        (INPUTS + COMPUTE + "RTOL = 'a'\n", "RTOL: is 'a'"),
        (INPUTS + COMPUTE + "TENSOR_ORDER = ['x', 'y']\n", "TENSOR_ORDER names ['y']"),
        (INPUTS + COMPUTE + "__outputs__ = ['z']\n", "outputs ['z']"),
        (INPUTS.replace("out_x", "y") + COMPUTE, "outputs are missing"),
        (INPUTS.replace("np.zeros(4, np.float32)", "np.zeros((4, 4))[:, 0]", 1) + COMPUTE, "x is not contiguous"),
        (INPUTS.replace("np.zeros(4, np.float32)", "[1, 2]", 1) + COMPUTE, "x is list, and must be a NumPy array"),
        (INPUTS.replace("np.zeros(4, np.float32)", "np.array([None])", 1) + COMPUTE, "x has the type object"),
        ("def generate_inputs(params):\n    return 5\n" + COMPUTE, "generate_inputs gives int, and must give a dict"),
        ("def generate_inputs(params)\n", "golden.py:2: "),
        ("def generate_inputs(params):\n    return params['n']\n" + COMPUTE, "golden.py:3: KeyError: 'n'"),
        (INPUTS + COMPUTE.replace("pass", "tensors['y'] += 1"), "golden.py:5: KeyError: 'y'"),
        (INPUTS + COMPUTE.replace("pass", "del tensors['out_x']"), "compute_golden leaves no 'out_x'"),
        (INPUTS + COMPUTE.replace("pass", "tensors['out_x'] = 5"), "compute_golden: out_x is int"),
        (INPUTS + COMPUTE + "TENSOR_ORDER = 5\n", "golden.py:6: TENSOR_ORDER: is 5, and must be a list of names"),
        (INPUTS + COMPUTE + "__outputs__ = 'out_x'\n", "golden.py:6: __outputs__: is 'out_x', and must be a list of names"),
    ],
)
def test_golden(example, text, says):
    with pytest.raises(ConfigError) as caught:
        made = golden(example, text)
        made.expected(*made.tensors({}), {})
    assert says in str(caught.value) and "golden.py" in str(caught.value)


def test_a_compile_error_shows_what_the_compiler_says(example):
    example.write("kernels/add_one.cpp", "int missing_semicolon() { return 1 }\n")
    with pytest.raises(CompileError) as caught:
        Example(example.kernels, example.golden).run({})
    assert "add_one.cpp does not compile" in str(caught.value) and "expected" in str(caught.value)
    assert main(["-k", str(example.kernels), "-g", str(example.golden)]) == 2


def test_a_header_that_changes_is_compiled_again(example):
    example.write("kernels/more.h", "#define MORE 1\n")
    source = (example.kernels / "add_one.cpp").read_text().replace("+= 1", "+= MORE")
    (example.kernels / "add_one.cpp").write_text('#include "more.h"\n' + source)
    first = Example(example.kernels, example.golden)
    first.run({})
    again = Example(example.kernels, example.golden)
    again.run({})
    assert (again.compiler.hits, again.compiler.misses) == (2, 0)
    example.write("kernels/more.h", "#define MORE 2\n")
    changed = Example(example.kernels, example.golden)
    with pytest.raises(MismatchError) as caught:
        changed.run({})
    assert (changed.compiler.hits, changed.compiler.misses) == (1, 1)
    text = str(caught.value)
    assert "out_x: 16 of 16 elements differ; the largest error is 1 at [0]" in text and "2.0" in text


def test_a_difference_says_where():
    golden = np.zeros((3, 4), np.float32)
    array = golden.copy()
    assert difference("x", array, golden, 1e-5, 1e-5) is None
    array[1, 2], array[0, 0] = 5, np.nan
    assert "2 of 12 elements differ; the largest error is inf at [0, 0]" in difference("x", array, golden, 0, 1e-5)
    assert "the shape is" in difference("x", array, golden[0], 0, 0)
    big = np.array([2**63, 1], np.uint64)
    assert difference("x", big, big.copy(), 0, 0) is None
    assert "1 of 2" in difference("x", big + np.array([1, 0], np.uint64), big, 0, 0)


def test_the_environment_of_an_example(example, monkeypatch):
    text = (example.kernels / "kernel_config.py").read_text()
    example.config(text + 'RUNTIME_ENV = {"MY_DIR": "sub", "A_PATH": "/abs", "PTO_AICPU_ORCH_SO": "p.so", "N": 1}\n')
    env = load_kernel_config(example.kernels).env
    folder = example.kernels.resolve()
    assert env == {"MY_DIR": str(folder / "sub"), "A_PATH": "/abs", "PTO_AICPU_ORCH_SO": str(folder / "p.so"), "N": "1"}
    monkeypatch.setenv("N", "0")
    with environment(env):
        import os

        assert os.environ["N"] == "1"
    assert os.environ["N"] == "0" and "MY_DIR" not in os.environ
    example.config(text + "RUNTIME_ENV = {1: 2}\n")
    with pytest.raises(ConfigError, match="RUNTIME_ENV"):
        load_kernel_config(example.kernels)


def test_pto_isa_headers(example, monkeypatch, tmp_path):
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="PTO_ISA_ROOT"):
        Example(example.kernels, example.golden).run({})
    include = tmp_path / "isa" / "include" / "pto"
    include.mkdir(parents=True)
    (include / "pto-inst.hpp").write_text("#ifndef __CPU_SIM\n#error not on the simulator\n#endif\n#define STEP 1\n")
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path / "isa"))
    source = (example.kernels / "add_one.cpp").read_text().replace("+= 1", "+= STEP")
    (example.kernels / "add_one.cpp").write_text("#include <pto/pto-inst.hpp>\n" + source)
    assert Example(example.kernels, example.golden).run({}).tasks == 1


def test_runtimes_and_platforms_by_name(example):
    builder = RuntimeBuilder(platform="a2a3sim")
    assert builder.list_runtimes() == ["host_build_graph", "aicpu_build_graph", "tensormap_and_ringbuffer"]
    with pytest.raises(ConfigError, match="there is no runtime 'x'"):
        builder.build("x")
    with pytest.raises(ValueError, match="platform 'a2a3'"):
        RuntimeBuilder(platform="a2a3")
    assert main(["-k", str(example.kernels), "-g", str(example.golden), "-p", "a2a3"]) == 2
    assert main(["-k", str(example.kernels), "-g", str(example.golden), "-d", "-1"]) == 2


def test_torch_tensors_are_taken(example):
    """With torch where it is installed, else with a stand-in that has the interface of its tensors; says which."""
    try:
        import torch

        of, which = torch.from_numpy, f"torch {torch.__version__}"
    except ImportError:

        class Tensor:
            def __init__(self, array):
                self.array = array

            def detach(self):
                return self

            def numpy(self):
                return self.array

            def __iadd__(self, other):
                self.array += other
                return self

        of, which = Tensor, "a stand-in: torch is not installed"
    print(f"tensors of {which}")
    array = np.zeros(3)
    assert as_array(of(array)).ctypes.data == array.ctypes.data
    made = Example(example.kernels, example.golden)
    made.golden.generate_inputs = lambda params: {"out_x": of(np.zeros(16, np.float32))}
    assert made.run({}).tasks == 1


def test_progress_in_a_notebook(monkeypatch):
    """A stand-in for IPython's kernel: one display, which is updated."""
    shown = []

    class Handle:
        def update(self, content):
            shown[-1] = content

    def display(content, display_id=None):
        assert display_id is True
        shown.append(content)
        return Handle()

    shell = type("ZMQInteractiveShell", (), {})()
    kernel, view = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    kernel.get_ipython = lambda: shell
    view.HTML, view.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", view)
    bar = ProgressBar()
    bar(3, 1200)
    bar(1000, 1200)
    bar.close()
    assert shown == ['<progress value="1000" max="1200"></progress> 1,000 of 1,200 tasks']
    # In a terminal's IPython there is no display, and without a terminal nothing is written.
    kernel.get_ipython = lambda: None
    stream = io.StringIO()
    silent = ProgressBar(stream)
    silent(1, 2)
    silent.close()
    assert stream.getvalue() == "" and len(shown) == 1


def sanitized(example_arguments, cache):
    """The runner in a process with AddressSanitizer, its C++ sources compiled for it."""
    compiler = os.environ.get("CXX", "c++")
    library = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    env = {
        **os.environ,
        "PTO_CACHE": str(cache),
        "CXXFLAGS": "-fsanitize=address -fno-omit-frame-pointer -g",
        # Python does not give all of its memory back.
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    program = "import sys; from pto_runtime import runner; sys.exit(runner.main(sys.argv[1:]))"
    command = ["env", f"LD_PRELOAD={library.stdout.strip()}", sys.executable, "-c", program, *example_arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env)


@pytest.mark.parametrize(
    "name, runtime",
    [
        ("vector_example", "host_build_graph"),
        ("matmul", "aicpu_build_graph"),
        ("paged_attention", "tensormap_and_ringbuffer"),
    ],
)
def test_orchestrations_plugins_and_kernels_are_clean_under_addresssanitizer(name, runtime, tmp_path):
    folder = EXAMPLES / name
    done = sanitized(["-k", str(folder / "kernels"), "-g", str(folder / "golden.py"), "-r", runtime], tmp_path)
    assert done.returncode == 0 and "PASS" in done.stdout, done.stdout + done.stderr


def test_the_sanitizer_sees_a_plugin_that_writes_outside(example, tmp_path):
    example.plugin("volatile uint64_t *lost = new uint64_t[2]; return static_cast<int>(lost[words[1]]) * 0;")
    done = sanitized(["-k", str(example.kernels), "-g", str(example.golden)], tmp_path)
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr, done.stderr

"""What the tests share: a cache of their own, small devices, and examples that are written for one test."""

import textwrap
from pathlib import Path

import pytest

from pto_runtime import Device

# Programs that tests run in processes of their own.
collect_ignore = ["field", "calls.py"]

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "cpp"


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("cache")
    patch.setenv("PTO_CACHE", str(folder))
    yield folder
    patch.undo()


@pytest.fixture
def device():
    with Device(aic=4, aiv=8, gm_bytes=64 << 20) as opened:
        opened.register_library()
        yield opened


ADD_ONE = """
    #include <cstdint>
    extern "C" void kernel_entry(int64_t *args) {
        float *values = reinterpret_cast<float *>(args[0]);
        for (int64_t i = 0; i < args[1]; i++) { values[i] += 1; }
    }
"""

ORCHESTRATION = """
    #include "runtime.h"
    extern "C" int build(Runtime *runtime, uint64_t *args, int count) {
        if (count != 3) { return -1; }
        void *values = runtime->host_api.device_malloc(args[1]);
        runtime->host_api.copy_to_device(values, reinterpret_cast<void *>(args[0]), args[1]);
        runtime->record_tensor_pair(reinterpret_cast<void *>(args[0]), values, args[1]);
        uint64_t words[] = {reinterpret_cast<uint64_t>(values), args[2]};
        BODY
    }
"""

GOLDEN = """
    import numpy as np

    def generate_inputs(params):
        return {"out_x": np.zeros(16, np.float32)}

    def compute_golden(tensors, params):
        tensors["out_x"] += 1
"""

CONFIG = """
    KERNELS = [{"func_id": 0, "source": "add_one.cpp", "core_type": "aiv"}]
    ORCHESTRATION = {"source": "orch.cpp", "function_name": "build"}
    RUNTIME_CONFIG = {"runtime": "host_build_graph", "block_dim": 4}
"""

ONE_TASK = "return runtime->add_task(words, 2, 0, 1) == 0 ? 0 : -2;"


class Written:
    """A small example: one array `out_x` of 16 floats, to which a kernel adds 1."""

    def __init__(self, folder):
        self.folder = folder
        self.kernels = folder / "kernels"
        self.golden = folder / "golden.py"
        self.kernels.mkdir()
        self.write("kernels/add_one.cpp", ADD_ONE)
        self.write("golden.py", GOLDEN)
        self.config(CONFIG)
        self.body(ONE_TASK)

    def write(self, name, text):
        (self.folder / name).write_text(textwrap.dedent(text).lstrip())

    def config(self, text):
        self.write("kernels/kernel_config.py", text)

    def body(self, body, before=""):
        self.write("kernels/orch.cpp", ORCHESTRATION.replace("BODY", body).replace("extern", before + " extern", 1))

    def plugin(self, body, function="build_graph_aicpu", before=""):
        """An AICPU builder plugin, and an orchestration that embeds it; words: the values and their number."""
        self.write(
            "kernels/plugin.cpp",
            f'#include <cstdlib>\n#include <stdexcept>\n#include "runtime.h"\n{before}\n'
            f'extern "C" int {function}(Runtime *runtime) {{\n    uint64_t *words = runtime->orch_args;\n    {body}\n}}\n',
        )
        self.write(
            "kernels/orch.cpp",
            "#include <cstdio>\n#include <cstdlib>\n#include <fstream>\n#include <iterator>\n#include <vector>\n"
            + textwrap.dedent(ORCHESTRATION).replace(
                "BODY",
                """
                std::ifstream file(std::getenv("PTO_AICPU_ORCH_SO"), std::ios::binary);
                std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
                if (!runtime->try_set_aicpu_orch_so(bytes.data(), bytes.size())) { return -3; }
                std::snprintf(runtime->aicpu_orch_func_name, 64, "%s", std::getenv("PTO_AICPU_ORCH_FUNC"));
                runtime->orch_argc = 2;
                runtime->orch_args[0] = words[0];
                runtime->orch_args[1] = words[1];
                return 0;""",
            ),
        )
        self.config(
            CONFIG.replace("host_build", "aicpu_build")
            + f'\n    AICPU_ORCHESTRATION = {{"source": "plugin.cpp", "function_name": "{function}"}}\n'
        )


@pytest.fixture
def example(tmp_path):
    return Written(tmp_path)

"""Scene tests of the field, run on our simulator: see docs/how-to/simpler-python.md.

```text
scene_test.py      @scene_test, SceneTestCase        scene_case.py     CASES, checked     scene_run.py  cases: run and compare
task_args.py       TaskArgsBuilder, TensorArg, ...   comparison.py     outputs and golden
kernel_compiler.py compiles kernels and orchestrations               compile_cache.py  objects kept by content
scene_command.py   the command line of a test file   pytest_plugin.py  fixtures, markers and options of pytest
folder.py          runs a whole folder of programs, each file in a process of its own
```
"""

from .elf_parser import extract_text_section
from .kernel_compiler import KernelCompiler
from .platform_info import parse_platform
from .pto_isa import ensure_pto_isa_root
from .scene_test import SceneTestCase, SceneTestLevel, scene_level, scene_test
from .task_args import Scalar, TaskArgsBuilder, TensorArg
from .torch_interop import make_chip_tensor_arg, make_tensor_arg, torch_dtype_to_datatype

# Until August 2026.
Tensor = TensorArg

__all__ = [
    "Tensor",
    "KernelCompiler",
    "Scalar",
    "SceneTestCase",
    "SceneTestLevel",
    "TaskArgsBuilder",
    "TensorArg",
    "ensure_pto_isa_root",
    "extract_text_section",
    "make_chip_tensor_arg",
    "make_tensor_arg",
    "parse_platform",
    "scene_level",
    "scene_test",
    "torch_dtype_to_datatype",
]

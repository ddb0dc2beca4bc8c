"""Folders in the shape in which pypto's compiler writes them: one device, several devices, and what is refused."""

import json

import numpy as np
import pytest
from pto_runtime.errors import ConfigError, MismatchError

from simpler_setup import compiled_folder

# The kernel of a task: to = from * a + b.
KERNEL = """
#include "tensor.h"
extern "C" void kernel_entry(int64_t *args) {
    const Tensor *from = reinterpret_cast<Tensor *>(args[0]), *to = reinterpret_cast<Tensor *>(args[1]);
    for (uint64_t i = 0; i < from->numel(); i++) {
        to->data_as<float>()[i] = from->data_as<float>()[i] * args[2] + args[3];
    }
}
"""
# out = (a * 2) * 1 + 1, in two tasks.
ORCHESTRATION = """
#include "pto_arg_with_deps.h"
extern "C" void aicpu_orchestration_entry(const L2TaskArgs &orch_args) {
    const Tensor &a = orch_args.tensor(0).ref(), &out = orch_args.tensor(1).ref();
    TensorCreateInfo info(a.shapes, a.ndims, a.dtype);
    L0TaskArgs first, second;
    first.add_input(a), first.add_output(info), first.add_scalar(uint64_t(2)), first.add_scalar(uint64_t(0));
    TaskOutputTensors made = rt_submit_aiv_task(0, first);
    second.add_input(made.get_ref(0)), second.add_output(out), second.add_scalar(uint64_t(1)), second.add_scalar(uint64_t(1));
    rt_submit_aiv_task(0, second);
}
"""
CONFIG = """
from pathlib import Path
from simpler.task_interface import ArgDirection as _D
_ROOT_DIR = Path(__file__).parent
RUNTIME_CONFIG = {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}
ORCHESTRATION = {"source": str(_ROOT_DIR / "orchestration" / "affine.cpp"), "function_name": "aicpu_orchestration_entry", "signature": [_D.IN, _D.OUT]}
KERNELS = [{"func_id": 0, "name": "scale", "source": str(_ROOT_DIR / "kernels" / "aiv" / "scale.cpp"), "core_type": "aiv", "signature": [_D.IN, _D.OUT]}]
"""
GOLDEN = """
import numpy
from pathlib import Path
_DATA_DIR = Path(__file__).parent / "data"
__outputs__ = ["out"]
RTOL = 1e-6
ATOL = 1e-6
def generate_inputs(params):
    a = numpy.load(_DATA_DIR / "in" / "a.npy")
    return [("a", a), ("out", numpy.zeros_like(a))]
def compute_golden(tensors, params):
    tensors["out"][:] = tensors["a"] * 2 + {added}
"""
# Each device has one row; a function of the host adds the rows up when both are there.
HOST = """
from simpler.task_interface import TaskArgs, TensorArgType
from pypto.runtime.tensor_arg import make_tensor_arg
from pypto.runtime.distributed_runner import _submit_chip

def program(orch, _args, config, *, tensors, callables, sub_ids, _keep, world_size):
    rows = []
    for r in range(0, 2, 1):
        ta = TaskArgs()
        ta.add_tensor(make_tensor_arg(orch._worker, tensors["a"][r]), TensorArgType.INPUT)
        ta.add_tensor(make_tensor_arg(orch._worker, tensors["rows"][r]), TensorArgType.OUTPUT_EXISTING)
        _keep.append(ta)
        _submit_chip(orch, callables["affine"], ta, config, {worker})
    ta = TaskArgs()
    ta.add_tensor(make_tensor_arg(orch._worker, tensors["rows"]), TensorArgType.INPUT)
    ta.add_tensor(make_tensor_arg(orch._worker, tensors["out"]), TensorArgType.OUTPUT_EXISTING)
    orch.submit_sub(sub_ids["total"], ta)
program._pypto_distributed_entry = True

def _alloc_intermediates(tensors, world_size=1):
    import numpy
    assert world_size == 2
    tensors["rows"] = numpy.zeros_like(tensors["a"])
"""
TOTAL = """
from pypto.runtime.distributed_runner import _tensor_from_continuous
def _user_total(rows, out):
    out[:] = rows[0] + rows[1]
def total(args):
    rows = _tensor_from_continuous(args[0])
    out = _tensor_from_continuous(args[1])
    _user_total(rows, out)
"""


def chip(folder, kernel=KERNEL):
    """The folder of a program for one device."""
    for path, text in {"kernel_config.py": CONFIG, "kernels/aiv/scale.cpp": kernel, "orchestration/affine.cpp": ORCHESTRATION}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def golden(folder, array, text):
    """golden.py and the inputs that it reads."""
    (folder / "data" / "in").mkdir(parents=True)
    np.save(folder / "data" / "in" / "a.npy", array)
    (folder / "golden.py").write_text(text)
    return folder


def single(folder, added=1):
    return golden(chip(folder), np.arange(77, dtype=np.float32), GOLDEN.format(added=added))


def several(folder, worker="r"):
    text = GOLDEN.format(added="1").replace("numpy.zeros_like(a))", "numpy.zeros_like(a[0]))").replace('tensors["a"] * 2 + 1', '(tensors["a"] * 2 + 1).sum(axis=0)')
    golden(folder, np.arange(2 * 33, dtype=np.float32).reshape(2, 33), text)
    chip(folder / "next_levels" / "affine")
    for path, text in {"orchestration/host_orch.py": HOST.replace("{worker}", worker), "sub_workers/total.py": TOTAL}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_a_folder_for_one_device_runs(tmp_path, capsys):
    assert compiled_folder.main([str(single(tmp_path))]) == 0
    assert "case 0: PASSED, 2 tasks" in capsys.readouterr().out


def test_a_wrong_result_is_told(tmp_path, capsys):
    assert compiled_folder.main([str(single(tmp_path, added=2))]) == 1
    assert "out: 77 of 77 elements differ" in capsys.readouterr().out
    with pytest.raises(MismatchError):
        compiled_folder.open_folder(tmp_path).run({})


@pytest.mark.parametrize("worker", ["r", "None"])
def test_a_folder_for_several_devices_runs(tmp_path, capsys, worker):
    assert compiled_folder.main([str(several(tmp_path, worker)), "-d", "0-1"]) == 0
    assert "case 0: PASSED" in capsys.readouterr().out


def test_a_folder_is_checked(tmp_path, capsys):
    assert compiled_folder.main([str(single(tmp_path)), "--check"]) == 0
    assert "PASSED" in capsys.readouterr().out


def test_folders_that_cannot_run_are_refused(tmp_path, capsys):
    def why(folder):
        with pytest.raises(ConfigError) as raised:
            compiled_folder.open_folder(folder, devices=[0, 1])
        return str(raised.value)

    assert "there is no folder" in why(tmp_path / "none")
    assert "it is no folder of pypto's compiler" in why(tmp_path)
    (tmp_path / "ptoas").mkdir()
    (tmp_path / "ptoas" / "scale.pto").write_text("module {}")
    assert "1 kernels as .pto text" in why(tmp_path)
    assert "has no golden.py" in why(chip(tmp_path / "chip"))
    without_entry = several(tmp_path / "entry")
    host = without_entry / "orchestration" / "host_orch.py"
    host.write_text(host.read_text().replace("program._pypto_distributed_entry = True", ""))
    assert "one function has the mark" in why(without_entry)
    required = several(tmp_path / "required")
    (required / "sub_workers" / "__required__.json").write_text(json.dumps(["total"]))
    assert "the functions total have no body" in why(required)
    without_chips = several(tmp_path / "chips")
    (without_chips / "next_levels" / "affine" / "kernel_config.py").unlink()
    assert "next_levels has no folder" in why(without_chips)
    assert compiled_folder.main([str(tmp_path / "none")]) == 2
    assert "error: there is no folder" in capsys.readouterr().err

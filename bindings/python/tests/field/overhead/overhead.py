"""Tasks whose kernels do nothing: what a run takes is the runtime's own time, here and there."""

import ctypes

import torch
from simpler.task_interface import ArgDirection as D

from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestOverhead(SceneTestCase):
    CALLABLE = {
        "orchestration": {"source": "kernels/orch.cpp", "function_name": "aicpu_orchestration_entry", "signature": [D.INOUT]},
        "incores": [{"func_id": 0, "source": "kernels/noop.cpp", "core_type": "aiv", "signature": [D.INOUT]}],
    }
    CASES = [
        {"name": name, "platforms": ["a2a3sim"], "params": {"tasks": 10000, "tiles": tiles}}
        for name, tiles in (("chain", 1), ("wide", 1000))
    ]

    def generate_args(self, params):
        return TaskArgsBuilder(
            TensorArg("out", torch.zeros(16000, dtype=torch.float32)),
            Scalar("tasks", ctypes.c_uint64(params["tasks"])),
            Scalar("tiles", ctypes.c_uint64(params["tiles"])),
        )

    def compute_golden(self, args, params):
        pass


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

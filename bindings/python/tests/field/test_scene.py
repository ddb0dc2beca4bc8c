"""A scene test of the field's form, with arrays of NumPy: run by this folder's tests, as a file and under pytest."""

import ctypes

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CommBufferSpec, DataType, TaskArgs, TensorArgType

from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
from simpler_setup.scene_test import _rehosted_ref

SIMULATORS = ["a2a3sim", "a5sim"]


@scene_test(level=2, runtime="tensormap_and_ringbuffer")
class TestTwiceTheSum(SceneTestCase):
    CALLABLE = {
        "orchestration": {
            "source": "kernels/orchestration.cpp",
            "function_name": "twice_the_sum",
            "config_name": "twice_the_sum_config",
            "signature": [D.IN, D.IN, D.OUT],
        },
        "incores": [{"func_id": 0, "source": "kernels/add.cpp", "core_type": "aiv", "signature": [D.IN, D.IN, D.OUT]}],
    }
    CASES = [
        {"name": "right", "platforms": SIMULATORS, "params": {"factor": 2}},
        {"name": "wrong", "platforms": ["a2a3sim"], "manual": True, "params": {"factor": 3}},
        {"name": "device", "platforms": ["a2a3"], "params": {"factor": 2}},
    ]

    def generate_args(self, params):
        a, b = np.arange(64, dtype=np.float32), np.ones(64, dtype=np.float32)
        return TaskArgsBuilder(TensorArg("a", a), TensorArg("b", b), TensorArg("out", np.zeros_like(a)))

    def compute_golden(self, args, params):
        args.out[:] = params["factor"] * (args.a + args.b)


SEEN = []


def remember(args):
    """Runs on the host when both ranks are over."""
    SEEN.append(args.tensor_count())


def exchange(orch, callables, task_args, config):
    ranks, count = range(2), int(task_args.count.value)
    specs = [
        CommBufferSpec(name="mailbox", dtype="float32", count=count, nbytes=4 * count),
        CommBufferSpec(name="counter", dtype="int32", count=1, nbytes=4),
    ]
    results = TaskArgs()
    with orch.allocate_domain(name="pair", workers=list(ranks), window_size=4096, buffers=specs) as domain:
        group = []
        for rank in ranks:
            args = TaskArgs()
            args.add_tensor(_rehosted_ref(task_args, f"in_{rank}"), TensorArgType.INPUT)
            args.add_tensor(_rehosted_ref(task_args, f"out_{rank}"), TensorArgType.OUTPUT_EXISTING)
            args.add_tensor(domain[rank].buffers["mailbox"].tensor((count,), DataType.FLOAT32), TensorArgType.INOUT)
            args.add_tensor(domain[rank].buffers["counter"].tensor((1,), DataType.INT32), TensorArgType.INOUT)
            args.add_scalar(domain[rank].device_ctx)
            group.append(args)
            results.add_tensor(_rehosted_ref(task_args, f"out_{rank}"), TensorArgType.INPUT)
        orch.submit_next_level_group(callables.exchange, group, config, workers=list(ranks))
    orch.submit_sub(callables.remember, results)


@scene_test(level=3, runtime="tensormap_and_ringbuffer")
class TestExchange(SceneTestCase):
    CALLABLE = {
        "orchestration": exchange,
        "callables": [
            {
                "name": "exchange",
                "orchestration": {
                    "source": "kernels/orchestration.cpp",
                    "function_name": "exchange",
                    "signature": [D.IN, D.OUT, D.INOUT, D.INOUT],
                },
                "incores": [{"func_id": 1, "source": "kernels/exchange.cpp", "core_type": "aiv"}],
            },
            {"name": "remember", "callable": remember},
        ],
    }
    CASES = [
        {"name": "pair", "platforms": SIMULATORS, "config": {"device_count": 2, "num_sub_workers": 1}, "params": {"count": 32}}
    ]

    def generate_args(self, params):
        arrays = []
        for rank in range(2):
            arrays.append(TensorArg(f"in_{rank}", np.full(params["count"], rank + 1, dtype=np.float32)))
            arrays.append(TensorArg(f"out_{rank}", np.zeros(params["count"], dtype=np.float32)))
        return TaskArgsBuilder(*arrays, Scalar("count", ctypes.c_int64(params["count"])))

    def compute_golden(self, args, params):
        assert SEEN in ([], [2])
        args.out_0[:], args.out_1[:] = args.in_1, args.in_0


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

"""Operations of groups of 2 and 4 ranks, written for the field's interface: each rank writes into the windows of the others and waits for them."""

import ctypes

import numpy as np
from simpler.task_interface import ArgDirection as D
from simpler.task_interface import CommBufferSpec, DataType, TaskArgs, TensorArgType

from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test
from simpler_setup.scene_test import _rehosted_ref

OPERATIONS = ("allreduce", "allgather", "reduce_scatter", "all_to_all", "broadcast")
COUNT = 48


def collective(orch, callables, task_args, config):
    ranks, operation = range(int(task_args.ranks.value)), int(task_args.operation.value)
    slots = len(ranks) * COUNT
    specs = [
        CommBufferSpec(name="slots", dtype="float32", count=slots, nbytes=4 * slots),
        CommBufferSpec(name="counter", dtype="int32", count=1, nbytes=4),
    ]
    with orch.allocate_domain(name="group", workers=list(ranks), window_size=8192, buffers=specs) as domain:
        group = []
        for rank in ranks:
            args = TaskArgs()
            args.add_tensor(_rehosted_ref(task_args, f"in_{rank}"), TensorArgType.INPUT)
            args.add_tensor(_rehosted_ref(task_args, f"out_{rank}"), TensorArgType.OUTPUT_EXISTING)
            args.add_tensor(domain[rank].buffers["slots"].tensor((slots,), DataType.FLOAT32), TensorArgType.INOUT)
            args.add_tensor(domain[rank].buffers["counter"].tensor((1,), DataType.INT32), TensorArgType.INOUT)
            args.add_scalar(domain[rank].device_ctx)
            args.add_scalar(operation)
            group.append(args)
        orch.submit_next_level_group(callables.collective, group, config, workers=list(ranks))


def expected(operation, inputs):
    """What each rank has in the end."""
    pieces = [np.split(one, len(inputs)) for one in inputs]
    of_all = range(len(inputs))
    return {
        "allreduce": lambda: [sum(inputs) for _ in of_all],
        "allgather": lambda: [np.concatenate(inputs) for _ in of_all],
        "reduce_scatter": lambda: [sum(piece[rank] for piece in pieces) for rank in of_all],
        "all_to_all": lambda: [np.concatenate([piece[rank] for piece in pieces]) for rank in of_all],
        "broadcast": lambda: [inputs[0] for _ in of_all],
    }[operation]()


@scene_test(level=3, runtime="tensormap_and_ringbuffer")
class TestCollectives(SceneTestCase):
    CALLABLE = {
        "orchestration": collective,
        "callables": [
            {
                "name": "collective",
                "orchestration": {
                    "source": "kernels/orchestration.cpp",
                    "function_name": "collective",
                    "signature": [D.IN, D.OUT, D.INOUT, D.INOUT],
                },
                "incores": [{"func_id": 2, "source": "kernels/collective.cpp", "core_type": "aiv"}],
            },
        ],
    }
    CASES = [
        {
            "name": f"{operation}_{ranks}",
            "platforms": ["a2a3sim", "a5sim"],
            "config": {"device_count": ranks},
            "params": {"operation": operation, "ranks": ranks},
        }
        for ranks in (2, 4)
        for operation in OPERATIONS
    ]

    def _inputs(self, params):
        return [np.arange(COUNT, dtype=np.float32) + 100 * rank for rank in range(params["ranks"])]

    def generate_args(self, params):
        inputs, arrays = self._inputs(params), []
        for rank, (one, made) in enumerate(zip(inputs, expected(params["operation"], inputs))):
            arrays.append(TensorArg(f"in_{rank}", one))
            arrays.append(TensorArg(f"out_{rank}", np.full_like(made, -1)))
        operation = ctypes.c_int64(OPERATIONS.index(params["operation"]))
        return TaskArgsBuilder(*arrays, Scalar("ranks", ctypes.c_int64(params["ranks"])), Scalar("operation", operation))

    def compute_golden(self, args, params):
        for rank, made in enumerate(expected(params["operation"], self._inputs(params))):
            getattr(args, f"out_{rank}")[:] = made


if __name__ == "__main__":
    SceneTestCase.run_module(__name__)

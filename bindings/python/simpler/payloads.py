"""Submissions as programs of the first half of April 2026 made them: `orch.submit(WorkerType.CHIP, payload, inputs=[..], outputs=[..])`.

`inputs` are addresses that earlier submissions gave, and `outputs` say how many bytes this one makes; a submission waits for those whose
outputs it names. What a kernel reads and writes follows from the callable's signature, because arguments had no tags then.
"""

from dataclasses import dataclass
from enum import Enum

from _task_interface import ArgDirection, DataType, TaskArgs, TensorArgType

from . import buffer as buffers

_TAGS = {
    ArgDirection.IN: TensorArgType.INPUT,
    ArgDirection.OUT: TensorArgType.OUTPUT_EXISTING,
    ArgDirection.INOUT: TensorArgType.INOUT,
}


class WorkerType(Enum):
    """What runs a submission: a device, or a function of Python."""

    CHIP = 0
    SUB = 1


class WorkerPayload:
    """What is submitted: `callable`, `args` and a configuration for a device; `callable_id` for a function."""

    def __init__(self):
        self.worker_type = self.callable = self.callable_id = self.args = None
        self.block_dim = self.aicpu_thread_num = 0


@dataclass(frozen=True)
class PayloadOutput:
    """Memory that a submission has made: its address and bytes."""

    ptr: int
    size: int


@dataclass(frozen=True)
class PayloadResult:
    """What a submission gives back."""

    outputs: tuple


class PayloadOutputs:
    """The outputs of a run's submissions, by address."""

    def __init__(self, owner):
        self._owner, self._tensors = owner, {}

    def made(self, sizes):
        """Memory for outputs: the result, and the accesses of the task that makes them."""
        tensors = [buffers.new_tensor((size,), DataType.UINT8, self._owner) for size in sizes]
        self._tensors.update({tensor.base: tensor for tensor in tensors})
        result = PayloadResult(tuple(PayloadOutput(tensor.base, tensor.nbytes) for tensor in tensors))
        return result, [(tensor, False, True) for tensor in tensors]

    def read(self, addresses):
        """The accesses of a task that reads outputs at these addresses."""
        if missing := [hex(address) for address in addresses if address not in self._tensors]:
            raise ValueError(f"no submission of this run made the memory at {', '.join(missing)}: give outputs[..].ptr of an earlier one")
        return [(self._tensors[address], True, False) for address in addresses]


def tagged(args, signature):
    """The arguments with what a callable of this signature does with each; one that it does not name is read and written."""
    made = TaskArgs()
    kinds = [one for one in signature if one in _TAGS]
    for number, (tensor, _) in enumerate(args.tensors):
        made.add_tensor(tensor, _TAGS[kinds[number]] if number < len(kinds) else TensorArgType.INOUT)
    for scalar in args.scalars:
        made.add_scalar(scalar)
    return made

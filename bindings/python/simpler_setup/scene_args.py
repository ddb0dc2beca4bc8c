"""Named arguments of a scene test become task arguments, by the orchestration's signature."""

from _task_interface import ArgDirection, TaskArgs, TensorArgType
from simpler import buffer

from .task_args import TensorArg

_TAGS = {
    ArgDirection.IN: TensorArgType.INPUT,
    ArgDirection.OUT: TensorArgType.OUTPUT_EXISTING,
    ArgDirection.INOUT: TensorArgType.INOUT,
}


def task_args(args, signature):
    """The task arguments, and the names of those tensors that the orchestration writes."""
    directions = [ArgDirection(one) for one in signature if one != ArgDirection.SCALAR]
    names = args.tensor_names()
    if len(directions) != len(names):
        raise ValueError(
            f"the signature has {len(directions)} tensors, and generate_args gives {len(names)}: {', '.join(names)}"
        )
    made, outputs = TaskArgs(), []
    for (name, array), direction in zip(args.tensors(), directions):
        made.add_tensor(buffer.array_tensor(array), _TAGS[direction])
        if direction != ArgDirection.IN:
            outputs.append(name)
    for value in args.scalars():
        made.add_scalar(value)
    return made, outputs


def tensor_of(args, array):
    """One of the arrays of these arguments as a tensor argument."""
    if all(array is not one for _, one in args.tensors()):
        raise ValueError("the array is none of the arguments: use getattr(task_args, name)")
    return buffer.array_tensor(array)


def named_tensor(args, name):
    """The array of that name as a tensor argument."""
    spec = next((one for one in args.specs if isinstance(one, TensorArg) and one.name == name), None)
    if spec is None:
        raise ValueError(f"there is no tensor {name!r}: there are {', '.join(args.tensor_names())}")
    return buffer.array_tensor(spec.value)

"""Programs: what a file `.ptop` holds, made from the text of a workload, from a workload that was checked, or from tasks."""

import struct

from ._native import Program


def program_of(workload, *, roles=None, layouts=None, constants=None, target=None):
    """The program of a workload: its text, or a `CheckedWorkload`.

    roles: tensor -> "output", "updated" or "temporary", where the writer cannot know better; layouts: tensor -> "nz:500x300", "column-major", "on-chip,
    row-major", ..; constants: tensor -> array whose elements travel in the file; target: the only target, otherwise any.
    """
    chosen = {
        "roles": dict(roles or {}),
        "layouts": dict(layouts or {}),
        "constants": dict(constants or {}),
        "target": target,
    }
    return Program._of(workload, chosen)


def program_of_tasks(name, tensors, tasks, *, kernels=()):
    """The program of tasks that call kernels of the library, and kernels of one's own.

    tensors: name -> (role, element type, shape) or (role, element type, shape, layout), with "input", "output", "updated" or "temporary" as the role;
    tasks: (kernel, kind of cores, arguments) or (kernel, kind of cores, arguments, numbers of the tasks that it waits for), where an argument is the
    name of a tensor, a pair of such a name and a byte, an integer, or a float (f32); kernels: shared objects that list kernels (pto_kernels.h), one for
    each processor, the first one for this processor. Their code travels in the file.
    """
    numbers = {tensor: number for number, tensor in enumerate(tensors)}

    def argument(task, given):
        if isinstance(given, float):
            return None, struct.unpack("<I", struct.pack("<f", given))[0]
        if isinstance(given, int):
            if not -(1 << 63) <= given < 1 << 64:
                raise ValueError(f"task {task}: {given} does not fit 64 bits")
            return None, given % (1 << 64)
        tensor, byte = (given, 0) if isinstance(given, str) else given
        if tensor not in numbers:
            raise ValueError(f"task {task} names tensor {tensor}; there are {', '.join(numbers)}")
        return numbers[tensor], byte

    described = [(tensor, role, element, list(shape), *(layout or ("row-major",))) for tensor, (role, element, shape, *layout) in tensors.items()]
    listed = []
    for number, (kernel, kind, arguments, *after) in enumerate(tasks):
        after = list(after[0]) if after else []
        listed.append((kernel, kind, [argument(number, given) for given in arguments], after))
    return Program._of_tasks(name, described, listed, list(kernels))

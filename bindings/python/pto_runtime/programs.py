"""Programs: what a file `.ptop` holds, made from the text of a workload, from a workload that was checked, or from tasks."""

import operator
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
        if hasattr(given, "__float__") and not hasattr(given, "__index__"):
            try:
                return None, struct.unpack("<I", struct.pack("<f", given))[0]
            except OverflowError:
                raise ValueError(f"task {task}: {given} is beyond the largest f32") from None
        if hasattr(given, "__index__"):
            given = operator.index(given)
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


#: The element types of operators, by those of NumPy. Arrays have no bf16: give the type by name.
_ELEMENTS = {
    "bool": "bool",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    **{f"{kind}int{bits}": f"{short}{bits}" for kind, short in (("", "i"), ("u", "u")) for bits in (8, 16, 32, 64)},
}


def load_onnx(path, *, shapes=None, sizes=None, values=None):
    """The program of a model in a file of ONNX, for certain extents of its inputs (docs/how-to/models.md).

    shapes: input -> extents, where the file leaves them open; sizes: name of an extent -> number, for extents that have names in the file; values: input ->
    NumPy array, for inputs whose values decide shapes. A model that cannot become a program is a `HostError` that names every node, its type, its version and
    the reason.
    """
    given = []
    for name, array in (values or {}).items():
        element = _ELEMENTS.get(str(array.dtype))
        if element is None:
            raise ValueError(f"value of {name}: no operator takes elements of type {array.dtype}")
        given.append((name, element, list(array.shape), array.tobytes()))
    extents = {name: [operator.index(extent) for extent in shape] for name, shape in (shapes or {}).items()}
    return Program._of_model(path, extents, dict(sizes or {}), given)


def task_range(count, kernel, kind, arguments, *, after=(), after_each=None):
    """Many tasks of one kernel, for `program_of_tasks`: a list to be added to its tasks.

    arguments: as those of a task, and where they differ from task to task, a list or a `range` with one for each of the `count` tasks. A pair of a tensor's
    name and such a list is another byte of the tensor each time: ("x", range(0, 8 * 128, 128)) moves by 128 bytes. Each task waits for the tasks in
    `after`, and for its own entry of `after_each`: a number, or several::

        tasks = task_range(8, "add_scalar", "aiv", [("x", range(0, 1024, 128)), 0.5, ("y", range(0, 1024, 128)), 32])
        tasks += task_range(8, "add", "aiv", [("y", range(0, 1024, 128)), ("x", 0), ("z", range(0, 1024, 128)), 32], after_each=range(8))
    """

    def listed(what, given):
        if len(given) != count:
            raise ValueError(f"{what} has {len(given)} entries for a range of {count} tasks; give one for each task")
        return given

    def at(number, given, task):
        if isinstance(given, (list, range)):
            return listed(f"argument {number}", given)[task]
        if isinstance(given, tuple) and isinstance(given[1], (list, range)):
            return given[0], listed(f"argument {number}", given[1])[task]
        return given

    def producers(task):
        own = [] if after_each is None else listed("after_each", after_each)[task]
        return [*after, *([own] if isinstance(own, int) else own)]

    return [(kernel, kind, [at(number, given, task) for number, given in enumerate(arguments)], producers(task)) for task in range(count)]

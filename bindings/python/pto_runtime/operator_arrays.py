"""Arrays on a device and the functions of operators on them, which `ops` gives their names. Here they have none, because some are those of builtins."""

import inspect as _inspect
import keyword as _keyword
import math as _math
import os as _os
import threading as _threading

import numpy as _np

from . import _native
from .programs import _ELEMENTS as _ELEMENTS_OF_NUMPY

#: What NumPy calls the element types; it has no bf16.
_NUMPY = {element: numpy for numpy, element in _ELEMENTS_OF_NUMPY.items()}
#: The memory of the host in DLPack: type of device, number.
_HOST = (1, 0)

_default = None
_lock = _threading.Lock()


def default_stream():
    """The stream of arrays that are made without one: of a simulator of this process, which is opened when it is needed first."""
    global _default
    with _lock:
        # A child of fork cannot use what its parent has opened.
        if _default is None or _default[0] != _os.getpid():
            _default = (_os.getpid(), _native.Device().session().stream())
        return _default[1]


def _element(dtype):
    """An element type by its name here, or as NumPy takes it."""
    if isinstance(dtype, str) and (dtype == "bf16" or dtype in _NUMPY):
        return dtype
    name = _np.dtype(dtype).name
    if name == "bfloat16":
        return "bf16"
    if name not in _ELEMENTS_OF_NUMPY:
        raise TypeError(f"no operator takes elements of type {name}; use one of bf16, {', '.join(_NUMPY)}")
    return _ELEMENTS_OF_NUMPY[name]


class Array:
    """An array on a device: elements of one type, which do not change.

    Operators of Python are operators of the device. Both arrays have the same element type (`astype`), a number takes that of the array. A part along the first
    dimensions (`x[2]`, `x[1:4]`), `reshape`, `squeeze` and `unsqueeze` share the memory of the array.
    """

    __slots__ = ("_array", "__weakref__")
    #: NumPy leaves operators with its own arrays to these.
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, *args, **kwargs):
        raise TypeError("make an array with ops.array, ops.from_dlpack or ops.from_tensor")

    @property
    def dtype(self):
        """The element type: bool, f16, bf16, f32, f64, i8 to i64, u8 to u64."""
        return self._array.dtype

    @property
    def shape(self):
        return self._array.shape

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return _math.prod(self.shape)

    @property
    def nbytes(self):
        return self._array.nbytes

    @property
    def tensor(self):
        """The tensor that the array is, for programs of the same stream; no copy. A part of a tensor is an error."""
        return self._array.tensor()

    @property
    def T(self):
        """With the dimensions in the opposite order."""
        return _FUNCTIONS["transpose"](self)

    def numpy(self):
        """Waits for the array, and gives a copy for NumPy. bf16 become float32, with the same values."""
        read, shape = self._array.read(), self.shape
        if self.dtype == "bf16":
            bits = _np.frombuffer(read, _np.uint16).astype(_np.uint32) << 16
            return bits.view(_np.float32).reshape(shape)
        return _np.frombuffer(read, _NUMPY[self.dtype]).reshape(shape)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("the array is on a device, and NumPy gets a copy: leave copy=False out")
        made = self.numpy()
        return made if dtype is None else made.astype(dtype, copy=False)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy is False:
            raise BufferError("the array is on a device, and others get a copy: leave copy=False out")
        if dl_device is not None and tuple(dl_device) != _HOST:
            raise BufferError(f"the copy is in the memory of the host, {_HOST}, and {tuple(dl_device)} was asked for")
        if stream is not None:
            raise BufferError("the memory of the host has no streams: leave stream out")
        return self._array.dlpack(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self):
        return _HOST

    def synchronize(self):
        """Waits for everything that was asked of the stream of the array; an error of an operator, such as an index beyond its axis, is raised here."""
        self._array.synchronize()

    def item(self):
        """The one element as an object of Python."""
        if self.size != 1:
            raise ValueError(f"the array has {self.size} elements, and item() is for one")
        return self.numpy().item()

    def tolist(self):
        return self.numpy().tolist()

    def astype(self, dtype):
        """As another element type; the same array where it has it."""
        element = _element(dtype)
        return self if element == self.dtype else _FUNCTIONS["cast"](self, to=element)

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        return _FUNCTIONS["reshape"](self, shape=list(shape), allow_zero=True)

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes
        ordered = [axis + self.ndim if axis < 0 else axis for axis in axes or ()]
        return _FUNCTIONS["transpose"](self, permutation=ordered or None)

    def _reduce(self, how, axis, keepdims):
        axes = axis if axis is None or isinstance(axis, (list, tuple)) else [axis]
        return _FUNCTIONS[f"reduce_{how}"](self, axes=axes, keep_dims=keepdims)

    def sum(self, axis=None, keepdims=False):
        return self._reduce("sum", axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        return self._reduce("mean", axis, keepdims)

    def max(self, axis=None, keepdims=False):
        return self._reduce("max", axis, keepdims)

    def min(self, axis=None, keepdims=False):
        return self._reduce("min", axis, keepdims)

    def prod(self, axis=None, keepdims=False):
        return self._reduce("prod", axis, keepdims)

    def all(self, axis=None, keepdims=False):
        return self._reduce("all", axis, keepdims)

    def any(self, axis=None, keepdims=False):
        return self._reduce("any", axis, keepdims)

    def __getitem__(self, index):
        return _part(self, index if isinstance(index, tuple) else (index,))

    def __len__(self):
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[at] for at in range(len(self)))

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"an array of {self.size} elements is neither true nor false: use all() or any()")
        return bool(self.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.ndim or self.dtype == "bool" or self.dtype in ("f16", "bf16", "f32", "f64"):
            raise TypeError(f"an array of type {self.dtype}{list(self.shape)} is no index")
        return self.item()

    def __repr__(self):
        return f"<Array {self.dtype}{list(self.shape)}>"

    def __truediv__(self, other):
        return _divided(self, other)

    def __rtruediv__(self, other):
        return _divided(other, self)

    def __floordiv__(self, other):
        return _floor_divided(self, other)

    def __rfloordiv__(self, other):
        return _floor_divided(other, self)

    def __pos__(self):
        return self

    def __neg__(self):
        return _FUNCTIONS["neg"](self)

    def __abs__(self):
        return _FUNCTIONS["abs"](self)

    def __invert__(self):
        return _FUNCTIONS["logical_not" if self.dtype == "bool" else "bitwise_not"](self)


def _is_operand(value):
    return isinstance(value, (Array, int, float, _np.generic, _np.ndarray))


def _of_python(function, logical=None):
    """Methods for an operator of Python: with the array on the left, and on the right."""

    def call(a, b):
        of_bool = (a if isinstance(a, Array) else b).dtype == "bool"
        return _FUNCTIONS[logical if logical and of_bool else function](a, b)

    def left(self, other):
        return call(self, other) if _is_operand(other) else NotImplemented

    def right(self, other):
        return call(other, self) if _is_operand(other) else NotImplemented

    return left, right


for _name, _function, _logical in (
    ("add", "add", None),
    ("sub", "sub", None),
    ("mul", "mul", None),
    ("mod", "mod", None),
    ("pow", "pow", None),
    ("matmul", "matmul", None),
    ("lshift", "shift_left", None),
    ("rshift", "shift_right", None),
    ("and", "bitwise_and", "logical_and"),
    ("or", "bitwise_or", "logical_or"),
    ("xor", "bitwise_xor", "logical_xor"),
):
    for _prefix, _method in zip(("__", "__r"), _of_python(_function, _logical)):
        _method.__name__ = f"{_prefix}{_name}__"
        setattr(Array, _method.__name__, _method)
for _name, _function in (
    ("eq", "equal"),
    ("ne", "not_equal"),
    ("lt", "less"),
    ("le", "less_or_equal"),
    ("gt", "greater"),
    ("ge", "greater_or_equal"),
):
    _method = _of_python(_function)[0]
    _method.__name__ = f"__{_name}__"
    setattr(Array, _method.__name__, _method)


def _is_float(a, b):
    return (a if isinstance(a, Array) else b).dtype in ("f16", "bf16", "f32", "f64")


def _divided(a, b):
    if not (_is_operand(a) and _is_operand(b)):
        return NotImplemented
    if not _is_float(a, b):
        raise TypeError("/ is for floats: use //, or ops.div, which rounds towards zero, or astype")
    return _FUNCTIONS["div"](a, b)


def _floor_divided(a, b):
    if not (_is_operand(a) and _is_operand(b)):
        return NotImplemented
    if _is_float(a, b):
        return _FUNCTIONS["floor"](_FUNCTIONS["div"](a, b))
    return _FUNCTIONS["div"](_FUNCTIONS["sub"](a, _FUNCTIONS["mod"](a, b)), b)


def _part(x, index):
    """A part of an array, by integers, slices, `...` and None."""
    for one in index:
        if not (one is None or one is Ellipsis or isinstance(one, slice) or (hasattr(one, "__index__") and not isinstance(one, bool))):
            raise TypeError(f"an index is an integer, a slice, ... or None, and not {type(one).__name__}: ops.gather takes arrays of indices")
    given = sum(one is not None and one is not Ellipsis for one in index)
    rest = [slice(None)] * (x.ndim - given)
    places = [at for at, one in enumerate(index) if one is Ellipsis]
    if given > x.ndim or len(places) > 1:
        raise IndexError(f"{given} indices and {len(places)} times ... for an array with {x.ndim} dimensions")
    at = places[0] if places else len(index)
    index = [*index[:at], *rest, *index[at + 1 :]]
    ranges, shape, axis = [], [], 0
    for one in index:
        if one is None:
            shape.append(1)
            continue
        extent = x.shape[axis]
        if isinstance(one, slice):
            chosen = range(*one.indices(extent))
            shape.append(len(chosen))
        else:
            number = one.__index__()
            if not -extent <= number < extent:
                raise IndexError(f"index {number} for axis {axis}, which has {extent} elements: use {-extent} to {extent - 1}")
            number %= extent
            chosen = range(number, number + 1)
        ranges.append(chosen)
        axis += 1
    stride, first = 1, 0
    for chosen, extent in zip(reversed(ranges), reversed(x.shape)):
        first, stride = first + chosen.start * stride, stride * extent
    if any(len(chosen) == 0 for chosen in ranges):
        return _wrapped(x._array.part(0, shape))
    if _stands_side_by_side(ranges, x.shape):
        return _wrapped(x._array.part(first, shape))
    ends = [chosen.stop if chosen.stop >= 0 else -extent - 1 for chosen, extent in zip(ranges, x.shape)]
    taken = _FUNCTIONS["slice"](x, starts=[chosen.start for chosen in ranges], ends=ends, steps=[chosen.step for chosen in ranges])
    return _wrapped(taken._array.part(0, shape))


def _stands_side_by_side(ranges, extents):
    """Whether the elements stand side by side: behind the first dimension with more than one, all are taken."""
    some = [at for at, chosen in enumerate(ranges) if len(chosen) > 1]
    if not some:
        return True
    head, *behind = some[0], *range(some[0] + 1, len(ranges))
    return ranges[head].step == 1 and all(ranges[at] == range(extents[at]) for at in behind)


def _wrapped(native):
    made = object.__new__(Array)
    made._array = native
    return made


def _on(stream):
    """Checks a stream; without one, the usual one."""
    if stream is None:
        return default_stream()
    if not isinstance(stream, _native.ProgramStream):
        raise TypeError(f"stream is a stream of a session, as session.stream() gives it, and not {type(stream).__name__}")
    return stream


def _uploaded(values, upload):
    """Copies an array of NumPy by `upload(array, element type, extents)`."""
    if values.dtype.name == "bfloat16":
        return upload(_np.ascontiguousarray(values).view(_np.uint16), "bf16", values.shape)
    element = _element(values.dtype)
    shape = values.shape
    values = _np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    return upload(values, element, shape)


def array(values, stream=None, *, dtype=None):
    """An array on the device, with a copy of `values`: an array of NumPy or of this package, a number, or nested lists.

    stream: a stream of a session (`session.stream()`), by default one of a simulator of this process; dtype: the element type, by its name here ("f16", "bf16", ..) or
    by that of NumPy. Values are converted on the device.
    """
    if isinstance(values, Array):
        read = _np.frombuffer(values._array.read(), _np.uint8), values.dtype, values.shape
        made = _wrapped(values._array.beside(*read) if stream is None else _native.operator_array(_on(stream), *read))
    else:
        values = _np.asarray(values)
        made = _wrapped(_uploaded(values, lambda *given: _native.operator_array(_on(stream), *given)))
    return made if dtype is None else made.astype(dtype)


def from_dlpack(values, stream=None):
    """An array on the device, with a copy of an array of another package that has `__dlpack__`, in the memory of the host."""
    if not hasattr(values, "__dlpack__") or not hasattr(values, "__dlpack_device__"):
        raise TypeError(f"{type(values).__name__} has no __dlpack__: use ops.array for values")
    kind, number = values.__dlpack_device__()
    if int(kind) != _HOST[0]:
        raise BufferError(f"the array is on a device of type {int(kind)}, number {number}: copy it to the host")
    try:
        capsule = values.__dlpack__(max_version=(1, 0))
    except TypeError:
        # One that knows no versions.
        capsule = values.__dlpack__()
    return _wrapped(_native.operator_array_of_dlpack(_on(stream), capsule))


def from_tensor(tensor, stream, dtype=None):
    """A tensor of a stream as an array, without a copy: what `stream.run` or `stream.to_device` gave. dtype: "bool" for a tensor of u8."""
    return _wrapped(_native.operator_array_of(_on(stream), tensor, None if dtype is None else _element(dtype)))


_FUNCTIONS = {}


def operators():
    """The functions of the operators, by name."""
    return dict(_FUNCTIONS)


def _made_of(number, row):
    """The function of a row of the table."""
    name, function, about, inputs, required, takes_more, attributes = row
    kinds = _inspect.Parameter
    # A word of Python gets an underscore, as everywhere.
    plain = {f"{one[0]}_" if _keyword.iskeyword(one[0]) else one[0]: one[0] for one in attributes}
    own = [(shown, *rest) for shown, (_, *rest) in zip(plain, attributes)]
    # Positions: first the inputs, then the attributes, where no input may be left out.
    is_open = takes_more or required < len(inputs)
    own.sort(key=lambda one: bool(one[3]))
    parameters = []
    if takes_more:
        parameters.append(kinds(inputs[-1], kinds.VAR_POSITIONAL))
    else:
        for at, one in enumerate(inputs):
            default = kinds.empty if at < required else None
            parameters.append(kinds(one, kinds.POSITIONAL_OR_KEYWORD, default=default))
    place = kinds.KEYWORD_ONLY if is_open else kinds.POSITIONAL_OR_KEYWORD
    for attribute, _, _, default in own:
        parameters.append(kinds(attribute, place, default=default[0] if default else kinds.empty))
    names = [one[0] for one in own]
    parameters.append(kinds("results", kinds.KEYWORD_ONLY, default=None))
    if not inputs:
        parameters.append(kinds("stream", kinds.KEYWORD_ONLY, default=None))

    def refused(what):
        return TypeError(f"operator {name}: {what}; it is ops.{function}{_inspect.Signature(parameters)}")

    def call(*args, results=None, **given):
        stream = given.pop("stream", None) if not inputs else None
        if takes_more:
            if len(args) < required:
                also = f"; the {function} over axes is reduce_{function}" if f"reduce_{function}" in _FUNCTIONS else ""
                raise refused(f"there {'is 1 input' if len(args) == 1 else f'are {len(args)} inputs'}; give {required} or more{also}")
            operands = args
        else:
            most = len(inputs) + (0 if is_open else len(names))
            if len(args) > most:
                raise refused(f"there are {len(args)} arguments by position; give at most {most}")
            operands = list(args[: len(inputs)])
            for at, one in enumerate(inputs):
                if one in given:
                    if at < len(operands):
                        raise refused(f"{one} is there twice; give it once")
                    operands += [None] * (at - len(operands)) + [given.pop(one)]
            for attribute, value in zip(names, args[len(inputs) :]):
                if attribute in given:
                    raise refused(f"{attribute} is there twice; give it once")
                given[attribute] = value
        for one in given:
            if one not in names:
                raise refused(f"there is no argument {one}")
        for one in ("to", "dtype"):
            if one in given:
                asked = given[one]
                given[one] = _ELEMENTS_OF_NUMPY.get(asked, asked) if isinstance(asked, str) else _element(asked)
        made = _native.run_operator(number, _operands(operands), [(plain[one], value) for one, value in given.items()], results, _on(stream) if not inputs else None)
        return _wrapped(made[0]) if len(made) == 1 else tuple(map(_wrapped, made))

    call.__name__ = call.__qualname__ = function
    call.__signature__ = _inspect.Signature(parameters)
    call.inputs = inputs
    lines = [f"Operator {name}: {about}", ""]
    for attribute, about_it, form, default in own:
        usual = f" (default {default[0]!r})" if default else ""
        lines.append(f"{attribute}: {' '.join(about_it.split())} Give {form}{usual}.")
    lines += ["results: how many of the results; by default those that every use has.", ""]
    call.__doc__ = "\n".join(lines).rstrip() + "\n"
    return call


def _operands(given):
    """Arrays of NumPy become arrays beside the others; scalars of NumPy are numbers."""
    beside = next((one for one in given if isinstance(one, Array)), None)
    operands = []
    for one in given:
        if isinstance(one, Array):
            one = one._array
        elif isinstance(one, _np.generic):
            one = one.item()
        elif isinstance(one, _np.ndarray):
            if beside is None:
                beside = array(one)
                one = beside._array
            else:
                one = _uploaded(one, beside._array.beside)
        operands.append(one)
    return operands


for _number, _row in enumerate(_native.operator_table()):
    _FUNCTIONS[_row[1]] = _made_of(_number, _row)

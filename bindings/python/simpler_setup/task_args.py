"""The arguments of a scene test: named tensors, then named scalars."""

import ctypes
from dataclasses import dataclass
from typing import Any

from simpler import arrays


@dataclass
class TensorArg:
    """A tensor of torch or NumPy under a name."""

    name: str
    value: Any

    def __post_init__(self):
        arrays.checked(self.value, self.name)


@dataclass
class Scalar:
    """A scalar under a name: a value of ctypes, or an integer or float of Python."""

    name: str
    value: Any


class TaskArgsBuilder:
    """Named arguments in the order of the orchestration's. `args.a` is the array, or the scalar, of that name."""

    def __init__(self, *specs):
        self._specs = []
        for spec in specs:
            self.add(spec)

    def add(self, spec):
        """Adds a TensorArg or a Scalar; tensors come before scalars."""
        if not isinstance(spec, (TensorArg, Scalar)):
            raise TypeError(f"{type(spec).__name__} is no argument: give TensorArg or Scalar")
        if spec.name in self.names():
            raise ValueError(f"two arguments are called {spec.name!r}")
        if isinstance(spec, TensorArg) and any(isinstance(one, Scalar) for one in self._specs):
            raise ValueError(f"tensor {spec.name!r} comes behind a scalar: tensors come first")
        self._specs.append(spec)
        return self

    @property
    def specs(self):
        """All arguments in order."""
        return list(self._specs)

    def names(self):
        """All names in order."""
        return [spec.name for spec in self._specs]

    def tensor_names(self):
        """The names of the tensors."""
        return [spec.name for spec in self._specs if isinstance(spec, TensorArg)]

    def tensors(self):
        """Names and arrays of the tensors."""
        return [(spec.name, spec.value) for spec in self._specs if isinstance(spec, TensorArg)]

    def scalars(self):
        """The values of the scalars."""
        return [spec.value for spec in self._specs if isinstance(spec, Scalar)]

    def __setattr__(self, name, value):
        for spec in self.__dict__.get("_specs", ()):
            if spec.name == name:
                spec.value = value
                return
        if name != "_specs":
            raise AttributeError(f"there is no argument {name!r}: add it with TensorArg or Scalar")
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        for spec in self.__dict__.get("_specs", ()):
            if spec.name == name:
                return spec.value
        raise AttributeError(f"there is no argument {name!r}: there are {', '.join(self.names()) or 'none'}")

    def clone(self):
        """Arguments of their own with the same values."""
        return TaskArgsBuilder(*(_cloned(spec) for spec in self._specs))


def _cloned(spec):
    if isinstance(spec, TensorArg):
        return TensorArg(spec.name, arrays.copied(spec.value))
    value = spec.value
    return Scalar(spec.name, type(value)(value.value) if isinstance(value, ctypes._SimpleCData) else value)

"""What the parameters of a kernel are annotated with."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .types import DType, Location


@dataclass(frozen=True)
class TileType:
    """A tile: rows, columns, element type."""

    rows: int
    cols: int
    dtype: DType = DType.F16
    location: Location = Location.UB

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return (self.rows, self.cols)


class Tile:
    """`Tile[rows, cols]` of f16, or `Tile[rows, cols, dtype]`."""

    def __class_getitem__(cls, parts: Any) -> TileType:
        if not isinstance(parts, tuple) or len(parts) not in (2, 3):
            raise TypeError(f"Tile[{parts!r}]: a tile has rows, columns and an element type.")
        rows, cols, *dtype = parts
        for extent in (rows, cols):
            if not hasattr(extent, "__index__") or isinstance(extent, bool) or extent < 1:
                raise TypeError(f"Tile[{rows!r}, {cols!r}]: rows and columns are positive integers.")
        if dtype and not isinstance(dtype[0], DType):
            raise TypeError(f"Tile[.., {dtype[0]!r}]: the element type is one of DType.")
        return TileType(int(rows), int(cols), *dtype)


@dataclass(frozen=True)
class ScalarType:
    """A scalar."""

    dtype: DType


class Scalar:
    """`Scalar[dtype]`: a scalar parameter, which may have a default."""

    def __class_getitem__(cls, dtype: Any) -> ScalarType:
        if not isinstance(dtype, DType):
            raise TypeError(f"Scalar[{dtype!r}]: the element type is one of DType.")
        return ScalarType(dtype)


class _Direction:
    _direction: str = ""
    _inner_type: Any = None

    def __class_getitem__(cls, inner: Any) -> type:
        return type(f"{cls.__name__}[{inner!r}]", (cls,), {"_inner_type": inner})


class In(_Direction):
    """The kernel reads it."""

    _direction = "in"


class Out(_Direction):
    """The kernel writes it."""

    _direction = "out"


class InOut(_Direction):
    """The kernel reads and writes it."""

    _direction = "inout"


class Constexpr(_Direction):
    """A constant of the program: each value makes a kernel of its own."""

    _direction = "constexpr"


#: What a parameter without an annotation is.
DEFAULT_TILE = TileType(32, 128, DType.F16)


@dataclass(frozen=True)
class KernelParam:
    """A parameter: its name, direction, type and default."""

    name: str
    direction: str
    type: Any
    default: Any = inspect.Parameter.empty

    @property
    def tile(self) -> Optional[TileType]:
        """Its tile, if it is one."""
        return self.type if isinstance(self.type, TileType) else None

    @property
    def scalar(self) -> Optional[DType]:
        """Its element type, if it is a scalar."""
        return self.type.dtype if isinstance(self.type, ScalarType) else None


def _resolved(annotation: Any, fn: Callable[..., Any]) -> Any:
    """An annotation; a string is evaluated in the globals of the function, and with what it closes over beneath them."""
    if not isinstance(annotation, str):
        return annotation
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or ())
    closed = {}
    for name, cell in cells:
        try:
            closed[name] = cell.cell_contents
        except ValueError:
            pass
    try:
        return eval(annotation, {**closed, **fn.__globals__})
    except Exception as error:
        raise TypeError(f"Kernel {fn.__name__}: the annotation {annotation!r} has no value: {error}.") from error


def extract_kernel_params(fn: Callable[..., Any]) -> list[KernelParam]:
    """The parameters of a kernel, in their order."""
    params = []
    for name, declared in inspect.signature(fn).parameters.items():
        if declared.annotation is inspect.Parameter.empty:
            params.append(KernelParam(name, "inout", DEFAULT_TILE, declared.default))
            continue
        annotation = _resolved(declared.annotation, fn)
        if isinstance(annotation, ScalarType):
            params.append(KernelParam(name, "in", annotation, declared.default))
        elif isinstance(annotation, type) and issubclass(annotation, _Direction):
            inner = annotation._inner_type
            inner = _resolved(inner, fn)
            params.append(KernelParam(name, annotation._direction, inner, declared.default))
        else:
            params.append(KernelParam(name, "in", annotation, declared.default))
    return params

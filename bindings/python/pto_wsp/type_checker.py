"""Checks of kernel calls and tensors, made while a workload is built."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional

from .axes import Dense, DenseDyn, Ragged, Sparse
from .layouts import (
    LayoutIncompatibleError,
    TensorLayout,
    TensorReplicate,
    TensorShard,
    tensor_layout_join,
)
from .source import user_line

Layout = TensorLayout
LayoutShard = TensorShard
LayoutReplicate = TensorReplicate
LayoutCompatibilityError = LayoutIncompatibleError
layout_join = tensor_layout_join


class TypeErrorKind(Enum):
    """What is wrong."""

    ARITY_MISMATCH = "arity_mismatch"
    TYPE_MISMATCH = "type_mismatch"
    LAYOUT_INCOMPATIBLE = "layout_incompatible"
    AXIS_OUT_OF_BOUNDS = "axis_out_of_bounds"
    MISSING_ARGUMENT = "missing_argument"
    DIRECTION_VIOLATION = "direction_violation"
    SHAPE_MISMATCH = "shape_mismatch"


@dataclass
class TypeErrorInfo:
    """What is wrong, and where."""

    kind: TypeErrorKind
    message: str
    location: Optional[str] = None
    kernel: Optional[str] = None

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


@dataclass
class TypeCheckContext:
    """How to check."""

    fail_fast: bool = False
    workload_name: Optional[str] = None


class TypeChecker:
    """Collects errors."""

    def __init__(self, context: Optional[TypeCheckContext] = None) -> None:
        self.context = context if context is not None else TypeCheckContext()
        self.errors: list[TypeErrorInfo] = []

    def has_errors(self) -> bool:
        """Whether there are any."""
        return bool(self.errors)

    def get_errors(self) -> list[TypeErrorInfo]:
        """All of them."""
        return list(self.errors)

    def clear_errors(self) -> None:
        """Forgets them."""
        self.errors.clear()

    def _error(self, kind: TypeErrorKind, message: str, kernel: Optional[str] = None) -> bool:
        found = TypeErrorInfo(kind, message, user_line(), kernel)
        self.errors.append(found)
        if self.context.fail_fast:
            raise TypeError(str(found))
        return False

    def check_kernel_call(self, kernel: Any, axes: tuple, args: dict[str, Any]) -> bool:
        """Whether the arguments are those that the kernel declares."""
        declared = kernel.signature
        if not declared:
            return True
        needed = [name for name in declared if name not in kernel.defaults]
        missing = [name for name in needed if name not in args]
        extra = [name for name in args if name not in declared]
        is_right = True
        if missing or extra:
            parts = [f"{', '.join(missing)} is missing"] if missing else []
            parts += [f"{', '.join(extra)} is not declared"] if extra else []
            message = f"Kernel {kernel.name} has {len(declared)} parameters and gets {len(args)} arguments: "
            is_right = self._error(TypeErrorKind.ARITY_MISMATCH, message + "; ".join(parts) + ".", kernel.name)
        for name in missing:
            message = f"Kernel {kernel.name}, argument {name}: it is missing."
            self._error(TypeErrorKind.MISSING_ARGUMENT, message, kernel.name)
        return is_right and self._check_types(kernel, args)

    def _check_types(self, kernel: Any, args: dict[str, Any]) -> bool:
        from .types import Tensor

        is_right = True
        for name, value in args.items():
            wanted = kernel.tile_of(name)
            if wanted is not None and isinstance(value, Tensor) and value.dtype is not wanted.dtype:
                message = (
                    f"Kernel {kernel.name}, argument {name}: the kernel needs {wanted.dtype.value}, "
                    f"and the tensor is {value.dtype.value}."
                )
                is_right = self._error(TypeErrorKind.TYPE_MISMATCH, message, kernel.name)
        return is_right

    def check_axis_bounds(self, axis: Any, index: Any) -> bool:
        """Whether an index is on an axis, as far as both are known."""
        extent = _extent(axis)
        if not isinstance(index, int) or extent is None or 0 <= index < extent:
            return True
        message = f"The index {index} is not on an axis of {extent} elements."
        return self._error(TypeErrorKind.AXIS_OUT_OF_BOUNDS, message)

    def check_tensor_access(self, tensor: Any, index: Any) -> bool:
        """Whether indices are in the leading dimensions of a tensor."""
        places = index if isinstance(index, tuple) else (index,)
        if len(places) > len(tensor.shape):
            message = f"{len(places)} indices are too many for a tensor of {len(tensor.shape)} dimensions."
            return self._error(TypeErrorKind.SHAPE_MISMATCH, message)
        for number, (place, extent) in enumerate(zip(places, tensor.shape)):
            if isinstance(place, int) and isinstance(extent, int) and not 0 <= place < extent:
                message = f"The index {place} is not in dimension {number}, which has {extent} places."
                return self._error(TypeErrorKind.AXIS_OUT_OF_BOUNDS, message)
        return True

    def check_shapes_compatible(self, a: Any, b: Any) -> bool:
        """Whether two tensors or shapes are equal where both are known."""
        left, right = (tuple(getattr(one, "shape", one)) for one in (a, b))
        if left == right:
            return True
        message = f"The shapes {left} and {right} differ."
        return self._error(TypeErrorKind.SHAPE_MISMATCH, message)


def _extent(axis: Any) -> Optional[int]:
    if isinstance(axis, (Dense, DenseDyn)):
        return axis.size
    if isinstance(axis, Ragged):
        return axis.total()
    if isinstance(axis, Sparse):
        return max(axis.indices, default=-1) + 1
    return axis if isinstance(axis, int) else None


def check_kernel_call(kernel: Any, axes: tuple = (), args: Optional[dict[str, Any]] = None) -> list[TypeErrorInfo]:
    """What is wrong with a call."""
    checker = TypeChecker()
    checker.check_kernel_call(kernel, axes, args or {})
    return checker.get_errors()


def check_layouts_compatible(*tensors: Any) -> Optional[TensorLayout]:
    """The layout that all tensors become; None without tensors."""
    joined: Optional[TensorLayout] = None
    for tensor in tensors:
        joined = tensor.layout if joined is None else tensor_layout_join(joined, tensor.layout)
    return joined


def validate_axis_index(axis: Any, index: int) -> bool:
    """True where an index is on an axis; TypeError elsewhere."""
    checker = TypeChecker()
    if checker.check_axis_bounds(axis, index):
        return True
    raise TypeError(str(checker.errors[0].message))

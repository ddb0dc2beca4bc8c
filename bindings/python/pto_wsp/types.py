"""Element types, tensors and their views. Axes and layouts are here, too, by the names that programs import."""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import Any, Optional, Sequence

import numpy as np

from .axes import Dense, DenseDyn, Ragged, Sparse  # noqa: F401
from .layouts import (  # noqa: F401
    DistElem,
    LayoutCompatibilityError,
    LayoutIncompatibleError,
    MemLayout,
    TensorLayout,
    TensorReplicate,
    TensorShard,
    allgather,
    allreduce,
    reduce_scatter,
    relayout,
    tensor_layout_join,
)
from .scalar_expr import ScalarExpr


class DType(Enum):
    """An element type."""

    F16 = "f16"
    BF16 = "bf16"
    F32 = "f32"
    F64 = "f64"
    I8 = "i8"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return "f" in self.value

    @property
    def nbytes(self) -> int:
        """The bytes of an element."""
        return int(self.value.lstrip("bfiu")) // 8

    @property
    def numpy(self) -> np.dtype:
        """The type in NumPy, which has no bf16: there it is `uint16`, the bits."""
        if self is DType.BF16:
            return np.dtype(np.uint16)
        kind = {"f": "f", "i": "i", "u": "u"}[self.value[0]]
        return np.dtype(f"{kind}{self.nbytes}")


class Location(Enum):
    """Where a tensor or tile is."""

    Global = "global"
    L2 = "l2"
    UB = "ub"
    L1 = "l1"


class Tensor:
    """A tensor, or a view of one: `t[i]`, `t[i, j]`, `t[i, a:b]`, `t.slice(a, b)`.

    `data` is a NumPy array with any strides, or anything with DLPack; it is read and written in place by each run. None:
    zeros in each run."""

    def __init__(
        self,
        data: Any,
        shape: Sequence[Any],
        dtype: DType,
        location: Location = Location.Global,
        layout: Optional[TensorLayout] = None,
        base: Optional[Tensor] = None,
        index_exprs: Sequence[Any] = (),
    ) -> None:
        self.data = data
        self.shape = tuple(shape)
        self.dtype = dtype
        self.location = location
        self.layout = layout if layout is not None else TensorLayout.default(len(self.shape))
        self.base = base
        self.index_exprs = tuple(index_exprs)
        #: Of the first dimensions that are not indexed: first place and length; None: all of it.
        self._ranges: tuple[Optional[tuple[Any, Any]], ...] = ()

    def _view(self, shape: tuple, layout: TensorLayout, indices: tuple) -> Tensor:
        base = self.base if self.base is not None else self
        return Tensor(self.data, shape, self.dtype, self.location, layout, base, indices)

    def __getitem__(self, index: Any) -> Tensor:
        places = index if isinstance(index, tuple) else (index,)
        view, kept = self, 0
        for place in places:
            if isinstance(place, slice):
                view = view._sliced(kept, place)
                kept += 1
            elif kept:
                raise IndexError("A place follows a slice. Index the leading dimensions first, and slice those that stay.")
            else:
                view = view._at(place)
        return view

    def _at(self, place: Any) -> Tensor:
        if not self.shape:
            raise IndexError("The tensor has no dimension left to index.")
        if not isinstance(place, ScalarExpr):
            place = place.__index__()
            extent = self.shape[0]
            if isinstance(extent, int) and not 0 <= place < extent:
                raise IndexError(f"The index {place} is not in a dimension of {extent} places.")
        if self._ranges[:1] not in ((), (None,)):
            place = self._ranges[0][0] + place  # type: ignore[index]
        view = self._view(self.shape[1:], TensorLayout(self.layout.dist[1:]), self.index_exprs + (place,))
        view._ranges = self._ranges[1:]
        return view

    def _sliced(self, dimension: int, places: slice) -> Tensor:
        if places.step not in (None, 1):
            raise IndexError("A slice of a tensor has no step.")
        if dimension >= len(self.shape):
            raise IndexError("The tensor has no dimension left to slice.")
        extent = self.shape[dimension]
        start, stop = (0 if places.start is None else places.start), (extent if places.stop is None else places.stop)
        if isinstance(start, int) and isinstance(stop, int) and not 0 <= start <= stop:
            raise IndexError(f"A slice from {start} to {stop} is not possible.")
        is_whole = places.start is None and places.stop is None
        length = stop - start if not is_whole else extent
        view = self._view(self.shape[:dimension] + (length,) + self.shape[dimension + 1 :], self.layout, self.index_exprs)
        ranges = list(self._ranges) + [None] * (dimension + 1 - len(self._ranges))
        if not is_whole:
            before = ranges[dimension]
            ranges[dimension] = (start if before is None else before[0] + start, length)
        view._ranges = tuple(ranges)
        return view

    def slice(self, start: Any, stop: Any) -> Tensor:
        """The places `start` to `stop` of the first dimension, which may be expressions."""
        return self._sliced(0, slice(start, stop))

    def nbytes(self) -> int:
        """The bytes of all elements."""
        return prod(self.shape) * self.dtype.nbytes if self.shape else 0

    def with_layout(self, layout: TensorLayout) -> Tensor:
        """The same tensor with another layout."""
        view = Tensor(self.data, self.shape, self.dtype, self.location, layout, self._root(), self.index_exprs)
        view._ranges = self._ranges
        return view

    def _root(self) -> Tensor:
        return self.base if self.base is not None else self

    def __dlpack__(self, **options: Any) -> Any:
        return self._array().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array().__dlpack_device__()

    def _array(self) -> np.ndarray:
        """The whole data as an array that shares its memory."""
        return as_array(self._root().data, self.dtype)

    def __repr__(self) -> str:
        return f"Tensor({self.dtype.value}[{', '.join(map(str, self.shape))}])"


def as_array(data: Any, dtype: DType) -> np.ndarray:
    """An array that shares the memory of `data`, whose element type must be `dtype`."""
    if not isinstance(data, np.ndarray):
        if type(data).__module__ == "torch":
            data = _from_torch(data, dtype)
        elif hasattr(data, "__dlpack__"):
            data = _from_dlpack(data)
        else:
            raise TypeError(f"The data of a tensor is {type(data).__name__}. Use a NumPy array, or anything with DLPack.")
    is_bfloat = dtype is DType.BF16 and data.dtype.name == "bfloat16"
    if is_bfloat:
        return data.view(np.uint16)
    if data.dtype != dtype.numpy:
        raise TypeError(f"A tensor of type {dtype.value} has data of type {data.dtype}. Convert one of them.")
    return data


def _from_torch(data: Any, dtype: DType) -> np.ndarray:
    """A tensor of torch on the CPU. Older versions of NumPy take it by DLPack to be read only."""
    data = data.detach()
    if dtype is DType.BF16:
        import torch

        return data.view(torch.int16).numpy().view(np.uint16)
    return data.numpy()


class _Interface:
    """An array's memory, by its array interface."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def _from_dlpack(data: Any) -> np.ndarray:
    """NumPy before 2.1 does not ask whether memory may be written, and takes all of it to be read only."""
    array = np.from_dlpack(data)
    asks = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)
    return array if asks or array.flags.writeable else np.asarray(_Interface(array))

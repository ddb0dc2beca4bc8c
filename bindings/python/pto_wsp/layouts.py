"""Layouts of tensors: how they are distributed over devices, and how they lie in memory.

Of a tensor of a workload they are annotations. Of a `DistributedTensor` of a group the functions here move its data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Optional, Sequence, Union


@dataclass(frozen=True)
class TensorReplicate:
    """Every device has the whole dimension."""


@dataclass(frozen=True)
class TensorShard:
    """The dimension is divided among the devices of a mesh axis."""

    mesh_axis: int = 0


DistElem = Union[TensorReplicate, TensorShard]


class LayoutIncompatibleError(TypeError):
    """Two layouts have no common one."""


LayoutCompatibilityError = LayoutIncompatibleError


@dataclass(frozen=True)
class MemLayout:
    """How a tensor lies in memory."""

    strides: Optional[tuple[int, ...]] = None
    order: Optional[tuple[int, ...]] = None
    swizzle: Optional[Any] = None
    pack: Optional[Any] = None

    def compose(self, other: MemLayout) -> MemLayout:
        """This layout with the fields that `other` sets."""
        fields = ("strides", "order", "swizzle", "pack")
        return replace(self, **{name: value for name in fields if (value := getattr(other, name)) is not None})

    def permute(self, order: Sequence[int]) -> MemLayout:
        """The strides in another order."""
        if self.strides is None:
            return self
        if sorted(order) != list(range(len(self.strides))):
            raise ValueError(f"{tuple(order)} is no permutation of {len(self.strides)} dimensions.")
        return replace(self, strides=tuple(self.strides[dimension] for dimension in order))

    @classmethod
    def row_major(cls, shape: Sequence[int]) -> MemLayout:
        """The last dimension is dense."""
        return cls(tuple(_strides(shape)), tuple(range(len(shape))))

    @classmethod
    def col_major(cls, shape: Sequence[int]) -> MemLayout:
        """The first dimension is dense."""
        strides = _strides(list(reversed(shape)))
        return cls(tuple(reversed(strides)), tuple(reversed(range(len(shape)))))


def _strides(shape: Sequence[int]) -> list[int]:
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return strides[::-1]


@dataclass(frozen=True)
class TensorLayout:
    """The distribution of each dimension, and the layout in memory."""

    dist: tuple[DistElem, ...]
    mem: Optional[MemLayout] = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dist", tuple(self.dist))

    @classmethod
    def default(cls, rank: int) -> TensorLayout:
        """Replicated."""
        return cls((TensorReplicate(),) * rank)

    @classmethod
    def sharded(cls, dim: int, rank: int, mesh_axis: int = 0) -> TensorLayout:
        """One dimension is divided."""
        _check_dimension(dim, rank)
        return cls(tuple(TensorShard(mesh_axis) if d == dim else TensorReplicate() for d in range(rank)))

    def is_replicated(self) -> bool:
        """Whether no dimension is divided."""
        return not self.sharded_dims()

    def sharded_dims(self) -> list[int]:
        """The dimensions that are divided."""
        return [number for number, element in enumerate(self.dist) if isinstance(element, TensorShard)]

    def _with(self, dim: int, element: DistElem) -> TensorLayout:
        _check_dimension(dim, len(self.dist))
        return replace(self, dist=self.dist[:dim] + (element,) + self.dist[dim + 1 :])


def _check_dimension(dim: int, rank: int) -> None:
    if not 0 <= dim < rank:
        raise ValueError(f"There is no dimension {dim} in a layout of {rank} dimensions.")


def _join(number: int, a: DistElem, b: DistElem) -> DistElem:
    if isinstance(a, TensorReplicate):
        return b
    if isinstance(b, TensorReplicate) or a == b:
        return a
    raise LayoutIncompatibleError(
        f"Dimension {number} is divided by mesh axis {a.mesh_axis} in one layout and by {b.mesh_axis} in the other. "
        "Use relayout."
    )


def tensor_layout_join(a: TensorLayout, b: TensorLayout) -> TensorLayout:
    """The layout that both become."""
    if len(a.dist) != len(b.dist):
        raise LayoutIncompatibleError(f"The layouts have {len(a.dist)} and {len(b.dist)} dimensions.")
    dist = tuple(_join(number, *pair) for number, pair in enumerate(zip(a.dist, b.dist)))
    return TensorLayout(dist, a.mem if a.mem is not None else b.mem)


def relayout(tensor: Any, to: TensorLayout) -> Any:
    """The tensor with another layout."""
    if len(to.dist) != len(tensor.shape):
        raise LayoutIncompatibleError(f"The layout has {len(to.dist)} dimensions, and the tensor {len(tensor.shape)}.")
    return tensor.with_layout(to)


def _check_op(op: str) -> None:
    if op not in ("sum", "max", "min", "mean", "prod"):
        raise ValueError(f"{op!r} is no reduction. Use sum, max, min, mean or prod.")


def allreduce(tensor: Any, mesh_axis: int, op: str = "sum") -> Any:
    """What is divided by a mesh axis is replicated; the partial results of a `DistributedTensor` are reduced."""
    _check_op(op)
    if hasattr(tensor, "all_reduce"):
        return tensor.all_reduce(mesh_axis, op)
    layout = tensor.layout
    dist = tuple(TensorReplicate() if e == TensorShard(mesh_axis) else e for e in layout.dist)
    return tensor.with_layout(replace(layout, dist=dist))


def allgather(tensor: Any, dim: int, mesh_axis: int) -> Any:
    """A dimension that is divided by a mesh axis is replicated."""
    _check_dimension(dim, len(tensor.layout.dist))
    found = tensor.layout.dist[dim]
    if isinstance(found, TensorShard) and found.mesh_axis != mesh_axis:
        raise LayoutIncompatibleError(f"Dimension {dim} is divided by mesh axis {found.mesh_axis}, not by {mesh_axis}.")
    return tensor.with_layout(tensor.layout._with(dim, TensorReplicate()))


def reduce_scatter(tensor: Any, dim: int, mesh_axis: int, op: str = "sum") -> Any:
    """A dimension becomes divided by a mesh axis; the partial results of a `DistributedTensor` are reduced."""
    _check_op(op)
    if hasattr(tensor, "reduce_scatter"):
        return tensor.reduce_scatter(dim, mesh_axis, op)
    return tensor.with_layout(tensor.layout._with(dim, TensorShard(mesh_axis)))

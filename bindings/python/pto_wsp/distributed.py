"""Tensors that are distributed over the ranks of a group: what `relayout` and the collectives of layouts do to them moves data.

    group = Group.local((2, 4))
    x = distribute(group, array, TensorLayout((TensorShard(0), TensorReplicate())))
    y = relayout(x, TensorLayout((TensorReplicate(), TensorShard(1))))
    y.numpy()

Data goes from rank to rank by collectives on the devices. Within a rank NumPy puts it in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from pto_runtime import Group

from .layouts import LayoutIncompatibleError, TensorLayout, TensorReplicate, TensorShard


@dataclass(frozen=True)
class DistributedTensor:
    """A tensor of which every rank has a part, or the whole. `shards` are the arrays of the ranks."""

    group: Group
    shape: tuple[int, ...]
    layout: TensorLayout
    shards: tuple[Any, ...]
    #: The mesh axes along which the tensor is the reduction of the shards, which has not been done, and how it is done.
    partial: Mapping[int, str] = field(default_factory=dict)

    def with_layout(self, layout: TensorLayout) -> DistributedTensor:
        """The same tensor, distributed in another way."""
        _check(self.group, self.shape, layout)
        if self.partial:
            raise LayoutIncompatibleError("The shards are partial results. Use allreduce or reduce_scatter first.")
        shards, dist = list(self.shards), list(self.layout.dist)
        for dim, wanted in enumerate(layout.dist):
            found = dist[dim]
            if found == wanted or not isinstance(wanted, TensorShard):
                continue
            if wanted in dist and isinstance(found, TensorReplicate):
                # A mesh axis divides another dimension from here on.
                before = dist.index(wanted)
                shards = _exchange(self.group, shards, before, dim, wanted.mesh_axis)
                dist[before], dist[dim] = TensorReplicate(), wanted
        for dim, wanted in enumerate(layout.dist):
            if dist[dim] != wanted and isinstance(dist[dim], TensorShard):
                shards = _gather(self.group, shards, dim, dist[dim].mesh_axis)
                dist[dim] = TensorReplicate()
        for dim, wanted in enumerate(layout.dist):
            if dist[dim] != wanted:
                shards = [
                    _cut(shard, dim, self.group.coordinates(rank)[wanted.mesh_axis], self.group.mesh[wanted.mesh_axis])
                    for rank, shard in enumerate(shards)
                ]
        return replace(self, layout=layout, shards=tuple(shards))

    def all_reduce(self, mesh_axis: int, op: str = "sum") -> DistributedTensor:
        """Every rank of the axis gets the reduction of the partial results."""
        partial = self._without_partial(mesh_axis, op)
        shards = self.group.all_reduce(self.shards, op, axis=mesh_axis)
        return replace(self, shards=tuple(shards), partial=partial)

    def reduce_scatter(self, dim: int, mesh_axis: int, op: str = "sum") -> DistributedTensor:
        """As `all_reduce`, and the axis divides a dimension."""
        partial = self._without_partial(mesh_axis, op)
        if self.layout.dist[dim] != TensorReplicate():
            raise LayoutIncompatibleError(f"Dimension {dim} is divided already.")
        layout = self.layout._with(dim, TensorShard(mesh_axis))
        _check(self.group, self.shape, layout)
        moved = [_front(shard, dim) for shard in self.shards]
        parts = self.group.reduce_scatter(moved, op, axis=mesh_axis)
        return replace(self, layout=layout, shards=tuple(_back(part, dim) for part in parts), partial=partial)

    def numpy(self) -> Any:
        """The whole tensor, put together on the host."""
        whole = self.with_layout(TensorLayout((TensorReplicate(),) * len(self.shape)))
        return whole.shards[0].copy()

    def _without_partial(self, mesh_axis: int, op: str) -> dict[int, str]:
        found = self.partial.get(mesh_axis)
        if found is None:
            raise LayoutIncompatibleError(
                f"The shards are no partial results along mesh axis {mesh_axis}. Use allgather or relayout to put parts together."
            )
        if found != op:
            raise LayoutIncompatibleError(f"The shards are parts of a {found} along mesh axis {mesh_axis}, not of a {op}.")
        return {axis: how for axis, how in self.partial.items() if axis != mesh_axis}


def distribute(group: Group, array: Any, layout: TensorLayout) -> DistributedTensor:
    """The parts of an array of the host, each at its rank."""
    import numpy as np

    array = np.asarray(array)
    _check(group, array.shape, layout)
    shards = []
    for rank in range(group.size):
        part, coordinates = array, group.coordinates(rank)
        for dim, element in enumerate(layout.dist):
            if isinstance(element, TensorShard):
                part = _cut(part, dim, coordinates[element.mesh_axis], group.mesh[element.mesh_axis])
        shards.append(part.copy())
    return DistributedTensor(group, array.shape, layout, tuple(shards))


def partial_results(group: Group, arrays: Sequence[Any], mesh_axis: int, op: str = "sum") -> DistributedTensor:
    """The reduction of the arrays of the ranks along an axis, which `allreduce` or `reduce_scatter` does."""
    import numpy as np

    shards = tuple(np.asarray(array) for array in arrays)
    if len(shards) != group.size or any(shard.shape != shards[0].shape for shard in shards):
        raise ValueError(f"Give one array of the same shape for each of the {group.size} ranks.")
    if not 0 <= mesh_axis < len(group.mesh):
        raise ValueError(f"There is no axis {mesh_axis} in a mesh of {len(group.mesh)} axes.")
    layout = TensorLayout.default(shards[0].ndim)
    return DistributedTensor(group, shards[0].shape, layout, shards, {mesh_axis: op})


def _check(group: Group, shape: Sequence[int], layout: TensorLayout) -> None:
    if len(layout.dist) != len(shape):
        raise LayoutIncompatibleError(f"The layout has {len(layout.dist)} dimensions, and the tensor {len(shape)}.")
    axes = [element.mesh_axis for element in layout.dist if isinstance(element, TensorShard)]
    for axis in axes:
        if not 0 <= axis < len(group.mesh):
            raise LayoutIncompatibleError(f"The layout names mesh axis {axis}, and the group has {len(group.mesh)} axes.")
        if axes.count(axis) > 1:
            raise LayoutIncompatibleError(f"Mesh axis {axis} divides two dimensions.")
    for dim, element in enumerate(layout.dist):
        if isinstance(element, TensorShard) and shape[dim] % group.mesh[element.mesh_axis]:
            raise LayoutIncompatibleError(
                f"Dimension {dim} has {shape[dim]} elements, which {group.mesh[element.mesh_axis]} ranks cannot share evenly."
            )


def _gather(group: Group, shards: list[Any], dim: int, axis: int) -> list[Any]:
    gathered = group.all_gather([_front(shard, dim) for shard in shards], axis=axis)
    return [_back(shard, dim) for shard in gathered]


def _exchange(group: Group, shards: list[Any], before: int, after: int, axis: int) -> list[Any]:
    """The axis divided one dimension, and divides another one from here on."""
    import numpy as np

    extent = group.mesh[axis]
    exchanged = group.all_to_all([_front(shard, after) for shard in shards], axis=axis)
    # Of each part: the dimension that becomes whole is that of the rank that it has come from.
    joined = []
    for shard in exchanged:
        parts = [_back(part, after) for part in np.split(shard, extent)]
        joined.append(np.concatenate(parts, axis=before))
    return joined


def _front(array: Any, dim: int) -> Any:
    """The dimension in front, in memory, too."""
    import numpy as np

    return np.ascontiguousarray(np.moveaxis(array, dim, 0))


def _back(array: Any, dim: int) -> Any:
    import numpy as np

    return np.moveaxis(array, 0, dim)


def _cut(array: Any, dim: int, at: int, extent: int) -> Any:
    length = array.shape[dim] // extent
    index = (slice(None),) * dim + (slice(at * length, (at + 1) * length),)
    return array[index]

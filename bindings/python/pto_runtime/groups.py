"""Groups: devices with ranks, whose collectives work on one NumPy array for each rank."""

from __future__ import annotations

from math import prod
from typing import Any, Mapping, Optional, Sequence, Union

from ._native import Group as _Devices

Mesh = Union[int, Sequence[int]]

_ELEMENTS = {
    "float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16",
    "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
}  # fmt: skip
_REDUCTIONS = ("sum", "max", "min", "prod", "mean")


class Group:
    """Devices with ranks: `Group.local(8)` of this process, `Group.virtual(8)` in virtual time with a network.

    A mesh such as `(2, 4)` gives the ranks coordinates, the last axis first; collectives take an axis of it, or all ranks.
    Arrays are given and returned as a list with one for each rank, and are copied to the devices and back.
    """

    def __init__(self, devices: Any, mesh: Mesh) -> None:
        self._devices = devices
        self.mesh = _extents(mesh)
        #: What the last collective took on its devices.
        self.seconds = 0.0

    @classmethod
    def local(cls, mesh: Mesh, *, aic: int = 1, aiv: int = 2, gm_bytes: int = 1 << 30) -> Group:
        """Devices of this process."""
        return cls(_Devices.local(prod(_extents(mesh)), aic=aic, aiv=aiv, gm_bytes=gm_bytes), mesh)

    @classmethod
    def virtual(
        cls, mesh: Mesh, *, network: str = "a3-pod", seed: int = 0, aic: int = 1, aiv: int = 2, gm_bytes: int = 1 << 30
    ) -> Group:
        """Devices in virtual time: the same seed gives the same run, with the same time."""
        size = prod(_extents(mesh))
        devices = _Devices.virtual(size, network=network, seed=seed, aic=aic, aiv=aiv, gm_bytes=gm_bytes)
        return cls(devices, mesh)

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._devices.size

    def workload(self, text: str, arrays: Sequence[Mapping[str, Any]], **numbers: int) -> None:
        """Runs a workload on all ranks, whose pipeline may have processes on each (`process p on 1 ..`).

        `arrays` has a dictionary for each rank: its arrays, by the names of the tensors, which are changed in place. `numbers` are
        sizes and symbols."""
        self.seconds = self._devices.workload(text, [dict(one) for one in arrays], numbers)

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Where a rank is in the mesh."""
        if not 0 <= rank < self.size:
            raise ValueError(f"There is no rank {rank}; ranks are below {self.size}.")
        found = []
        for extent in reversed(self.mesh):
            rank, at = divmod(rank, extent)
            found.append(at)
        return tuple(reversed(found))

    def all_reduce(self, arrays: Sequence[Any], op: str = "sum", *, axis: Optional[int] = None) -> list[Any]:
        """Every rank gets the reduction of the arrays of all ranks of its axis: sum, max, min, prod or mean."""
        return self._reduced("all_reduce", arrays, op, axis)

    def reduce_scatter(self, arrays: Sequence[Any], op: str = "sum", *, axis: Optional[int] = None) -> list[Any]:
        """Each rank gets its part, along the first dimension, of the reduction."""
        arrays, extent = self._checked(arrays), self._axis(axis)[1]
        _divided(arrays[0], extent)
        reduced = self._reduced("reduce_scatter", arrays, op, axis)
        parts = (_part(array, self._place(rank, axis), extent) for rank, array in enumerate(reduced))
        return [part.copy() for part in parts]

    def all_gather(self, arrays: Sequence[Any], *, axis: Optional[int] = None) -> list[Any]:
        """Every rank gets the arrays of all, one after the other along the first dimension."""
        import numpy as np

        arrays, extent = self._checked(arrays), self._axis(axis)[1]
        if arrays[0].ndim == 0:
            raise ValueError("An array without dimensions has none along which arrays are put together.")
        whole = []
        for rank, array in enumerate(arrays):
            gathered = np.zeros((extent * array.shape[0], *array.shape[1:]), array.dtype)
            _part(gathered, self._place(rank, axis), extent)[...] = array
            whole.append(gathered)
        return self._collective("all_gather", whole, axis)

    def all_to_all(self, arrays: Sequence[Any], *, axis: Optional[int] = None) -> list[Any]:
        """Part `i` of an array, along the first dimension, becomes the part at rank `i` with the number of its own rank."""
        arrays = self._checked(arrays)
        _divided(arrays[0], self._axis(axis)[1])
        return self._collective("all_to_all", arrays, axis)

    def broadcast(self, arrays: Sequence[Any], root: int = 0, *, axis: Optional[int] = None) -> list[Any]:
        """Every rank gets the array of the rank with the index `root` in its axis."""
        extent = self._axis(axis)[1]
        if not 0 <= root < extent:
            raise ValueError(f"There is no rank {root} among {extent} ranks.")
        return self._collective("broadcast", self._checked(arrays), axis, root=root)

    def close(self) -> None:
        """Closes the devices."""
        self._devices.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _axis(self, axis: Optional[int]) -> tuple[int, int]:
        """From one rank of an axis to the next, and how many there are."""
        if axis is None:
            return 1, self.size
        if not 0 <= axis < len(self.mesh):
            raise ValueError(f"There is no axis {axis} in a mesh of {len(self.mesh)} axes.")
        return prod(self.mesh[axis + 1 :]), self.mesh[axis]

    def _place(self, rank: int, axis: Optional[int]) -> int:
        return rank if axis is None else self.coordinates(rank)[axis]

    def _checked(self, arrays: Sequence[Any]) -> list[Any]:
        import numpy as np

        if len(arrays) != self.size:
            raise ValueError(f"{len(arrays)} arrays for {self.size} ranks: give one for each rank.")
        checked = [np.ascontiguousarray(array) if np.ndim(array) else np.array(array) for array in arrays]
        first = checked[0]
        for rank, array in enumerate(checked):
            if array.shape != first.shape or array.dtype != first.dtype:
                raise ValueError(
                    f"Rank {rank} has {array.dtype} of shape {array.shape}, and rank 0 {first.dtype} of shape {first.shape}."
                )
        if first.dtype.name not in _ELEMENTS or not first.dtype.isnative:
            raise TypeError(f"Arrays of {first.dtype} cannot be exchanged. Use one of {', '.join(_ELEMENTS)}.")
        return checked

    def _reduced(self, kind: str, arrays: Sequence[Any], op: str, axis: Optional[int]) -> list[Any]:
        import numpy as np

        if op not in _REDUCTIONS:
            raise ValueError(f"{op!r} is no reduction. Use one of {', '.join(_REDUCTIONS)}.")
        arrays = self._checked(arrays)
        if op == "mean" and not np.issubdtype(arrays[0].dtype, np.floating):
            raise TypeError(f"The mean of {arrays[0].dtype} is no {arrays[0].dtype}. Convert the arrays to floating point.")
        if op == "mean":
            return self._mean(kind, arrays, axis)
        return self._collective(kind, arrays, axis, reduction=op)

    def _mean(self, kind: str, arrays: list[Any], axis: Optional[int]) -> list[Any]:
        import numpy as np

        extent = self._axis(axis)[1]
        means = [(array / extent).astype(array.dtype) for array in self._collective(kind, arrays, axis, reduction="sum")]
        if all(np.isfinite(array).all() for array in means):
            return means
        # A sum may be too large where the mean is not. What was divided by a power of two lost nothing that matters next to such a sum.
        scale = arrays[0].dtype.type(1 << (extent - 1).bit_length())
        found = self._collective(kind, [array / scale for array in arrays], axis, reduction="sum")
        largest = np.finfo(scale.dtype).max
        whole = []
        for mean, array in zip(means, found):
            # Roundings of the sum may lead beyond the largest number; a term that is infinite makes the mean so.
            limit = np.where(np.isfinite(array), largest / scale, np.inf).astype(array.dtype)
            scaled = np.clip((array / extent).astype(array.dtype), -limit, limit) * scale
            whole.append(np.where(np.isfinite(mean), mean, scaled))
        return whole

    def _collective(self, kind: str, arrays: list[Any], axis: Optional[int], **how: Any) -> list[Any]:
        import numpy as np

        stride, extent = self._axis(axis)
        results = [np.empty_like(array) for array in arrays]
        element = _ELEMENTS[arrays[0].dtype.name]
        self.seconds = self._devices.collective(
            kind, arrays, results, element=element, stride=stride, extent=extent, **how
        )
        return results

    def __repr__(self) -> str:
        return f"<Group of {' x '.join(map(str, self.mesh))} ranks>"


def _extents(mesh: Mesh) -> tuple[int, ...]:
    extents = (mesh,) if isinstance(mesh, int) else tuple(mesh)
    if not extents or any(extent < 1 for extent in extents):
        raise ValueError(f"A mesh has at least one axis, and at least one rank along each; {mesh} has not.")
    return extents


def _divided(array: Any, extent: int) -> None:
    if array.ndim == 0 or array.shape[0] % extent:
        raise ValueError(f"{extent} ranks cannot divide the first dimension of shape {array.shape} evenly.")


def _part(array: Any, index: int, extent: int) -> Any:
    length = array.shape[0] // extent
    return array[index * length : (index + 1) * length]

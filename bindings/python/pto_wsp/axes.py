"""Axes: what a loop goes over."""

from __future__ import annotations

from typing import Any, Sequence, Union


class Dense:
    """`Dense[8]()`: 0 to 7. The size is part of the program."""

    size: int = 0
    _sizes: dict[int, type] = {}

    def __class_getitem__(cls, size: int) -> type:
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise TypeError(f"Dense[{size!r}]: the size of an axis is an integer that is not negative.")
        if size not in cls._sizes:
            cls._sizes[size] = type(f"Dense[{size}]", (Dense,), {"size": size})
        return cls._sizes[size]

    def __repr__(self) -> str:
        return f"Dense[{self.size}]()"


class DenseDyn:
    """`DenseDyn(n)`: a size that `Program.set_axis_sizes` gives by the name of the loop; `n` where it gives none.

    Python does not say what the variable of a loop is called. The loops of `P(..)` are called b, h, s, d, i, j, k, l, m, n in the order in which the
    function opens them, or as `P(.., names=[..])` says; that of `P.seq` is called i, and that of `P.sel` e, or as `name=` says.
    """

    def __init__(self, size: int) -> None:
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise TypeError(f"DenseDyn({size!r}): the size of an axis is an integer that is not negative.")
        self.size = size

    def __repr__(self) -> str:
        return f"DenseDyn({self.size})"


class Ragged:
    """`outer_size` rows of different lengths: a loop goes over all their elements."""

    def __init__(self, outer_size: int, lengths: Sequence[int]) -> None:
        self.outer_size = outer_size
        self.lengths = lengths
        if len(lengths) < outer_size:
            raise ValueError(f"Ragged: {outer_size} rows need as many lengths, and there are {len(lengths)}.")

    def length(self, row: int) -> int:
        """The length of a row."""
        return int(self.lengths[row])

    def total(self) -> int:
        """The elements of all rows."""
        return sum(int(length) for length in self.lengths[: self.outer_size])

    def __repr__(self) -> str:
        return f"Ragged({self.outer_size}, {list(self.lengths)!r})"


class Sparse:
    """A matrix in compressed rows: a loop goes over the columns of its elements, row by row."""

    def __init__(self, outer_size: int, indptr: Sequence[int], indices: Sequence[int]) -> None:
        self.outer_size = outer_size
        self.indptr = indptr
        self.indices = indices
        if len(indptr) < outer_size + 1:
            raise ValueError(f"Sparse: {outer_size} rows need {outer_size + 1} beginnings, and there are {len(indptr)}.")

    def nnz(self) -> int:
        """The elements of all rows."""
        return int(self.indptr[self.outer_size])

    def row_nnz(self, row: int) -> int:
        """The elements of a row."""
        return int(self.indptr[row + 1]) - int(self.indptr[row])

    def __getitem__(self, row: Any) -> Any:
        """The columns of a row; of a row that is an expression, what `P.sel` goes over."""
        if isinstance(row, int):
            return [int(index) for index in self.indices[int(self.indptr[row]) : int(self.indptr[row + 1])]]
        return SparseRow(self, row)

    def __repr__(self) -> str:
        return f"Sparse({self.outer_size}, {list(self.indptr)!r}, {list(self.indices)!r})"


class SparseRow:
    """One row of a sparse axis, which is known when the loop is reached."""

    def __init__(self, sparse: Sparse, row: Any) -> None:
        self.sparse = sparse
        self.row = row


AnyAxis = Union[Dense, DenseDyn, Ragged, Sparse]


def as_axis(axis: Any) -> AnyAxis:
    """An axis, or an integer as one."""
    if isinstance(axis, (Dense, DenseDyn, Ragged, Sparse)):
        return axis
    if isinstance(axis, type) and issubclass(axis, Dense):
        return axis()
    if isinstance(axis, int) and not isinstance(axis, bool):
        return Dense.__class_getitem__(axis)()
    raise TypeError(f"{type(axis).__name__} is no axis. Use Dense[n](), DenseDyn(n), Ragged(..), Sparse(..) or an integer.")

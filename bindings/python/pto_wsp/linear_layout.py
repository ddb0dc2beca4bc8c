"""Layouts as linear maps of bits: a matrix over the field of two elements takes the bits of an input (thread, register, ..) to
those of an output (element, address, ..)."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from .layouts import MemLayout, TensorLayout, TensorReplicate

Row = tuple[int, ...]
Matrix = list[Row]


def f2_dot(a: Sequence[int], b: Sequence[int]) -> int:
    """The sum of the products, modulo 2."""
    if len(a) != len(b):
        raise ValueError(f"Vectors of {len(a)} and {len(b)} bits have no product.")
    return sum(x & y for x, y in zip(a, b)) & 1


def f2_matmul(matrix: Sequence[Row], vector: Sequence[int]) -> Row:
    """A matrix times a vector."""
    return tuple(f2_dot(row, vector) for row in matrix)


def f2_transpose(matrix: Sequence[Row]) -> Matrix:
    """Columns as rows."""
    return [tuple(column) for column in zip(*matrix)]


def f2_matmul_mat(a: Sequence[Row], b: Sequence[Row]) -> Matrix:
    """A matrix times a matrix."""
    columns = f2_transpose(b)
    return [tuple(f2_dot(row, column) for column in columns) for row in a]


def _reduced(matrix: Sequence[Row]) -> tuple[list[list[int]], list[int]]:
    """The reduced row echelon form, and the columns of its pivots."""
    rows = [list(row) for row in matrix]
    width = len(rows[0]) if rows else 0
    pivots: list[int] = []
    for column in range(width):
        done = len(pivots)
        found = next((number for number in range(done, len(rows)) if rows[number][column]), None)
        if found is None:
            continue
        rows[done], rows[found] = rows[found], rows[done]
        for number, row in enumerate(rows):
            if number != done and row[column]:
                rows[number] = [x ^ y for x, y in zip(row, rows[done])]
        pivots.append(column)
    return rows, pivots


def f2_rank(matrix: Sequence[Row]) -> int:
    """How many rows are independent."""
    return len(_reduced(matrix)[1])


def f2_kernel(matrix: Sequence[Row]) -> list[Row]:
    """A basis of the vectors that become zero."""
    rows, pivots = _reduced(matrix)
    width = len(rows[0]) if rows else 0
    basis = []
    for free in (column for column in range(width) if column not in pivots):
        vector = [0] * width
        vector[free] = 1
        for row, pivot in zip(rows, pivots):
            vector[pivot] = row[free]
        basis.append(tuple(vector))
    return basis


def _bits(size: int, what: str) -> int:
    if not isinstance(size, int) or size < 1 or size & (size - 1):
        raise ValueError(f"{what} is {size!r}, and must be a power of two.")
    return size.bit_length() - 1


def _unit(bit_index: int, width: int) -> Row:
    return tuple(int(column == bit_index) for column in range(width))


class LinearLayout:
    """A linear map. Rows of the matrix are bits of the output; bit 0 and the first dimension come first."""

    def __init__(
        self,
        matrix: Sequence[Sequence[int]],
        in_dims: Sequence[str],
        out_dims: Sequence[str],
        in_bits: Sequence[int],
        out_bits: Sequence[int],
    ) -> None:
        self.matrix: Matrix = [tuple(int(bit) for bit in row) for row in matrix]
        self.in_dims, self.out_dims = list(in_dims), list(out_dims)
        self.in_bits, self.out_bits = list(in_bits), list(out_bits)
        if len(self.in_dims) != len(self.in_bits) or len(self.out_dims) != len(self.out_bits):
            raise ValueError("Each dimension needs its number of bits.")
        if len(self.matrix) != self.total_out_bits:
            raise ValueError(f"The matrix has {len(self.matrix)} rows, and the output {self.total_out_bits} bits.")
        for row in self.matrix:
            if len(row) != self.total_in_bits:
                raise ValueError(f"A row of the matrix has {len(row)} bits, and the input {self.total_in_bits}.")
            if any(bit not in (0, 1) for bit in row):
                raise ValueError("The matrix has an element that is neither 0 nor 1.")

    @property
    def total_in_bits(self) -> int:
        """The bits of all inputs."""
        return sum(self.in_bits)

    @property
    def total_out_bits(self) -> int:
        """The bits of all outputs."""
        return sum(self.out_bits)

    def apply(self, bits: Sequence[int]) -> Row:
        """The bits of the output for those of the input."""
        return f2_matmul(self.matrix, tuple(bits))

    def apply_index(self, index: int) -> int:
        """The output for an input, both packed: the first dimension in the lowest bits."""
        if not 0 <= index < 1 << self.total_in_bits:
            raise ValueError(f"The index {index} does not fit {self.total_in_bits} bits.")
        bits = tuple(index >> bit_index & 1 for bit_index in range(self.total_in_bits))
        return sum(bit << bit_index for bit_index, bit in enumerate(self.apply(bits)))

    def compose(self, other: LinearLayout) -> LinearLayout:
        """`other` first, then this one."""
        if other.total_out_bits != self.total_in_bits:
            raise ValueError(f"The first layout gives {other.total_out_bits} bits, and the second takes {self.total_in_bits}.")
        matrix = f2_matmul_mat(self.matrix, other.matrix)
        return LinearLayout(matrix, other.in_dims, self.out_dims, other.in_bits, self.out_bits)

    def transpose_dims(self, order: Sequence[int]) -> LinearLayout:
        """The outputs in another order."""
        if sorted(order) != list(range(len(self.out_dims))):
            raise ValueError(f"{tuple(order)} is no permutation of {len(self.out_dims)} dimensions.")
        rows = self._rows()
        matrix = [row for dimension in order for row in rows[dimension]]
        dims = [self.out_dims[dimension] for dimension in order]
        return LinearLayout(matrix, self.in_dims, dims, self.in_bits, [self.out_bits[d] for d in order])

    def _rows(self) -> list[Matrix]:
        """The rows of each output."""
        rows, start = [], 0
        for bits in self.out_bits:
            rows.append(self.matrix[start : start + bits])
            start += bits
        return rows

    def rank(self) -> int:
        """How many bits of the output are independent."""
        return f2_rank(self.matrix)

    def kernel(self) -> list[Row]:
        """A basis of the inputs that become zero: which bits hold copies."""
        return f2_kernel(self.matrix)

    def is_injective(self) -> bool:
        """Whether no two inputs meet."""
        return self.rank() == self.total_in_bits

    def is_surjective(self) -> bool:
        """Whether every output is reached."""
        return self.rank() == self.total_out_bits

    @classmethod
    def identity(cls, bits: int, dim: str) -> LinearLayout:
        """Every element stays."""
        return cls([_unit(bit_index, bits) for bit_index in range(bits)], [dim], [dim], [bits], [bits])

    @classmethod
    def blocked(cls, total_elements: int, num_threads: int, block_size: int) -> LinearLayout:
        """Thread t has the elements from t * block_size on."""
        threads, local = _bits(num_threads, "num_threads"), _bits(block_size, "block_size")
        return cls._threads(total_elements, (threads, local), local_first=True)

    @classmethod
    def strided(cls, total_elements: int, num_threads: int) -> LinearLayout:
        """Thread t has the elements t, t + num_threads, .."""
        threads, total = _bits(num_threads, "num_threads"), _bits(total_elements, "total_elements")
        if total < threads:
            raise ValueError(f"{total_elements} elements are too few for {num_threads} threads.")
        return cls._threads(total_elements, (threads, total - threads), local_first=False)

    @classmethod
    def _threads(cls, total_elements: int, bits: tuple[int, int], *, local_first: bool) -> LinearLayout:
        threads, local = bits
        total = _bits(total_elements, "total_elements")
        if threads + local != total:
            raise ValueError(f"{1 << threads} threads with {1 << local} elements each are not {total_elements} elements.")
        of_local = [_unit(threads + bit_index, total) for bit_index in range(local)]
        of_threads = [_unit(bit_index, total) for bit_index in range(threads)]
        matrix = of_local + of_threads if local_first else of_threads + of_local
        return cls(matrix, ["thread", "local"], ["element"], [threads, local], [total])

    @classmethod
    def from_strides(cls, shape: Sequence[int], strides: Sequence[int]) -> LinearLayout:
        """The address of each element. Extents and strides are powers of two."""
        if len(shape) != len(strides):
            raise ValueError(f"{len(shape)} dimensions need as many strides, not {len(strides)}.")
        in_bits = [_bits(extent, "an extent") for extent in shape]
        firsts = [_bits(stride, "a stride") for stride in strides]
        width = sum(in_bits)
        out = max([width] + [first + bits for first, bits in zip(firsts, in_bits) if bits])
        rows = [[0] * width for _ in range(out)]
        column = 0
        for first, bits in zip(firsts, in_bits):
            for bit_index in range(bits):
                rows[first + bit_index][column] = 1
                column += 1
        dims = [f"dim{number}" for number in range(len(in_bits))]
        return cls(rows, dims, ["linear"], in_bits, [out])

    @classmethod
    def row_major(cls, shape: Sequence[int]) -> LinearLayout:
        """The last dimension is dense."""
        return cls.from_strides(shape, MemLayout.row_major(shape).strides or ())

    @classmethod
    def col_major(cls, shape: Sequence[int]) -> LinearLayout:
        """The first dimension is dense."""
        return cls.from_strides(shape, MemLayout.col_major(shape).strides or ())

    @staticmethod
    def compute_swizzle(layout: LinearLayout, bank_bits: int, vector_bits: int) -> LinearLayout:
        """The layout with the bits of the bank mixed with higher ones, so that fewer threads meet at a bank.

        Bits of an output below `vector_bits` stay together. Each bank bit above them is added to one above the banks, as far as
        there are any; else bits below it are added to it. Nothing is lost: the map stays as injective as it was."""
        matrix = list(layout.matrix)
        total = len(matrix)
        low = min(vector_bits, max(total - 1, 0))
        high = min(low + bank_bits, total)
        changed = False
        for bit_index in range(low, high):
            source = bit_index + bank_bits
            if source < total:
                matrix[bit_index] = _added(matrix[bit_index], layout.matrix[source])
                changed = True
        if not changed and total > 1:
            # All bits are bank bits: the highest one takes the lowest.
            matrix[-1] = _added(matrix[-1], layout.matrix[0])
        return LinearLayout(matrix, layout.in_dims, layout.out_dims, layout.in_bits, layout.out_bits)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, LinearLayout) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        of = lambda dims, bits: ", ".join(f"{dim}:{count}" for dim, count in zip(dims, bits))  # noqa: E731
        return f"LinearLayout([{of(self.in_dims, self.in_bits)}] -> [{of(self.out_dims, self.out_bits)}], rank={self.rank()})"


def _added(a: Row, b: Row) -> Row:
    return tuple(x ^ y for x, y in zip(a, b))


def propagate_transpose(layout: LinearLayout, order: Sequence[int]) -> LinearLayout:
    """The layout of a transposed tensor."""
    return layout.transpose_dims(order)


def propagate_reshape(layout: LinearLayout, old: Sequence[int], new: Sequence[int]) -> LinearLayout:
    """The layout of a reshaped tensor: the same bits, divided otherwise."""
    from math import prod

    if prod(old) != prod(new):
        raise ValueError(f"Cannot reshape {tuple(old)} to {tuple(new)}: {prod(old)} and {prod(new)} elements.")
    # The last dimension of a shape varies fastest: its bits are the lowest.
    bits = [_bits(extent, "an extent") for extent in reversed(new)]
    if sum(bits) != layout.total_out_bits:
        raise ValueError(f"Cannot reshape: the layout has {layout.total_out_bits} bits, and {tuple(new)} {sum(bits)}.")
    dims = [f"dim{number}" for number in reversed(range(len(bits)))]
    return LinearLayout(layout.matrix, layout.in_dims, dims, layout.in_bits, bits)


def propagate_broadcast(layout: LinearLayout, dims: Sequence[int]) -> LinearLayout:
    """The layout of a tensor with new dimensions, in which nothing varies."""
    names = [f"broadcast{dim}" for dim in dims]
    return LinearLayout(
        layout.matrix, layout.in_dims, layout.out_dims + names, layout.in_bits, layout.out_bits + [0] * len(names)
    )


def to_tensor_layout(layout: LinearLayout) -> TensorLayout:
    """A layout of tensors: replicated, with the strides that the map has where it is one of strides."""
    dist = (TensorReplicate(),) * len(layout.out_dims)
    return TensorLayout(dist, MemLayout(strides=_strides_of(layout), swizzle=_swizzle_of(layout)))


def _columns(layout: LinearLayout) -> list[int]:
    """What each bit of the input adds to the packed output."""
    columns = f2_transpose(layout.matrix)
    return [sum(bit << bit_index for bit_index, bit in enumerate(column)) for column in columns]


def _strides_of(layout: LinearLayout) -> Optional[tuple[int, ...]]:
    columns, strides, at = _columns(layout), [], 0
    for bits in layout.in_bits:
        own = columns[at : at + bits]
        if any(value != own[0] << bit_index or value == 0 for bit_index, value in enumerate(own)):
            return None
        strides.append(own[0] if own else 1)
        at += bits
    return tuple(strides)


def _swizzle_of(layout: LinearLayout) -> Optional[Matrix]:
    return None if _strides_of(layout) is not None else layout.matrix


def from_tensor_layout(layout: TensorLayout, shape: Sequence[int]) -> LinearLayout:
    """The map of a layout of tensors."""
    if layout.mem is not None and layout.mem.strides is not None:
        return LinearLayout.from_strides(shape, layout.mem.strides)
    return LinearLayout.row_major(shape)

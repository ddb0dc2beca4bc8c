"""`pto`: the operations of `@kernel` functions. Each is checked where it is called, and becomes an instruction of the tile
machine."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from .kernel_trace import KernelTrace, OpKind, Value, current
from .types import DType, Location

Number = Union[int, float]


def constant_of(trace: KernelTrace, value: Any, dtype: DType) -> Value:
    """A constant, converted as C does."""
    if isinstance(value, Value):
        return value
    if not isinstance(value, (int, float)) and not (hasattr(value, "item") and getattr(value, "shape", ()) == ()):
        raise TypeError(f"{type(value).__name__} is no operand. Use a tile, a scalar parameter or a number.")
    value = value.item() if hasattr(value, "item") else value
    if dtype.is_float:
        return trace.add(OpKind.CONSTANT, "constant", float(value), dtype.value)
    bits = int(value) & ((1 << 8 * dtype.nbytes) - 1)
    number = trace.builder.constant_bits(bits, dtype.value)
    found = Value(number, dtype, None, is_scalar=True)
    trace.ir.ops.append(_constant(found, int(value)))
    return found


def _constant(value: Value, number: int) -> Any:
    from .kernel_trace import Op
    from .source import user_line

    return Op(OpKind.CONSTANT, "constant", value, (number, value.dtype.value), user_line())


def _offset(offset: Any) -> tuple[int, int]:
    if offset is None:
        return (0, 0)
    if isinstance(offset, tuple) and len(offset) == 2 and all(isinstance(part, int) for part in offset):
        return offset
    raise TypeError(f"offset={offset!r}: an offset is a row and a column.")


def _tile(value: Any, what: str) -> Value:
    if isinstance(value, Value):
        return value
    raise TypeError(f"{what} needs a tile, not {type(value).__name__}.")


class _Pto:
    """The operations."""

    def load(self, src: Value, offset: Any = None, mask: Optional[Value] = None) -> Value:
        """The tile of a parameter as it is now, from an offset on; 0 where the mask is 0."""
        trace = current("pto.load")
        return trace.add(OpKind.LOAD, "load", _tile(src, "pto.load"), _offset(offset), mask=mask)

    def store(self, dst: Value, src: Any, offset: Any = None, mask: Optional[Value] = None) -> None:
        """Writes a tile to a parameter, from an offset on, where the mask is not 0; another element type is converted."""
        trace = current("pto.store")
        dst = _tile(dst, "pto.store")
        if not isinstance(src, Value) or src.is_scalar:
            scalar = constant_of(trace, src, dst.dtype)
            src = trace.add(OpKind.BROADCAST, "broadcast", scalar, dst.shape)
        trace.do(OpKind.STORE, "store", dst, src, _offset(offset), mask=mask)

    def constant(self, value: Number, dtype: DType = DType.F32) -> Value:
        """A scalar."""
        return constant_of(current("pto.constant"), value, dtype)

    def alloc(self, shape: Sequence[int], dtype: DType = DType.F16, location: Location = Location.UB) -> Value:
        """A tile of zeros."""
        return current("pto.alloc").add(OpKind.ZEROS, "zeros", dtype.value, tuple(shape))

    def iota_u32(self, n: int) -> Value:
        """A row 0, 1, .."""
        return current("pto.iota_u32").add(OpKind.IOTA, "iota", "u32", n)

    def cast(self, x: Value, dtype: DType) -> Value:
        """Another element type."""
        return current("pto.cast").add(OpKind.CONVERT, "convert", dtype.value, _tile(x, "pto.cast"))

    def where(self, mask: Value, a: Value, b: Value) -> Value:
        """`a` where the mask is not 0, else `b`."""
        return current("pto.where").add(OpKind.SELECT, "select", mask, a, b)

    def matmul(self, a: Value, b: Value, acc: Optional[Value] = None) -> Value:
        """A product, plus `acc`."""
        trace = current("pto.matmul")
        a, b = _tile(a, "pto.matmul"), _tile(b, "pto.matmul")
        if acc is not None:
            wanted = DType.F64 if a.dtype is DType.F64 else DType.F32
            if a.dtype.is_float and _tile(acc, "pto.matmul").dtype is not wanted:
                raise TypeError(f"pto.matmul: acc is {acc.dtype.value}, and the product is {wanted.value}. Cast it.")
        return trace.add(OpKind.MATMUL, "matmul", a, b, acc=acc)

    def slice_even(self, x: Value) -> Value:
        """The columns 0, 2, .."""
        return current("pto.slice_even").add(OpKind.SLICE, "slice_even", x, 0)

    def slice_odd(self, x: Value) -> Value:
        """The columns 1, 3, .."""
        return current("pto.slice_odd").add(OpKind.SLICE, "slice_odd", x, 1)

    def interleave(self, a: Value, b: Value) -> Value:
        """Columns of `a` and `b` in turn."""
        return current("pto.interleave").add(OpKind.INTERLEAVE, "interleave", a, b)

    def broadcast(self, x: Value, shape: Sequence[int]) -> Value:
        """A larger shape."""
        return current("pto.broadcast").add(OpKind.BROADCAST, "broadcast", x, tuple(shape))

    def tsort32(self, scores: Value, indices: Value) -> Value:
        """32 scores with their indices, in pairs: descending, the smaller index first where scores are equal."""
        trace = current("pto.tsort32")
        for value, dtype in ((scores, DType.F32), (indices, DType.U32)):
            if value.shape != (1, 32) or value.dtype is not dtype:
                raise ValueError(f"pto.tsort32 needs {dtype.value}[1, 32], not {shown(value)}.")
        return trace.add(OpKind.SORT32, "sort32", scores, indices)

    def extract_topk_indices(self, pairs: Value, k: int) -> Value:
        """The indices of the first `k` pairs."""
        trace = current("pto.extract_topk_indices")
        if pairs.shape != (1, 64) or pairs.dtype is not DType.F32:
            raise ValueError(f"pto.extract_topk_indices needs the pairs of tsort32, f32[1, 64], not {shown(pairs)}.")
        if not isinstance(k, int) or not 1 <= k <= 32:
            raise ValueError(f"pto.extract_topk_indices: k is {k!r}, and must be 1 to 32.")
        return trace.add(OpKind.TOPK, "topk", pairs, k)


def shown(value: Value) -> str:
    """A value in an error."""
    return value.dtype.value + (f"[{value.shape[0]}, {value.shape[1]}]" if value.shape else "")


def _unary(name: str, function: str) -> Any:
    def operation(self: _Pto, x: Value) -> Value:
        return current(f"pto.{name}").add(OpKind.UNARY, function, _tile(x, f"pto.{name}"))

    operation.__doc__ = f"`{name}` of each element."
    return operation


def _reduction(name: str) -> Any:
    def operation(self: _Pto, x: Value) -> Value:
        return current(f"pto.{name}").add(OpKind.REDUCE, name, _tile(x, f"pto.{name}"))

    operation.__doc__ = f"`{name}`: one element for each row or column."
    return operation


def _binary(name: str, function: str, by: Optional[str] = None) -> Any:
    def operation(self: _Pto, a: Any, b: Any) -> Value:
        trace = current(f"pto.{name}")
        if not isinstance(a, Value) and not isinstance(b, Value):
            raise TypeError(f"pto.{name} needs a tile or a scalar parameter among its operands.")
        dtype = (a if isinstance(a, Value) else b).dtype
        a, b = constant_of(trace, a, dtype), constant_of(trace, b, dtype)
        return trace.add(OpKind.BINARY, function, a, b, by=by)

    operation.__doc__ = f"`{name}` of pairs of elements."
    return operation


for _name in ("exp", "rsqrt", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "silu", "neg", "abs", "sin", "cos"):
    setattr(_Pto, _name, _unary(_name, _name))
for _name in ("rowsum", "rowmax", "rowmean", "colsum", "colmax"):
    setattr(_Pto, _name, _reduction(_name))
for _name, _function in {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "max", "min": "min",
    "maximum": "max", "minimum": "min",
}.items():  # fmt: skip
    setattr(_Pto, _name, _binary(_name, _function))
for _name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
    setattr(_Pto, _name, _binary(_name, _name))
for _name, _function, _by in (
    ("rowmul", "mul", "row"), ("rowadd", "add", "row"), ("colmul", "mul", "col"), ("coladd", "add", "col"),
):  # fmt: skip
    setattr(_Pto, _name, _binary(_name, _function, _by))

pto = _Pto()

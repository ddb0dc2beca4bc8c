"""`ptoisa`: the instructions of `@ptoisa_kernel` functions."""

from __future__ import annotations

from typing import Any

from .c_text import cycles_of
from .kernel_trace import OpKind, Value, current
from .pto_ops import constant_of, shown
from .types import DType


def _same(name: str, a: Value, b: Value) -> None:
    if not (isinstance(a, Value) and isinstance(b, Value)):
        raise ValueError(f"ptoisa.{name} needs two tiles.")
    if a.shape != b.shape or a.dtype is not b.dtype:
        raise ValueError(f"ptoisa.{name} needs equal types, not {shown(a)} and {shown(b)}.")


class _Ptoisa:
    """The instructions."""

    def tload(self, src: Value) -> Value:
        """The tile of a parameter as it is now."""
        return current("ptoisa.tload").add(OpKind.LOAD, "load", src, (0, 0))

    def tstore(self, dst: Value, src: Value) -> None:
        """Writes a tile to a parameter."""
        current("ptoisa.tstore").do(OpKind.STORE, "store", dst, src, (0, 0))

    def iota_u32(self, n: int) -> Value:
        """A row 0, 1, .."""
        return current("ptoisa.iota_u32").add(OpKind.IOTA, "iota", "u32", n)

    def TSORT32(self, scores: Value, indices: Value) -> Value:
        """32 scores with their indices, in pairs, descending."""
        trace = current("ptoisa.TSORT32")
        for value, dtype in ((scores, DType.F32), (indices, DType.U32)):
            if value.shape != (1, 32) or value.dtype is not dtype:
                raise ValueError(f"ptoisa.TSORT32 needs {dtype.value}[1, 32], not {shown(value)}.")
        return trace.add(OpKind.SORT32, "sort32", scores, indices)

    def store_topk_indices_i32(self, dst: Value, pairs: Value, k: int) -> None:
        """Writes the indices of the first `k` pairs. It costs nothing on the v9 clock."""
        trace = current("ptoisa.store_topk_indices_i32")
        if not isinstance(k, int) or not 1 <= k <= 32:
            raise ValueError(f"ptoisa.store_topk_indices_i32: k is {k!r}, and must be 1 to 32.")
        indices = trace.add(OpKind.TOPK, "topk", pairs, k)
        trace.do(OpKind.STORE, "store", dst, indices, (0, 0))
        # A store of `pto` costs its elements. Cycles wrap, so that this takes them back; the tile has to be whole.
        trace.do(OpKind.ADD_CYCLES, "add_cycles", constant_of(trace, -k, DType.U64))
        trace.whole.add(dst.name)

    def cpu_sim_add_cycles(self, x: Any) -> None:
        """Adds to the cycles that the kernel reports: an integer, a scalar parameter, or an expression of C as text."""
        trace = current("ptoisa.cpu_sim_add_cycles")
        if isinstance(x, str):
            x = cycles_of(trace, x)
        trace.do(OpKind.ADD_CYCLES, "add_cycles", constant_of(trace, x, DType.U64))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"ptoisa has no instruction {name}.")


def _pair(name: str, function: str) -> Any:
    def instruction(self: _Ptoisa, a: Value, b: Value) -> Value:
        trace = current(f"ptoisa.{name}")
        _same(name, a, b)
        return trace.add(OpKind.BINARY, function, a, b)

    instruction.__doc__ = f"`{function}` of pairs of elements."
    return instruction


def _with_scalar(name: str, function: str) -> Any:
    def instruction(self: _Ptoisa, a: Value, s: Any) -> Value:
        trace = current(f"ptoisa.{name}")
        scalar = constant_of(trace, s, a.dtype)
        if not scalar.is_scalar:
            raise ValueError(f"ptoisa.{name} needs a scalar, not {shown(scalar)}.")
        return trace.add(OpKind.BINARY, function, a, scalar)

    instruction.__doc__ = f"`{function}` of each element and a scalar."
    return instruction


def _expanded(name: str, function: str, by: str) -> Any:
    def instruction(self: _Ptoisa, a: Value, vector: Value) -> Value:
        trace = current(f"ptoisa.{name}")
        return trace.add(OpKind.BINARY, function, a, vector, by=by)

    instruction.__doc__ = f"`{function}` of each element and that of its {by}."
    return instruction


def _single(name: str, function: str) -> Any:
    def instruction(self: _Ptoisa, x: Value) -> Value:
        return current(f"ptoisa.{name}").add(OpKind.UNARY, function, x)

    instruction.__doc__ = f"`{function}` of each element."
    return instruction


for _function in ("add", "sub", "mul", "div", "max", "min"):
    _upper = _function.upper()
    setattr(_Ptoisa, f"T{_upper}", _pair(f"T{_upper}", _function))
    setattr(_Ptoisa, f"T{_upper}S", _with_scalar(f"T{_upper}S", _function))
    setattr(_Ptoisa, f"TROWEXPAND{_upper}", _expanded(f"TROWEXPAND{_upper}", _function, "row"))
    if _function in ("sub", "mul", "div"):
        setattr(_Ptoisa, f"TCOLEXPAND{_upper}", _expanded(f"TCOLEXPAND{_upper}", _function, "col"))
for _name, _function in {"TMOV": "copy", "TEXP": "exp", "TRSQRT": "rsqrt"}.items():
    setattr(_Ptoisa, _name, _single(_name, _function))

ptoisa = _Ptoisa()

"""A kernel that is being traced: each operation is checked and recorded when the kernel's function reaches it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Optional, Sequence

from pto_runtime import _native

from .errors import KernelError
from .kernel_types import KernelParam
from .source import user_line
from .types import DType, Location


class OpKind(Enum):
    """The operations of `pto`, by the names of the tile machine."""

    LOAD = "load"
    STORE = "store"
    CONSTANT = "constant"
    ZEROS = "zeros"
    IOTA = "iota"
    UNARY = "unary"
    BINARY = "binary"
    SELECT = "select"
    REDUCE = "reduce"
    CONVERT = "convert"
    MATMUL = "matmul"
    SLICE = "slice"
    INTERLEAVE = "interleave"
    BROADCAST = "broadcast"
    SORT32 = "sort32"
    TOPK = "topk"
    ADD_CYCLES = "add_cycles"


@dataclass(eq=False)
class Value:
    """A parameter, or what an operation gives."""

    id: int
    dtype: DType
    shape: Optional[tuple[int, int]]
    location: Location = Location.UB
    debug_name: Optional[str] = None
    is_scalar: bool = False

    @property
    def name(self) -> str:
        """The name of a parameter."""
        return self.debug_name or f"%{self.id}"

    def __bool__(self) -> bool:
        raise TypeError(f"{self.name} has no value while a kernel is traced. Use comparisons and pto.where.")


@dataclass
class Op:
    """An operation: its kind, result, arguments, and where it was written."""

    kind: OpKind
    name: str
    result: Optional[Value]
    args: tuple
    line: Optional[str]

    def __str__(self) -> str:
        result = f"{self.result.name} = " if self.result is not None else ""
        shown = (arg.name if isinstance(arg, Value) else str(arg) for arg in self.args)
        return f"{result}{self.name}({', '.join(shown)})"


@dataclass
class KernelIR:
    """A traced kernel."""

    name: str
    params: list[tuple[str, Value]] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)

    def __str__(self) -> str:
        params = ", ".join(
            f"{name}: {value.dtype.value}{list(value.shape) if value.shape else ''}" for name, value in self.params
        )
        return "\n".join([f"kernel {self.name}({params})", *(f"  {op}" for op in self.ops)])


class KernelTrace:
    """Records operations, and lets the native part check them."""

    def __init__(self, name: str) -> None:
        self.ir = KernelIR(name)
        self.builder = _native.TileKernelBuilder(name)
        #: Parameters whose tiles must not be partial.
        self.whole: set[str] = set()

    def param(self, param: KernelParam) -> Value:
        """Adds a parameter."""
        tile, scalar = param.tile, param.scalar
        if tile is not None:
            number = self.builder.tensor(param.name, param.direction, tile.dtype.value, tile.shape)
            value = Value(number, tile.dtype, tile.shape, tile.location, param.name)
        elif scalar is not None:
            number = self.builder.scalar(param.name, scalar.value)
            value = Value(number, scalar, None, Location.Global, param.name, is_scalar=True)
        else:
            raise KernelError(
                f"Kernel {self.ir.name}, parameter {param.name}: {param.type!r} has no tile. "
                "Annotate it In[Tile[rows, cols, dtype]], Out[..], InOut[..] or Scalar[dtype]."
            )
        self.ir.params.append((param.name, value))
        return value

    def add(self, kind: OpKind, name: str, *args: Any, **options: Any) -> Value:
        """Adds an operation with a result."""
        number = self._call(kind, name, args, options)
        dtype, rows, cols, is_scalar = self.builder.type_of(number)
        shape = None if is_scalar else (rows, cols)
        value = Value(number, DType(dtype), shape, is_scalar=is_scalar)
        self.ir.ops.append(Op(kind, name, value, args, user_line()))
        return value

    def do(self, kind: OpKind, name: str, *args: Any, **options: Any) -> None:
        """Adds an operation without a result."""
        self._call(kind, name, args, options)
        self.ir.ops.append(Op(kind, name, None, args, user_line()))

    def _call(self, kind: OpKind, name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
        plain = [arg.id if isinstance(arg, Value) else arg for arg in args]
        named = {k: v.id if isinstance(v, Value) else v for k, v in options.items() if v is not None}
        method = getattr(self.builder, kind.value)
        with_name = (OpKind.UNARY, OpKind.BINARY, OpKind.REDUCE)
        try:
            return method(name, *plain, **named) if kind in with_name else method(*plain, **named)
        except (ValueError, OverflowError) as error:
            raise KernelError(f"{user_line()}: {error}") from None


class _Stack(threading.local):
    def __init__(self) -> None:
        self.traces: list[KernelTrace] = []


_stack = _Stack()


def current(what: str) -> KernelTrace:
    """The kernel that is being traced on this thread."""
    if not _stack.traces:
        raise RuntimeError(f"{what} stands outside of a kernel. Use it in a function with @kernel or @ptoisa_kernel.")
    return _stack.traces[-1]


def begin(trace: KernelTrace) -> None:
    """Begins to trace."""
    _stack.traces.append(trace)


def end() -> None:
    """Ends."""
    _stack.traces.pop()

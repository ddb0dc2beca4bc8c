"""Tile kernels as C++: one statement for each instruction of the textual form."""

from __future__ import annotations

import re
from typing import Any, Optional

from .errors import CompileError

#: Element types of C++.
C_TYPES = {
    "f16": "half", "bf16": "bfloat16_t", "f32": "float", "f64": "double",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}, **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}  # fmt: skip
_LINE = re.compile(r"(?:%(?P<result>\d+) = )?(?P<op>\w+)(?P<rest>[^:]*)(?: : (?P<type>\w+)(?:\[(?P<shape>[\d, ]+)\])?)?$")
_PAIRS = ("add", "sub", "mul", "div", "max", "min")
_COMPARES = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_MARKS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_UNARY = ("exp", "log", "sqrt", "rsqrt", "tanh", "sin", "cos", "sigmoid", "silu", "relu", "gelu", "neg", "abs")
_REDUCTIONS = ("rowsum", "rowmax", "rowmean", "colsum", "colmax")


class _Body:
    """The statements of a kernel."""

    def __init__(self, name: str, params: Any) -> None:
        self.name = name
        self.tensors = {param.name: number for number, param in enumerate(p for p in params if p.tile is not None)}
        self.scalars = {param.name: number for number, param in enumerate(p for p in params if p.scalar is not None)}
        self.params = {param.name: param for param in params}
        #: The values that are scalars.
        self.numbers: set[str] = set()
        self.statements: list[str] = []

    def refused(self, what: str) -> CompileError:
        return CompileError(f"Kernel {self.name}: {what} has no C++ form yet. Compile it for cpu_sim.")

    def params_of(self) -> None:
        """Tensors as global tensors, scalars as constants."""
        for name, number in self.tensors.items():
            of = C_TYPES[self.params[name].tile.dtype.value]
            self.statements.append(f"auto {name} = pto_wsp::global<{of}>(task, {number});")

    def call(self, function: str, *args: str) -> None:
        self.statements.append(f"pto_wsp::ptoisa::{function}({', '.join(args)});")

    def tile(self, value: str, of: str, shape: list[int], rows: str, cols: str) -> None:
        """Declares a tile, with the rows and columns that count."""
        extents = f"{shape[0]}, {shape[1]}"
        self.statements.append(
            f"pto::Tile<pto::TileType::Vec, {C_TYPES[of]}, {extents}> {value}(size_t({rows}), size_t({cols}));"
        )

    def line(self, line: str) -> None:
        """An instruction."""
        found = _LINE.match(line.strip())
        if found is None:
            raise self.refused(f"`{line.strip()}`")
        op, rest, of = found["op"], found["rest"].strip(), found["type"]
        if " at [" in f" {rest}" or " mask " in f" {rest}":
            raise self.refused(f"`{op}` with an offset or a mask")
        if op == "store":
            target, source = (part.strip() for part in rest.split(","))
            self.call("TSTORE", target, _value(source))
        elif op == "add_cycles":
            self.statements += ["#if defined(__CPU_SIM)", f"pto::cpu_sim::add_cycles(uint64_t({_value(rest)}));", "#endif"]
        elif found["shape"] is None:
            self.scalar(f"v{found['result']}", op, rest, of)
        else:
            shape = [int(part) for part in found["shape"].split(",")]
            self.instruction(f"v{found['result']}", op, rest, (of, shape))

    def scalar(self, value: str, op: str, rest: str, of: str) -> None:
        """An instruction whose result is a scalar."""
        self.numbers.add(value)
        operands = [_value(word) for word in re.findall(r"%\d+", rest)]
        kind = C_TYPES[of]
        if op == "scalar":
            self.statements.append(f"const {kind} {value} = pto_wsp::scalar<{kind}>(task, {self.scalars[rest]});")
            return
        if op == "constant":
            literal = _literal(rest, of)
        elif op in _COMPARES:
            literal = f"{operands[0]} {_COMPARES[op]} {operands[1]}"
        elif op in _MARKS:
            literal = f"{operands[0]} {_MARKS[op]} {operands[1]}"
        elif op == "convert":
            literal = operands[0]
        elif op == "select":
            literal = f"{operands[0]} ? {operands[1]} : {operands[2]}"
        else:
            raise self.refused(f"`{op}` of scalars")
        self.statements.append(f"const {kind} {value} = {kind}({literal});")

    def instruction(self, value: str, op: str, rest: str, tile: tuple[str, list[int]]) -> None:
        """An instruction whose result is a tile."""
        of, shape = tile
        operands = [_value(word) for word in re.findall(r"%\d+", rest)]
        first: Optional[str] = operands[0] if operands else None
        if op == "load":
            rows, cols = (f"std::min<int64_t>({rest}.{side}(), {most})" for side, most in zip(("rows", "cols"), shape))
            self.tile(value, of, shape, rows, cols)
            self.call("TLOAD", value, rest)
        elif op in ("iota", "topk"):
            self.tile(value, of, shape, "1", str(shape[1]))
            self.call("TCI" if op == "iota" else "TTOPK", value, *operands)
        elif op == "sort32":
            self.tile(value, of, shape, "1", "64")
            self.call("TSORT32", value, *operands)
        elif op in _PAIRS:
            self.pair(value, op, (rest, operands), tile)
        elif op in _REDUCTIONS:
            is_row = op.startswith("row")
            self.tile(value, of, shape, f"{first}.rows()" if is_row else "1", "1" if is_row else f"{first}.cols()")
            self.call(f"T{op.upper()}", value, *operands)
        elif op in _UNARY + ("copy", "convert"):
            self.tile(value, of, shape, f"{first}.rows()", f"{first}.cols()")
            self.call({"copy": "TMOV", "convert": "TCVT"}.get(op, f"T{op.upper()}"), value, *operands)
        elif op == "matmul":
            self.matmul(value, rest, operands, tile)
        else:
            raise self.refused(f"`{op}`")

    def pair(self, value: str, op: str, operands: tuple[str, list[str]], tile: tuple[str, list[int]]) -> None:
        """A function of pairs of elements."""
        rest, (a, b) = operands
        like = b if a in self.numbers else a
        self.tile(value, *tile, f"{like}.rows()", f"{like}.cols()")
        way = re.search(r" by (\w+)", f" {rest}")
        by = way[1] if way else "same"
        if by == "one" and b not in self.numbers:
            b = f"{b}.at(0, 0)"
        names = {"same": "T{}", "one": "T{}S", "first": "TS{}", "row": "TROWEXPAND{}", "col": "TCOLEXPAND{}"}
        self.call(names[by].format(op.upper()), value, a, b)

    def matmul(self, value: str, rest: str, operands: list[str], tile: tuple[str, list[int]]) -> None:
        """A product; what is moved to and from the matrix unit."""
        a, b = operands[:2]
        moves = set(re.findall(r"move (\w+)", rest))
        for side, operand in (("left", a), ("right", b)):
            if side in moves:
                self.statements += [f"auto {value}_{side} = {operand};"]
                self.call("TMOV", f"{value}_{side}", operand)
        left, right = (f"{value}_{side}" if side in moves else one for side, one in (("left", a), ("right", b)))
        self.tile(value, *tile, f"{a}.rows()", f"{b}.cols()")
        if len(operands) == 3:
            self.statements.append(f"{value} = {operands[2]};")
        self.call("TMATMUL", value, left, right, *(["1"] if len(operands) == 3 else []))
        if "result" in moves:
            self.statements.append(f"auto {value}_result = {value};")
            self.call("TMOV", value, f"{value}_result")


def _value(word: str) -> str:
    return word.replace("%", "v")


def _literal(text: str, of: str) -> str:
    if text.startswith("bits"):
        bits = int(text.split()[1], 0)
        return f"pto_wsp::from_bits<{C_TYPES[of]}>({bits}ull)"
    if of.startswith(("f", "bf")):
        return f"{text}{'f' if of == 'f32' else ''}"
    return f"{text}ull" if of.startswith("u") else f"{text}ll"


def kernel_body(name: str, params: Any, text: str) -> str:
    """The statements of a kernel, from its textual form."""
    body = _Body(name, params)
    body.params_of()
    for line in text.splitlines()[1:-1]:
        body.line(line)
    return "\n".join(f"  {statement}" if not statement.startswith("#") else statement for statement in body.statements)

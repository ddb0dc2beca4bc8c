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
_AT = re.compile(r" at \[(\d+), (\d+)\]")
_MASK = re.compile(r" mask %(\d+)")
#: Functions of pairs: the end of their names, and the function of two elements.
_PAIRS = {
    "add": ("ADD", "add"), "sub": ("SUB", "sub"), "mul": ("MUL", "mul"), "div": ("DIV", "div"), "max": ("MAX", "larger"),
    "min": ("MIN", "smaller"), "less": ("LT", "less"), "less_equal": ("LE", "less_equal"), "greater": ("GT", "greater"),
    "greater_equal": ("GE", "greater_equal"), "equal": ("EQ", "equal"), "not_equal": ("NE", "not_equal"),
}  # fmt: skip
_UNARY = ("exp", "log", "sqrt", "rsqrt", "tanh", "sin", "cos", "sigmoid", "silu", "relu", "gelu", "neg", "abs")
_REDUCTIONS = ("rowsum", "rowmax", "rowmean", "colsum", "colmax")
_SLICES = {"slice_even": 0, "slice_odd": 1}
#: Names that C++ or the emitted sources have.
_TAKEN = set(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr continue default delete do
    double else enum explicit export extern false float for friend goto half if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register return short signed sizeof static struct switch template this throw true
    try typedef typeid typename union unsigned using virtual void volatile while xor xor_eq pto std pto_wsp task cspt cycles plan record
    fault turn at resume tensors symbols arrays""".split()
)


def c_name(name: str) -> str:
    """A name of the program as one of C++."""
    return f"{name}_" if name in _TAKEN or re.fullmatch(r"v\d+(_\w+)?", name) else name


class _Body:
    """The statements of a kernel."""

    def __init__(self, name: str, params: Any) -> None:
        self.name = name
        self.tensors = {param.name: number for number, param in enumerate(p for p in params if p.tile is not None)}
        self.scalars = {param.name: number for number, param in enumerate(p for p in params if p.scalar is not None)}
        self.params = {param.name: param for param in params}
        #: The values that are scalars.
        self.numbers: set[str] = set()
        #: The shape of each tile.
        self.shapes: dict[str, list[int]] = {}
        self.statements: list[str] = []

    def refused(self, what: str) -> CompileError:
        return CompileError(f"Kernel {self.name}: {what} has no C++ form. Compile it for cpu_sim.")

    def params_of(self) -> None:
        """Tensors as global tensors, scalars as constants."""
        for name, number in self.tensors.items():
            of = C_TYPES[self.params[name].tile.dtype.value]
            self.statements.append(f"auto {c_name(name)} = pto_wsp::global<{of}>(task, {number});")

    def call(self, function: str, *args: str) -> None:
        self.statements.append(f"pto_wsp::ptoisa::{function}({', '.join(args)});")

    def tile(self, value: str, of: str, shape: list[int], extents: tuple[str, str]) -> None:
        """Declares a tile, with the rows and columns that count."""
        self.shapes[value] = shape
        rows, cols = (f"size_t({one})" for one in extents)
        self.statements.append(
            f"pto::Tile<pto::TileType::Vec, {C_TYPES[of]}, {shape[0]}, {shape[1]}> {value}({rows}, {cols});"
        )

    def line(self, line: str) -> None:
        """An instruction."""
        found = _LINE.match(line.strip())
        if found is None:
            raise self.refused(f"`{line.strip()}`")
        op, rest, of = found["op"], f" {found['rest'].strip()}", found["type"]
        if op == "store":
            self.store(rest)
        elif op == "add_cycles":
            value = _value(rest.strip())
            self.statements += ["#if defined(__CPU_SIM)", f"pto::cpu_sim::add_cycles(uint64_t({value}));", "#endif"]
        elif found["shape"] is None:
            self.scalar(f"v{found['result']}", op, rest.strip(), of)
        else:
            shape = [int(part) for part in found["shape"].split(",")]
            self.instruction(f"v{found['result']}", op, rest, (of, shape))

    def scalar(self, value: str, op: str, rest: str, of: str) -> None:
        """An instruction whose result is a scalar."""
        self.numbers.add(value)
        operands = [_value(word) for word in re.findall(r"%\d+", rest)]
        kind = C_TYPES[of]
        if op == "scalar":
            literal = f"pto_wsp::scalar<{kind}>(task, {self.scalars[rest]})"
        elif op == "constant":
            literal = _literal(rest, of)
        elif op in _PAIRS:
            literal = f"pto_wsp::elements::{_PAIRS[op][1]}({operands[0]}, {operands[1]})"
        elif op in _UNARY + ("copy",):
            literal = f"pto_wsp::elements::{op}({operands[0]})"
        elif op == "convert":
            literal = f"pto_wsp::cast<{kind}>({operands[0]})"
        elif op == "select":
            literal = f"{operands[0]} != 0 ? {operands[1]} : {operands[2]}"
        else:
            raise self.refused(f"`{op}` of scalars")
        self.statements.append(f"const {kind} {value} = {literal};")

    def place(self, rest: str) -> tuple[str, Optional[str]]:
        """What is loaded from or stored to: the parameter, from an offset on, and a mask."""
        name, at, mask = rest.split()[0].rstrip(","), _AT.search(rest), _MASK.search(rest)
        place = c_name(name) if at is None else f"{c_name(name)}.from({at[1]}, {at[2]})"
        return place, None if mask is None else f"v{mask[1]}"

    def store(self, rest: str) -> None:
        """A store, of a tile that has at least what counts of the view."""
        place, mask = self.place(rest)
        source = _value(rest.split()[1])
        # A task without a result writes nothing more.
        self.statements.append(f"if (!pto_wsp::ptoisa::covers({source}, {place})) return cycles;")
        if mask is None:
            self.call("TSTORE", place, source)
        else:
            self.call("TSTORE_MASKED", place, source, mask)

    def load(self, value: str, rest: str, tile: tuple[str, list[int]]) -> None:
        """A load of what counts of the view."""
        place, mask = self.place(rest)
        rows, cols = (f"std::min<int64_t>({place}.{side}(), {most})" for side, most in zip(("rows", "cols"), tile[1]))
        self.tile(value, *tile, (rows, cols))
        if mask is None:
            self.call("TLOAD", value, place)
        else:
            self.call("TLOAD_MASKED", value, place, mask)

    def instruction(self, value: str, op: str, rest: str, tile: tuple[str, list[int]]) -> None:
        """An instruction whose result is a tile."""
        shape = tile[1]
        operands = [_value(word) for word in re.findall(r"%\d+", rest)]
        if op == "load":
            self.load(value, rest, tile)
        elif op in ("iota", "topk", "sort32", "zeros"):
            self.tile(value, *tile, (str(shape[0]), str(shape[1])))
            names = {"iota": "TCI", "topk": "TTOPK", "sort32": "TSORT32"}
            # A tile that is declared holds zeros.
            if op in names:
                self.call(names[op], value, *operands)
        elif op in _PAIRS:
            self.pair(value, op, (rest, operands), tile)
        elif op in _REDUCTIONS:
            rows, cols = _extents(operands[0])
            self.tile(value, *tile, (rows, "1") if op.startswith("row") else ("1", cols))
            self.call(f"T{op.upper()}", value, *operands)
        elif op in _UNARY + ("copy", "convert"):
            self.tile(value, *tile, _extents(operands[0]))
            self.call({"copy": "TMOV", "convert": "TCVT"}.get(op, f"T{op.upper()}"), value, *operands)
        elif op == "select":
            self.tile(value, *tile, _least(*operands))
            self.call("TSEL", value, *operands)
        elif op == "matmul":
            self.matmul(value, rest, operands, tile)
        elif op in _SLICES or op in ("interleave", "broadcast"):
            self.columns(value, op, operands, tile)
        else:
            raise self.refused(f"`{op}`")

    def columns(self, value: str, op: str, operands: list[str], tile: tuple[str, list[int]]) -> None:
        """Columns taken apart and put together, and shapes made larger."""
        first = operands[0]
        if op in _SLICES:
            rows, cols = _extents(first)
            self.tile(value, *tile, (rows, f"({cols} + {1 - _SLICES[op]}) / 2"))
            self.call("TSLICE", value, first, str(_SLICES[op]))
        elif op == "interleave":
            rows, cols = _least(*operands)
            self.tile(value, *tile, (rows, f"2 * {cols}"))
            self.call("TINTERLEAVE", value, *operands)
        elif first in self.numbers:
            self.tile(value, *tile, (str(tile[1][0]), str(tile[1][1])))
            self.call("TEXPANDS", value, first)
        else:
            sides = zip(_extents(first), self.shapes[first], tile[1])
            rows, cols = (one if had == wanted else f"{one} == 0 ? 0 : {wanted}" for one, had, wanted in sides)
            self.tile(value, *tile, (rows, cols))
            self.call("TEXPAND", value, first)

    def pair(self, value: str, op: str, operands: tuple[str, list[str]], tile: tuple[str, list[int]]) -> None:
        """A function of pairs of elements."""
        rest, (a, b) = operands
        way = re.search(r" by (\w+)", rest)
        by = way[1] if way else "same"
        self.tile(value, *tile, _least(a, b) if by == "same" else _extents(b if by == "first" else a))
        if by == "one" and b not in self.numbers:
            b = f"pto_wsp::ptoisa::only({b})"
        names = {"same": "T{}", "one": "T{}S", "first": "TS{}", "row": "TROWEXPAND{}", "col": "TCOLEXPAND{}"}
        self.call(names[by].format(_PAIRS[op][0]), value, a, b)

    def matmul(self, value: str, rest: str, operands: list[str], tile: tuple[str, list[int]]) -> None:
        """A product; what is moved to and from the matrix unit."""
        a, b = operands[:2]
        moves = set(re.findall(r"move (\w+)", rest))
        for side, operand in (("left", a), ("right", b)):
            if side in moves:
                self.statements += [f"auto {value}_{side} = {operand};"]
                self.call("TMOV", f"{value}_{side}", operand)
        left, right = (f"{value}_{side}" if side in moves else one for side, one in (("left", a), ("right", b)))
        self.tile(value, *tile, (f"{a}.rows()", f"{b}.cols()"))
        if len(operands) == 3:
            self.call("TMATMUL_ACC", value, operands[2], left, right)
        else:
            self.call("TMATMUL", value, left, right)
        if "result" in moves:
            self.statements.append(f"auto {value}_result = {value};")
            self.call("TMOV", value, f"{value}_result")


def _extents(value: str) -> tuple[str, str]:
    """What counts of a tile."""
    return f"{value}.rows()", f"{value}.cols()"


def _least(*values: str) -> tuple[str, str]:
    """What counts of all of these tiles."""
    if len(set(values)) == 1:
        return _extents(values[0])
    rows, cols = (", ".join(one) for one in zip(*map(_extents, values)))
    return f"std::min({{{rows}}})", f"std::min({{{cols}}})"


def _value(word: str) -> str:
    return word.replace("%", "v").rstrip(",")


def _literal(text: str, of: str) -> str:
    kind = C_TYPES[of]
    if text.startswith("bits"):
        return f"pto_wsp::from_bits<{kind}>({int(text.split()[1], 0)}ull)"
    if of.startswith(("f", "bf")):
        return f"{kind}({text}{'f' if of == 'f32' else ''})"
    if text == str(-(2**63)):
        return f"{kind}(INT64_MIN)"
    return f"{kind}({text}{'ull' if of.startswith('u') else 'll'})"


def offsets(params: Any, text: Optional[str]) -> dict[str, list[tuple[int, int]]]:
    """Of each parameter, rows and columns from which on a kernel reads or writes whole tiles. With a mask only the elements of the mask have
    to be there. A body in C++ gets whole tiles."""
    if text is None:
        return {param.name: [(0, 0)] for param in params if param.tile is not None}
    found: dict[str, list[tuple[int, int]]] = {}
    for name, rest in re.findall(r"^ +(?:%\d+ = load|store) (\w+)(.*)", text, re.MULTILINE):
        at = _AT.search(rest)
        offset = (int(at[1]), int(at[2])) if at is not None else (0, 0)
        if _MASK.search(rest) is None and offset not in found.setdefault(name, []):
            found[name].append(offset)
    return found


def kernel_body(name: str, params: Any, text: str) -> str:
    """The statements of a kernel, from its textual form."""
    body = _Body(name, params)
    body.params_of()
    for line in text.splitlines()[1:-1]:
        body.line(line)
    return "\n".join(f"  {statement}" if not statement.startswith("#") else statement for statement in body.statements)

"""Expressions, evaluated on the host, where they depend on loop variables only."""

from __future__ import annotations

from typing import Any

from .loop_var import LoopVar
from .scalar_expr import ScalarExpr

_MASK = (1 << 64) - 1


def _wrapped(value: int, type: str) -> Any:
    if type == "bool":
        return bool(value)
    value &= _MASK
    return value - (1 << 64) if type == "i64" and value >> 63 else value


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise ZeroDivisionError(f"{a} // 0 divides by zero.")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "&&": lambda a, b: a and b,
    "||": lambda a, b: a or b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def evaluated(expr: Any, scope: list[tuple[LoopVar, int]]) -> Any:
    """The value of an expression."""
    if not isinstance(expr, ScalarExpr):
        return expr
    if isinstance(expr, LoopVar):
        for variable, value in scope:
            if variable is expr:
                return value
        raise RuntimeError(f"The loop variable {expr.name} is used outside of its loop.")
    if expr.op == "literal":
        return expr.args[0]
    if expr.op == "axis":
        for variable, value in reversed(scope):
            if variable.name == expr.args[0]:
                return value
    if expr.op in ("axis", "symbol", "slot", "param"):
        raise RuntimeError(f"{expr.op} {expr.args[0]!r} has a value in a run only: the tasks are not known before it.")
    values = [evaluated(arg, scope) for arg in expr.args]
    if expr.op == "cast":
        return _wrapped(int(values[0]) if expr.type != "bool" else values[0] != 0, expr.type)
    if expr.op == "?":
        return values[1] if values[0] else values[2]
    if len(values) == 1:
        results = {"!": lambda x: not x, "-": lambda x: -x, "~": lambda x: ~x}
        return _wrapped(results[expr.op](values[0]), expr.type)
    left, right = values
    if expr.type != "bool" or "u64" in (expr.args[0].type, expr.args[1].type):
        side = "u64" if "u64" in (expr.args[0].type, expr.args[1].type) else "i64"
        if "bool" not in (expr.args[0].type, expr.args[1].type):
            left, right = _wrapped(left, side), _wrapped(right, side)
    return _wrapped(_BINARY[expr.op](left, right), expr.type)

"""Scalar expressions: of loop variables, symbols, slots and the arguments of a task. They are evaluated when a task is
reached, as C does on 64 bits."""

from __future__ import annotations

from typing import Any, Union

BOOL, I64, U64 = "bool", "i64", "u64"


class ScalarExpr:
    """An expression: an operator, its operands, its type."""

    def __init__(self, op: str, args: tuple, type: str) -> None:
        self.op = op
        self.args = args
        self.type = type

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("An expression has no truth value while a workload is built. Use P.when(..), cond(..) or .where(a, b).")

    def _integers(self, mark: str, left: Any, right: Any) -> ScalarExpr:
        left, right = as_expr(left), as_expr(right)
        if BOOL in (left.type, right.type):
            raise TypeError(f"{mark} is not defined for {left.type} and {right.type}. Use integers.")
        shifts = mark in ("<<", ">>")
        return ScalarExpr(mark, (left, right), left.type if shifts else _common(left, right))

    def __add__(self, other: Any) -> ScalarExpr:
        return self._integers("+", self, other)

    def __radd__(self, other: Any) -> ScalarExpr:
        return self._integers("+", other, self)

    def __sub__(self, other: Any) -> ScalarExpr:
        return self._integers("-", self, other)

    def __rsub__(self, other: Any) -> ScalarExpr:
        return self._integers("-", other, self)

    def __mul__(self, other: Any) -> ScalarExpr:
        return self._integers("*", self, other)

    def __rmul__(self, other: Any) -> ScalarExpr:
        return self._integers("*", other, self)

    def __floordiv__(self, other: Any) -> ScalarExpr:
        """As in C: the quotient is truncated."""
        return self._integers("/", self, other)

    def __rfloordiv__(self, other: Any) -> ScalarExpr:
        return self._integers("/", other, self)

    def __truediv__(self, other: Any) -> ScalarExpr:
        raise TypeError("/ is not defined for expressions, which have no fractions. Use //.")

    def __mod__(self, other: Any) -> ScalarExpr:
        """As in C: the remainder has the sign of the dividend."""
        return self._integers("%", self, other)

    def __rmod__(self, other: Any) -> ScalarExpr:
        return self._integers("%", other, self)

    def __lshift__(self, other: Any) -> ScalarExpr:
        return self._integers("<<", self, other)

    def __rlshift__(self, other: Any) -> ScalarExpr:
        return self._integers("<<", other, self)

    def __rshift__(self, other: Any) -> ScalarExpr:
        return self._integers(">>", self, other)

    def __rrshift__(self, other: Any) -> ScalarExpr:
        return self._integers(">>", other, self)

    def _compared(self, mark: str, other: Any) -> ScalarExpr:
        other = as_expr(other)
        if (self.type == BOOL) != (other.type == BOOL):
            raise TypeError(f"{mark} is not defined for {self.type} and {other.type}. Cast one of them.")
        if self.type == BOOL and mark not in ("==", "!="):
            raise TypeError(f"{mark} is not defined for truth values.")
        return ScalarExpr(mark, (self, other), BOOL)

    def __eq__(self, other: Any) -> ScalarExpr:  # type: ignore[override]
        return self._compared("==", other)

    def __ne__(self, other: Any) -> ScalarExpr:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Any) -> ScalarExpr:
        return self._compared("<", other)

    def __le__(self, other: Any) -> ScalarExpr:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> ScalarExpr:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> ScalarExpr:
        return self._compared(">=", other)

    def _bits(self, logic: str, mark: str, other: Any) -> ScalarExpr:
        other = as_expr(other)
        if self.type == other.type == BOOL and logic:
            return ScalarExpr(logic, (self, other), BOOL)
        left, right = _as_u64(self), _as_u64(other)
        if left.type == right.type == U64:
            return ScalarExpr(mark, (left, right), U64)
        both = "two truth values or two u64" if logic else "two u64"
        raise TypeError(f"{mark} is defined for {both}, not for {self.type} and {other.type}. Use .cast_u64().")

    def __and__(self, other: Any) -> ScalarExpr:
        return self._bits("&&", "&", other)

    __rand__ = __and__

    def __or__(self, other: Any) -> ScalarExpr:
        return self._bits("||", "|", other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> ScalarExpr:
        return self._bits("", "^", other)

    __rxor__ = __xor__

    def __invert__(self) -> ScalarExpr:
        if self.type == I64:
            raise TypeError("~ is defined for truth values and u64, not for i64. Use .cast_u64().")
        return ScalarExpr("!" if self.type == BOOL else "~", (self,), self.type)

    def __neg__(self) -> ScalarExpr:
        if self.type == BOOL:
            raise TypeError("- is not defined for truth values. Use ~.")
        return ScalarExpr("-", (self,), self.type)

    def cast_bool(self) -> ScalarExpr:
        """True where it is not zero."""
        return ScalarExpr("cast", (self,), BOOL)

    def cast_i64(self) -> ScalarExpr:
        """The same 64 bits, signed."""
        return ScalarExpr("cast", (self,), I64)

    def cast_u64(self) -> ScalarExpr:
        """The same 64 bits, unsigned."""
        return ScalarExpr("cast", (self,), U64)

    def where(self, then: Any, otherwise: Any) -> ScalarExpr:
        """`then` where this is true, else `otherwise`."""
        then, otherwise = as_expr(then), as_expr(otherwise)
        if self.type != BOOL:
            raise TypeError(f"where is defined for truth values, not for {self.type}. Compare it first.")
        if then.type != otherwise.type:
            raise TypeError(f"where chooses between equal types, not {then.type} and {otherwise.type}. Cast one.")
        return ScalarExpr("?", (self, then, otherwise), then.type)

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(map(repr, self.args))})"


def _common(left: ScalarExpr, right: ScalarExpr) -> str:
    return U64 if U64 in (left.type, right.type) else I64


def _as_u64(expr: ScalarExpr) -> ScalarExpr:
    is_natural = expr.op == "literal" and expr.type == I64 and expr.args[0] >= 0
    return ScalarExpr("literal", expr.args, U64) if is_natural else expr


def as_expr(value: Any) -> ScalarExpr:
    """A number, a truth value or an expression as an expression."""
    if isinstance(value, ScalarExpr):
        return value
    if isinstance(value, bool):
        return ScalarExpr("literal", (value,), BOOL)
    if hasattr(value, "__index__"):
        number = value.__index__()
        if not -(2**63) <= number < 2**64:
            raise TypeError(f"{number} does not fit 64 bits.")
        return ScalarExpr("literal", (number,), I64 if number < 2**63 else U64)
    raise TypeError(f"{type(value).__name__} is no scalar expression. Use an integer, a loop variable or an expression.")


def axis(name: str) -> ScalarExpr:
    """The variable of the loop with this name around the node."""
    return ScalarExpr("axis", (name,), I64)


def symbol_u64(name: str) -> ScalarExpr:
    """A symbol, which `Program.set_symbol_u64` gives a value."""
    return ScalarExpr("symbol", (name,), U64)


def slot_u64(slot: int) -> ScalarExpr:
    """A slot, unsigned."""
    return ScalarExpr("slot", (slot,), U64)


def slot_i64(slot: int) -> ScalarExpr:
    """A slot, signed."""
    return ScalarExpr("slot", (slot,), I64)


def slot_bool(slot: int) -> ScalarExpr:
    """Whether a slot is not zero."""
    return ScalarExpr("slot", (slot,), BOOL)


def task_param(number: int) -> ScalarExpr:
    """An argument of the task that is dispatched: axes, rows and columns of each tensor, scalars, as one list."""
    return ScalarExpr("param", (number,), I64)


class _Params:
    def __getitem__(self, number: int) -> ScalarExpr:
        return task_param(number)


class _Tags:
    def __getitem__(self, name: str) -> ScalarExpr:
        return symbol_u64(name)


class TaskView:
    """What the function that gives a task's key is called with."""

    params = _Params()
    tags = _Tags()

    def get(self, name: str) -> ScalarExpr:
        """The variable of the loop with this name around the task."""
        return axis(name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"A key cannot use t.{name}. Use t.params[i], t.tags[name] or t.get(name).")


class Symbol:
    """A scalar argument that a run gives by name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Symbol({self.name!r})"


ExprLike = Union[int, bool, ScalarExpr]

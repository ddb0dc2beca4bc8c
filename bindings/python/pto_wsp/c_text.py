"""Expressions of C over the scalar parameters of a kernel, as text: `((n > 32) ? (uint64_t)(n / 32) * 128ull : 0)`."""

from __future__ import annotations

import re
from typing import Any, Optional

from .kernel_trace import KernelTrace, OpKind, Value
from .pto_ops import constant_of
from .types import DType

_WORD = re.compile(r"\s*(?:(\d\w*)|([A-Za-z_]\w*)|(<=|>=|==|!=|[-+*/()?:<>]))")
_TYPES = {"int", "unsigned", "long", "short", "char", "signed", "size_t"} | {
    f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_LEVELS = (
    {"==": "equal", "!=": "not_equal"},
    {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"},
    {"+": "add", "-": "sub"},
    {"*": "mul", "/": "div"},
)


class _Reader:
    """Reads an expression. All numbers have 64 bits and a sign."""

    def __init__(self, trace: KernelTrace, text: str) -> None:
        self.trace = trace
        self.text = text
        self.words: list[str] = []
        at = 0
        while text[at:].strip():
            found = _WORD.match(text, at)
            if found is None:
                raise self.error(f"{text[at:].strip()[0]!r} is not understood")
            self.words.append(found.group().strip())
            at = found.end()

    def error(self, what: str) -> ValueError:
        return ValueError(f"ptoisa.cpu_sim_add_cycles({self.text!r}): {what}.")

    def peek(self) -> Optional[str]:
        return self.words[0] if self.words else None

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise self.error(f"{wanted!r} is missing")
        self.words.pop(0)

    def choice(self) -> Value:
        condition = self.level(0)
        if self.peek() != "?":
            return condition
        self.take("?")
        then = self.choice()
        self.take(":")
        otherwise = self.choice()
        zero = constant_of(self.trace, 0, condition.dtype)
        mask = self.trace.add(OpKind.BINARY, "not_equal", condition, zero)
        return self.trace.add(OpKind.SELECT, "select", mask, then, otherwise)

    def level(self, number: int) -> Value:
        if number == len(_LEVELS):
            return self.operand()
        left = self.level(number + 1)
        while self.peek() in _LEVELS[number]:
            function = _LEVELS[number][self.words.pop(0)]
            result = self.trace.add(OpKind.BINARY, function, left, self.level(number + 1))
            left = self.wide(result)
        return left

    def wide(self, value: Value) -> Value:
        if value.dtype is DType.I64:
            return value
        return self.trace.add(OpKind.CONVERT, "convert", "i64", value)

    def operand(self) -> Value:
        word = self.peek()
        if word is None:
            raise self.error("it ends too early")
        if word == "(" and len(self.words) > 1 and self.words[1] in _TYPES:
            self.take("(")
            while self.peek() in _TYPES:
                self.words.pop(0)
            self.take(")")
            return self.operand()
        if word == "(":
            self.take("(")
            inner = self.choice()
            self.take(")")
            return inner
        self.words.pop(0)
        if word == "-":
            zero = constant_of(self.trace, 0, DType.I64)
            return self.trace.add(OpKind.BINARY, "sub", zero, self.operand())
        if word[0].isdigit():
            return self.number(word)
        return self.param(word)

    def number(self, word: str) -> Value:
        digits = re.sub(r"[uUlL]+$", "", word)
        try:
            return constant_of(self.trace, int(digits, 0), DType.I64)
        except ValueError:
            raise self.error(f"{word!r} is no integer") from None

    def param(self, word: str) -> Value:
        for name, value in self.trace.ir.params:
            if name == word and value.is_scalar:
                return self.wide(value)
        raise self.error(f"the kernel has no scalar parameter {word!r}")


def cycles_of(trace: KernelTrace, text: str) -> Any:
    """Adds the operations of an expression; its value."""
    reader = _Reader(trace, text)
    value = reader.choice()
    if reader.words:
        raise reader.error(f"{reader.words[0]!r} is not understood")
    return value

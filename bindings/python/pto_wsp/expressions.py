"""Expressions as text, with the loop variables that are in scope."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Iterator, Optional

from .loop_var import LoopVar
from .scalar_expr import ScalarExpr

_RESERVED = {"true", "false", "for", "else", "at", "by", "in"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,46}\Z")


class Names:
    """The loop variables in scope, outermost first, each with its name in the text."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.scope: list[tuple[LoopVar, str]] = []
        #: Where names were looked up by text, for keys of a dispatch: the innermost loops of each task.
        self.hidden: set[str] = set()

    @contextmanager
    def around(self, variable: LoopVar) -> Iterator[str]:
        """A variable is in scope, by a name that hides none."""
        depth = len(self.scope)
        name = self._add(variable)
        if variable._places is not None:
            for place in variable._places:
                self._add(place)
        try:
            yield name
        finally:
            del self.scope[depth:]

    def _add(self, variable: LoopVar) -> str:
        taken = {name for _, name in self.scope} | _RESERVED
        plain = re.sub(r"\W", "_", variable.name, flags=re.ASCII)[:40] or "i"
        plain = self.plain(f"_{plain}" if plain[0].isdigit() else plain)
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        if name != plain:
            self.hidden.add(variable.name)
        self.scope.append((variable, name))
        return name

    def places(self, variable: LoopVar) -> str:
        """The names of row and place, where a program uses them."""
        if variable._places is None:
            return ""
        names = [name for place in variable._places for one, name in self.scope if one is place]
        return f" ({names[0]}, {names[1]})"

    def _var(self, variable: LoopVar) -> str:
        for one, name in self.scope:
            if one is variable:
                return name
        raise LookupError(f"The loop variable {variable.name} is used outside of its loop.")

    def axis(self, name: str) -> str:
        """The variable of the loop with this name."""
        found = [text for one, text in self.scope if one.name == name]
        if not found:
            raise LookupError(f"No loop around it has the name {name}.")
        if len(found) > 1:
            raise LookupError(f"{len(found)} loops around it have the name {name}. Give them names of their own.")
        return found[0]

    def symbol(self, name: str, type: str) -> str:
        """A symbol, which the program takes for a type."""
        if _NAME.match(name) is None:
            raise LookupError(
                f"{name!r} is no name for a symbol. Use up to 47 letters, digits and underscores, and no digit first."
            )
        known: Optional[str] = self.result.symbols.setdefault(name, type)
        if known != type:
            raise LookupError(f"The symbol {name} is taken for {known} and for {type}. Use two symbols.")
        return name

    def text(self, expr: ScalarExpr, is_key: bool = False) -> str:
        """An expression. In a key, loops are known by name only."""
        if isinstance(expr, LoopVar):
            if is_key:
                raise LookupError(f"A key cannot use the loop variable {expr.name}. Use t.get({expr.name!r}).")
            return self._var(expr)
        if expr.op == "literal":
            return self.literal(expr.args[0], expr.type)
        if expr.op == "axis":
            return self._by_name(expr.args[0], is_key)
        if expr.op == "symbol":
            return self.symbol_text(self.symbol(expr.args[0], "u64"))
        if expr.op == "slot":
            return self.slot_text(int(expr.args[0]), expr.type)
        if expr.op == "param":
            return self.param_text(int(expr.args[0]))
        parts = [self.text(arg, is_key) for arg in expr.args]
        if expr.op == "cast":
            return self.cast_text(expr.type, parts[0])
        if expr.op == "?":
            return f"({parts[0]} ? {parts[1]} : {parts[2]})"
        return f"{expr.op}({parts[0]})" if len(parts) == 1 else self.pair_text(expr, parts)

    def _by_name(self, name: str, is_key: bool) -> str:
        if not is_key:
            return self.axis(name)
        if name in self.hidden:
            raise LookupError(f"Loops inside of one another have the name {name}. Give them names of their own.")
        return self.plain(re.sub(r"\W", "_", name, flags=re.ASCII))

    def plain(self, name: str) -> str:
        """The name of a loop variable, if no other one has it."""
        return name

    def literal(self, value: Any, type: str) -> str:
        """A number or truth value."""
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value}u" if type == "u64" else str(value)

    def symbol_text(self, name: str) -> str:
        """A symbol."""
        return f"symbol({name})"

    def slot_text(self, slot: int, type: str) -> str:
        """A slot."""
        return f"slot_{type}({slot})"

    def param_text(self, number: int) -> str:
        """An argument of the task."""
        return f"param({number})"

    def cast_text(self, type: str, value: str) -> str:
        """Another type."""
        return f"{type}({value})"

    def pair_text(self, expr: ScalarExpr, parts: list[str]) -> str:
        """An operator with two operands."""
        return f"({parts[0]} {expr.op} {parts[1]})"

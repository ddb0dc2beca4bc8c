"""Loop variables."""

from __future__ import annotations

from typing import Any, Optional

from .axes import Ragged, Sparse
from .scalar_expr import I64, ScalarExpr


class LoopVar(ScalarExpr):
    """The variable of a loop: an index of tensors, and an expression."""

    def __init__(self, name: str, axis: Any = None, index: int = 0) -> None:
        super().__init__("var", (), I64)
        self.name = name
        self.axis = axis
        self.index = index
        self._places: Optional[tuple[LoopVar, LoopVar]] = None

    def _place(self, number: int) -> LoopVar:
        if not isinstance(self.axis, (Ragged, Sparse)):
            raise AttributeError(f"The loop {self.name} has no rows. Only ragged and sparse axes have.")
        if self._places is None:
            self._places = (LoopVar(f"{self.name}_row"), LoopVar(f"{self.name}_place"))
        return self._places[number]

    @property
    def row(self) -> LoopVar:
        """Of a ragged or sparse axis: the row."""
        return self._place(0)

    @property
    def place(self) -> LoopVar:
        """Of a ragged axis the place in the row; of a sparse axis the place among the indices."""
        return self._place(1)

    def __repr__(self) -> str:
        return f"LoopVar({self.name!r})"

"""`P`: the loops of a `@workload` function. The body of a loop runs once, with a variable in place of every element."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Sequence

from . import tracing
from .axes import Ragged, Sparse, SparseRow, as_axis
from .loop_var import LoopVar
from .scalar_expr import BOOL, as_expr
from .workload import Workload, empty, group

__all__ = ["LoopVar", "P"]


def _loop(kind: str, order: str, variables: list[LoopVar], result: Any) -> Iterator[Any]:
    """Opens a block, lets the body run, and adds the loops around what it has added."""
    building = tracing.needed("A loop of P")
    building.open()
    depth = len(building.blocks)
    yield result
    if len(building.blocks) != depth:
        raise RuntimeError("A loop of P inside of this one was left by break or return. Let its body end.")
    body = group(building.close(), order)
    for number, variable in reversed(list(enumerate(variables))):
        innermost = number == len(variables) - 1
        body = Workload(kind, axis=variable.axis, var=variable, body=body if innermost else body)
    building.add(body)


class _When:
    """`with P.when(..)`, `with P.otherwise()`, `with P.pipe()`: a block, and what becomes of it."""

    def __init__(self, kind: str, predicate: Any = None) -> None:
        self.kind = kind
        self.predicate = predicate

    def __enter__(self) -> None:
        building = tracing.needed(f"P.{self.kind}")
        if self.kind == "otherwise":
            last = building.last_when
            if last is None or last[0] is not building.blocks[-1]:
                raise RuntimeError("P.otherwise() follows no P.when(..). Put it right after one.")
            self.when = last[1]
        building.open()

    def __exit__(self, kind: Any, *_: Any) -> None:
        building = tracing.needed(f"P.{self.kind}")
        nodes = building.close()
        if kind is not None:
            return
        if self.kind == "pipe":
            building.add(group(nodes, "sequential"))
        elif self.kind == "otherwise":
            self.when._kwargs["otherwise"] = group(nodes, "combine")
        else:
            then = group(nodes, "combine")
            node = Workload("cond", predicate=self.predicate, then=then, otherwise=empty())
            building.add(node)
            building.last_when = (building.blocks[-1], node)


class _P:
    """Loops and conditions."""

    def __call__(self, *axes: Any, names: Optional[Sequence[str]] = None) -> Iterator[Any]:
        """The body for each element of the axes, in no order."""
        building = tracing.needed("P(..)")
        if not axes:
            raise TypeError("P() has no axis. Give it at least one.")
        if names is not None and len(names) != len(axes):
            raise ValueError(f"P(..) has {len(axes)} axes and {len(names)} names.")
        variables = []
        for number, axis in enumerate(axes):
            name = names[number] if names is not None else building.next_name()
            variables.append(LoopVar(name, as_axis(axis), number))
        result = variables[0] if len(variables) == 1 else tuple(variables)
        return _loop("parallel_for", "combine", variables, result)

    grid = __call__

    def seq(self, axis: Any, name: str = "i") -> Iterator[LoopVar]:
        """The body for each element, one after the other."""
        tracing.needed("P.seq(..)")
        variable = LoopVar(name, as_axis(axis))
        return _loop("for_each", "sequential", [variable], variable)

    def sel(self, sparse: Any, name: str = "e") -> Iterator[LoopVar]:
        """The body for each element of a sparse axis, or of one of its rows, in no order."""
        building = tracing.needed("P.sel(..)")
        if isinstance(sparse, SparseRow):
            return self._row(building, sparse, name)
        variable = LoopVar(name, _sparse(sparse))
        return _loop("select", "combine", [variable], variable)

    def _row(self, building: tracing.Building, row: SparseRow, name: str) -> Iterator[LoopVar]:
        variable = LoopVar(name, row.sparse)
        for _ in _loop("select", "combine", [variable], variable):
            with _When("when", variable.row == row.row):
                yield variable

    def when(self, predicate: Any) -> _When:
        """The block where the predicate is true when it is reached."""
        predicate = as_expr(predicate)
        if predicate.type != BOOL:
            raise TypeError(f"P.when needs a truth value, not {predicate.type}. Compare it with a number.")
        return _When("when", predicate)

    def otherwise(self) -> _When:
        """The block where the predicate of the `P.when` before it is false."""
        return _When("otherwise")

    def pipe(self) -> _When:
        """The stages of a pipeline, one after the other."""
        return _When("pipe")


def _sparse(sparse: Any) -> Sparse:
    """A sparse axis, or a list of indices as one."""
    if isinstance(sparse, Sparse):
        return sparse
    if isinstance(sparse, (list, tuple, range)):
        return Sparse(1, [0, len(sparse)], list(sparse))
    kind = "a ragged axis" if isinstance(sparse, Ragged) else type(sparse).__name__
    raise TypeError(f"A selection goes over a sparse axis or a list of indices, not over {kind}.")


P = _P()

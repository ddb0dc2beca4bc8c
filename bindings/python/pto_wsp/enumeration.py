"""The tasks of a workload, as far as they are known before a run."""

from __future__ import annotations

from typing import Any, Iterator

from .axes import Dense, DenseDyn, Ragged
from .evaluation import evaluated
from .loop_var import LoopVar
from .tree import Node, Task

Scope = list[tuple[LoopVar, int]]


def tasks_of(root: Node) -> list[Task]:
    """All tasks in program order."""
    found = list(_tasks(root, []))
    for number, task in enumerate(found):
        task.id = number
    return found


def _elements(axis: Any) -> Iterator[tuple[int, int, int]]:
    """Value, row and place of each element."""
    if isinstance(axis, (Dense, DenseDyn)):
        yield from ((value, 0, 0) for value in range(axis.size))
    elif isinstance(axis, Ragged):
        flat = 0
        for row in range(axis.outer_size):
            for place in range(axis.length(row)):
                yield flat, row, place
                flat += 1
    else:
        for row in range(axis.outer_size):
            for place in range(int(axis.indptr[row]), int(axis.indptr[row + 1])):
                yield int(axis.indices[place]), row, place


def _tasks(node: Node, scope: Scope) -> Iterator[Task]:
    parts, kind = node._kwargs, node._kind
    if kind == "task":
        params = [evaluated(param, scope) for param in parts["params"]]
        yield Task(parts["kernel"], params, parts["resources"])
    elif kind == "send":
        yield from _tasks(parts["task"], scope)
    elif kind in ("combine", "sequential"):
        for one in parts["workloads"]:
            yield from _tasks(one, scope)
    elif kind == "cond":
        is_true = evaluated(parts["predicate"], scope)
        yield from _tasks(parts["then" if is_true else "otherwise"], scope)
    elif kind in ("parallel_for", "for_each", "select"):
        variable = parts["var"]
        for value, row, place in _elements(variable.axis):
            inner = scope + [(variable, value)]
            if variable._places is not None:
                inner += list(zip(variable._places, (row, place)))
            yield from _tasks(parts["body"], inner)
    elif kind in ("consume", "connect"):
        raise RuntimeError("The tasks of a pipeline are not known before a run. Use Program.trace.")
